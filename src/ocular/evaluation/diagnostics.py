"""What a calibration rests on: its leaves, and environments that disagree.

All of it looks at logs alone. None of it is a test on new places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.stats import kruskal

from ocular.calibrators import Calibration, LocalCalibrator
from ocular.calibrators.base import split_rows
from ocular.conformal import CellScores, conformal_quantile
from ocular.errors import InputError
from ocular.records import Floats, Transitions

FEWEST = 5  # scores of an environment in a leaf, to take part in a comparison


@dataclass(frozen=True, slots=True)
class Leaf:
    """One cell, and how the environments in it agree."""

    cell: int
    points: int  # calibration scores
    xi: float
    environments: int  # that have scores enough to compare
    coverage: float  # of each environment by the thresholds of the others, NaN where there are none
    disagreement: float  # p-value of one law for all environments, corrected for the number of leaves


def diagnose(calibration: Calibration, logs: Transitions, alpha: float | Fraction) -> list[Leaf]:
    """The leaves of a calibration, given the logs that it was fitted to."""
    if calibration.scores is None:
        raise InputError(f"the method {calibration.method!r} has no scores; allowed is one that uses logs")
    if len(logs.environments) < 2:
        raise InputError(f"logs of {logs.environments}; allowed are at least 2 environments, to compare")
    held_out = _conformal_part(calibration, logs)
    scores, cells = calibration.score(held_out), calibration.cells(held_out.inputs)
    again = CellScores.group(scores, cells, len(calibration.scores.counts))
    if not np.allclose(again.scores, calibration.scores.scores, rtol=1e-6):
        raise InputError("these logs give other scores; allowed are those that the calibration was fitted to")
    scales = calibration.scales(alpha)
    found = []
    for cell in range(len(scales)):
        here = cells == cell
        parts = [scores[here & (held_out.environment == e)] for e in range(len(logs.environments))]
        found.append(_leaf(cell, float(scales[cell]), parts, alpha))
    corrected = holm(np.array([leaf.disagreement for leaf in found]))
    return [replace(leaf, disagreement=float(p)) for leaf, p in zip(found, corrected, strict=True)]


def _conformal_part(calibration: Calibration, logs: Transitions) -> Transitions:
    provenance = calibration.provenance
    made_of = (provenance.get("transitions"), provenance.get("environments"))
    if made_of != (len(logs), list(logs.environments)):
        raise InputError(
            f"{len(logs)} transitions of {', '.join(logs.environments)}; allowed are the logs that the "
            f"calibration was fitted to: {made_of[0]} of {made_of[1]}"
        )
    if calibration.partition.n_cells == 1:
        return logs
    _, rows = split_rows(len(logs), LocalCalibrator.partition_share, int(provenance["seed"]))
    return logs.take(rows)


def _leaf(cell: int, xi: float, parts: list[Floats], alpha: float | Fraction) -> Leaf:
    """Each environment is held against the others, as a new place would be."""
    compared = [part for part in parts if len(part) >= FEWEST]
    covered, points, p = 0, 0, 1.0
    if len(compared) > 1:
        p = float(kruskal(*compared).pvalue)
        for k, part in enumerate(compared):
            others = np.sort(np.concatenate(compared[:k] + compared[k + 1 :]))
            covered += int((part <= conformal_quantile(others, alpha)).sum())
            points += len(part)
    return Leaf(cell, sum(map(len, parts)), xi, len(compared), covered / points if points else np.nan, p)


def holm(p: Floats) -> Floats:
    """Holm's correction: of all true hypotheses, any falls below eps with probability at most eps."""
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected
