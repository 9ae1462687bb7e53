"""Where a calibration misses, on logs that it was not fitted on: by environment and by cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ocular.calibrators import Calibration
from ocular.errors import InputError
from ocular.evaluation.account import Performance, outcomes
from ocular.records import Transitions


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A calibration on a store, at one alpha."""

    method: str
    alpha: float
    total: Performance
    environments: dict[str, Performance]
    cells: dict[int, Performance]  # cells that some transition falls into, ascending
    warnings: tuple[str, ...]


def evaluate(calibration: Calibration, transitions: Transitions, alpha: float | Fraction) -> Evaluation:
    """Test a calibration on transitions, all together and group by group."""
    if not len(transitions):
        raise InputError("0 transitions to evaluate on; allowed is at least 1")
    covered, scales = outcomes(calibration, transitions, alpha)
    cells = calibration.cells(transitions.inputs)

    def group(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> dict[int, Performance]:
        return {
            int(number): Performance.of(covered[numbers == number], scales[numbers == number], calibration)
            for number in np.unique(numbers)
        }

    names = transitions.environments
    environments = {names[k]: found for k, found in group(transitions.environment).items()}
    return Evaluation(
        method=calibration.method,
        alpha=float(alpha),
        total=Performance.of(covered, scales, calibration),
        environments=environments,
        cells=group(cells),
        warnings=tuple(_warnings(calibration, environments)),
    )


def _warnings(calibration: Calibration, environments: dict[str, Performance]) -> list[str]:
    known = set(calibration.provenance.get("environments", ()))
    return [
        f"environment {name!r} has the name of one that was calibrated on: if it is the same data, its "
        "coverage says nothing of a new place"
        for name in environments
        if name in known
    ]
