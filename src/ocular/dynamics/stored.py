"""Which models can be kept in a file: a name for each, and the class that reads its arrays back.

A model of your own is one class with `predict`, two dimensions, `to_arrays` and `from_arrays`, and a line
here (or `MODELS["my robot"] = MyRobot` in your program, before it saves or loads a calibration).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ocular.dynamics.base import GaussianModel, StoredModel
from ocular.dynamics.linear import LinearGaussian
from ocular.dynamics.unicycle import Unicycle
from ocular.errors import InputError, check_choice
from ocular.records import Floats

MODELS: dict[str, type[StoredModel]] = {"linear": LinearGaussian, "unicycle": Unicycle}


def model_kind(model: GaussianModel) -> str:
    """The name under which this model is stored."""
    for kind, stored in MODELS.items():
        if type(model) is stored:
            return kind
    raise InputError(
        f"a model of the class {type(model).__name__} cannot be saved; allowed are "
        f"{', '.join(each.__name__ for each in MODELS.values())}, and what is added to ocular.dynamics.MODELS"
    )


def model_arrays(model: GaussianModel) -> tuple[str, dict[str, Floats]]:
    """The name of the model's kind, and the arrays that describe it."""
    kind = model_kind(model)
    assert isinstance(model, StoredModel)  # MODELS holds no others
    return kind, model.to_arrays()


def model_from_arrays(kind: str, arrays: Mapping[str, Any]) -> GaussianModel:
    """The model that these arrays describe."""
    check_choice("model", kind, MODELS.keys())
    return MODELS[kind].from_arrays(arrays)
