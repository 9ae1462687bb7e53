"""Settings tried where they have no logs from: one environment is left out, its steps are what is tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ocular.calibrators.base import LocalCalibrator, Seen, split_rows
from ocular.calibrators.calibration import Calibration, quiet_thresholds
from ocular.errors import InputError
from ocular.partition import TreeSettings
from ocular.records import Indices

HANDFUL = 100  # transitions, below which a coverage of 90 % is known to 3 points at best


@dataclass(frozen=True, slots=True)
class Trial:
    """A calibration of all environments but one, tried on that one's steps."""

    left_out: str
    seed: int  # of the encoder
    tree: TreeSettings
    cells: int
    steps: int
    coverage: float
    unbounded: float  # share of its steps whose region is the whole space
    gap: float  # mean over its steps of |coverage of the step's cell - (1 - alpha)|
    xi: float  # median over its steps

    def plain(self) -> dict[str, Any]:
        """Setting and outcome as plain values, the tree's settings by their own names."""
        values = asdict(self)
        return {**values.pop("tree"), **values}


@dataclass(frozen=True)
class Trials:
    """What can be tried on some rows of logs; no score of another row is looked at."""

    calibrator: LocalCalibrator
    seen: Seen
    rows: Indices  # ascending
    alpha: float | Fraction
    seed: int  # of split and tree

    @cached_property
    def places(self) -> tuple[str, ...]:
        """The environments that can be left out: with rows enough to say something."""
        names = self.seen.logs.environments
        counts = np.bincount(self.seen.environment[self.rows], minlength=len(names))
        enough = tuple(name for name, n in zip(names, counts, strict=True) if n >= HANDFUL)
        if len(enough) < 2:
            there = ", ".join(f"{name} {n}" for name, n in zip(names, counts, strict=True))
            raise InputError(
                f"transitions to leave out, by environment: {there}; allowed are at least 2 environments "
                f"with at least {HANDFUL}"
            )
        return enough

    def check(self, trees: Sequence[TreeSettings]) -> None:
        """Raise where some tree is too coarse for what is left without some environment."""
        for place in self.places:
            for tree in trees:
                tree.check_points(len(self._fold(place)[1]))

    def without(self, place: str, trees: Sequence[TreeSettings], *, encoder_seed: int) -> list[Trial]:
        """Calibrate without a place, and test on it; one encoder serves all trees."""
        apart, drawing, counting = self._fold(place)
        seen = self.calibrator.encode(self.seen, drawing, encoder_seed)
        found = []
        for tree in trees:
            fitted = replace(self.calibrator, tree=tree).draw(seen, drawing, counting, self.seed)
            found.append(_tried(fitted, seen, apart, self.alpha, place, encoder_seed, tree))
        return found

    def _fold(self, place: str) -> tuple[Indices, Indices, Indices]:
        """Rows of the place, and the other rows: to draw cells from, and to count in them."""
        own = self.seen.environment[self.rows] == self.seen.logs.environments.index(place)
        rest = self.rows[~own]
        drawing, counting = split_rows(len(rest), self.calibrator.partition_share, self.seed)
        return self.rows[own], rest[drawing], rest[counting]


def _tried(
    fitted: Calibration,
    seen: Seen,
    apart: Indices,
    alpha: float | Fraction,
    place: str,
    encoder_seed: int,
    tree: TreeSettings,
) -> Trial:
    inputs, wanted = seen.inputs[apart], 1 - float(alpha)
    thresholds = fitted.look_up(inputs, quiet_thresholds(fitted, alpha))
    covered = seen.scores[apart] <= thresholds
    cells, count = fitted.partition.apply(inputs), fitted.partition.n_cells
    points = np.bincount(cells, minlength=count)
    of_cell = np.bincount(cells, weights=covered, minlength=count) / np.maximum(points, 1)
    return Trial(
        place,
        encoder_seed,
        tree,
        cells=count,
        steps=len(apart),
        coverage=float(covered.mean()),
        unbounded=float(np.isinf(thresholds).mean()),
        gap=float((points * np.abs(of_cell - wanted)).sum() / points.sum()),
        xi=float(np.sort(thresholds)[(len(thresholds) - 1) // 2] / fitted.chi2(alpha)),
    )
