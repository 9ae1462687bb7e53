"""What a calibration rests on: its leaves, environments that disagree, and choices that the result hangs on.

All of it looks at logs alone. None of it is a test on new places. Settings that are chosen by it have seen
the scores that thresholds are made of, which breaks the promise: choose on some environments, and calibrate
the choice on others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.stats import kruskal

from ocular.calibrators import Calibration, LocalCalibrator
from ocular.calibrators.base import split_rows
from ocular.conformal import CellScores, conformal_quantile
from ocular.encoding import ConvEncoder, Sights
from ocular.errors import InputError
from ocular.partition import TreeSettings
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


@dataclass(frozen=True, slots=True)
class Trial:
    """A calibration of all environments but one, tried on that one's logs."""

    left_out: str
    seed: int  # of encoder, split and tree
    tree: TreeSettings
    cells: int
    coverage: float
    gap: float  # mean over its steps of |coverage of the step's cell - (1 - alpha)|
    xi: float  # median over its steps


def sensitivity(
    calibrator: LocalCalibrator,
    calibration: Calibration,
    logs: Transitions,
    alpha: float | Fraction,
    seeds: Sequence[int],
    trees: Sequence[TreeSettings],
) -> Iterator[Trial]:
    """Every environment left out in turn, for every seed and tree; a seed's encoder serves all its trees."""
    if len(logs.environments) < 2:
        raise InputError(
            f"logs of {logs.environments}; allowed are at least 2 environments, to leave one out"
        )
    for index, name in enumerate(logs.environments):
        own = logs.environment == index
        rest, apart = logs.take(np.flatnonzero(~own)), logs.take(np.flatnonzero(own))
        for seed in seeds:
            source = _Recalling(calibrator)
            for tree in trees:
                recipe = replace(calibrator, tree=tree, encoder=source if calibrator.encoder else None)
                fitted = recipe.fit(rest, calibration.model, calibration.state_cov, seed=seed)
                yield _tried(fitted, apart, alpha, name, seed, tree)


class _Recalling:
    """Trains an encoder when first asked, and gives the same one from then on."""

    def __init__(self, calibrator: LocalCalibrator) -> None:
        self._source = calibrator.encoder
        self._made: ConvEncoder | None = None

    def __call__(self, footprints: Sights, seed: int) -> ConvEncoder:
        if self._made is None:
            assert self._source is not None
            self._made = self._source(footprints, seed)
        return self._made


def _tried(
    fitted: Calibration, apart: Transitions, alpha: float | Fraction, name: str, seed: int, tree: TreeSettings
) -> Trial:
    covered = fitted.score(apart) <= fitted.threshold(apart.inputs, alpha)
    cells, count = fitted.cells(apart.inputs), fitted.partition.n_cells
    points = np.bincount(cells, minlength=count)
    of_cell = np.bincount(cells, weights=covered, minlength=count) / np.maximum(points, 1)
    gap = float((points * np.abs(of_cell - (1 - float(alpha)))).sum() / points.sum())
    xi = float(np.median(fitted.scale(apart.inputs, alpha)))
    return Trial(name, seed, tree, count, float(covered.mean()), gap, xi)
