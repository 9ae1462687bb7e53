"""A calibration as one portable file. Loading it runs no code and notices any changed byte."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import numpy as np

from ocular.calibrators.calibration import Calibration
from ocular.calibrators.features import features
from ocular.calibrators.levels import Levels
from ocular.conformal import CellScores
from ocular.dynamics.stored import model_arrays, model_from_arrays
from ocular.encoding import ConvEncoder
from ocular.errors import DamagedFileError, InputError, check_path, check_type
from ocular.partition import Partition, TreePartition, WholeSpace
from ocular.records import FootprintGeometry
from ocular.sealed import Arrays, Sealed, read_sealed, write_sealed

KIND = "calibration"
VERSION = 3  # 2 added levels, 3 models that are not linear; what an older version can say is written in it
LINEAR = "linear"  # the model of files that name none
_TREE_ARRAYS = ("feature", "threshold", "left", "right", "cell")


def save(calibration: Calibration, path: str | Path) -> None:
    """Write the calibration; the same calibration gives the same bytes."""
    check_type("calibration", calibration, Calibration)
    check_path("path", path)
    partition, encoder = calibration.partition, calibration.encoder
    kind, of_model = model_arrays(calibration.model)
    arrays: Arrays = {f"model.{name}": array for name, array in of_model.items()}
    arrays["state_cov"] = calibration.state_cov
    manifest: dict[str, Any] = {
        "method": calibration.method,
        "features": calibration.features.name if calibration.features else None,
        "fallback": calibration.fallback,
        "provenance": {**calibration.provenance, "ocular": importlib.metadata.version("ocular")},
        "tree_features": None,
        "leveled": None,
        "encoder": None,
    }
    if kind != LINEAR:
        manifest["model"] = kind
    if isinstance(partition, TreePartition):
        manifest["tree_features"] = partition.n_features
        arrays |= {f"tree.{name}": getattr(partition, name) for name in _TREE_ARRAYS}
    if calibration.levels is not None:
        manifest["leveled"] = calibration.levels.column
        arrays["levels"] = calibration.levels.values
    if encoder is not None:
        geometry = encoder.geometry
        manifest["encoder"] = {
            "labels": list(encoder.labels),
            "angles": geometry.angles,
            "ranges": geometry.ranges,
            "field_of_view": geometry.field_of_view,
            "max_range": geometry.max_range,
        }
        arrays |= {f"encoder.{name}": array for name, array in encoder.to_arrays().items()}
    if calibration.scores is not None:
        arrays |= {"scores": calibration.scores.scores, "offsets": calibration.scores.offsets}
    version = 2 if kind == LINEAR else VERSION
    write_sealed(path, kind=KIND, version=version, manifest=manifest, arrays=arrays)


def load(path: str | Path) -> Calibration:
    """Read a calibration back."""
    check_path("path", path)
    sealed = read_sealed(path, kind=KIND, version=VERSION)
    try:
        return _rebuild(sealed)
    except (KeyError, TypeError, InputError) as error:
        raise DamagedFileError(
            f"{path} is sealed but not a sound calibration: {type(error).__name__}: {error}; "
            "allowed is what ocular wrote"
        ) from error


def _rebuild(sealed: Sealed) -> Calibration:
    manifest, arrays = sealed.manifest, sealed.arrays
    partition: Partition = WholeSpace()
    if manifest["tree_features"] is not None:
        tree = {name: arrays[f"tree.{name}"] for name in _TREE_ARRAYS}
        partition = TreePartition(n_features=int(manifest["tree_features"]), **tree)
    scores = CellScores(arrays["scores"], arrays["offsets"]) if "scores" in arrays else None
    if scores is not None and len(scores.counts) != partition.n_cells:
        raise InputError(f"{len(scores.counts)} cells of scores; allowed are {partition.n_cells}")
    model = model_from_arrays(manifest.get("model", LINEAR), _within(arrays, "model."))
    dims = model.state_dim, model.action_dim
    return Calibration(
        method=str(manifest["method"]),
        model=model,
        state_cov=arrays["state_cov"],
        features=None if manifest["features"] is None else features(manifest["features"], *dims),
        encoder=None if manifest["encoder"] is None else _encoder(manifest["encoder"], arrays),
        partition=partition,
        scores=scores,
        levels=Levels(int(manifest["leveled"]), arrays["levels"]) if "levels" in arrays else None,
        fallback=bool(manifest["fallback"]),
        provenance={k: v for k, v in manifest["provenance"].items() if k != "ocular"},
    )


def _encoder(description: dict[str, Any], arrays: Arrays) -> ConvEncoder:
    geometry = FootprintGeometry(
        **{k: description[k] for k in ("angles", "ranges", "field_of_view", "max_range")}
    )
    return ConvEncoder.from_arrays(
        _within(arrays, "encoder."), labels=tuple(description["labels"]), geometry=geometry
    )


def _within(arrays: Arrays, prefix: str) -> dict[str, np.ndarray[Any, Any]]:
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
