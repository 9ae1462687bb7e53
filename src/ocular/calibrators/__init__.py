"""NoCP, SplitCP, LUCCa and OCULAR: short compositions of features, encoder and partition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ocular.calibrators.artefact import load, save
from ocular.calibrators.base import Calibrator, EncoderSource, LocalCalibrator
from ocular.calibrators.calibration import Calibration
from ocular.calibrators.lucca import lucca
from ocular.calibrators.nocp import NoCP
from ocular.calibrators.ocular import ocular, ocular_no_encode
from ocular.calibrators.selection import Selecting
from ocular.calibrators.splitcp import SplitCP


@dataclass(frozen=True, slots=True)
class Method:
    """A row of the paper's tables: how to make its calibrator, and whose data it is given."""

    make: Callable[[EncoderSource], Calibrator]
    needs_test_map: bool


METHODS = {
    "nocp": Method(lambda encoder: NoCP(), needs_test_map=True),
    "splitcp": Method(lambda encoder: SplitCP(), needs_test_map=True),
    "lucca": Method(lambda encoder: lucca(), needs_test_map=True),
    "ocular": Method(ocular, needs_test_map=False),
    "ocular_same_map": Method(ocular, needs_test_map=True),
    "ocular_no_encode": Method(lambda encoder: ocular_no_encode(), needs_test_map=False),
}

__all__ = [
    "METHODS",
    "Calibration",
    "Calibrator",
    "EncoderSource",
    "LocalCalibrator",
    "Method",
    "NoCP",
    "Selecting",
    "SplitCP",
    "load",
    "lucca",
    "ocular",
    "ocular_no_encode",
    "save",
]
