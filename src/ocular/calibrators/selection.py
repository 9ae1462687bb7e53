"""A tree chosen by leaving one environment out, without a look at the scores that thresholds are made of.

All that is tried is tried inside of the partition split. Given that split, the choice is made, and the scores
of the conformal split are as exchangeable with a new one as if the chosen settings had been known all along.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import fmean
from typing import Any

from ocular.calibrators.base import Calibrator, LocalCalibrator, split_rows
from ocular.calibrators.calibration import Calibration
from ocular.calibrators.trials import Trial, Trials
from ocular.dynamics import GaussianModel
from ocular.errors import InputError, check_probability
from ocular.partition import TreeSettings
from ocular.progress import progress
from ocular.records import Floats, Logs, Transitions

TOLERANCE = 0.02  # coverage that an environment left out may lack: finite tests scatter


@dataclass(frozen=True)
class Selecting(Calibrator):
    """A local calibrator whose tree is chosen first; what was tried is in the calibration's provenance."""

    calibrator: LocalCalibrator
    trees: tuple[TreeSettings, ...]
    alpha: float | Fraction  # that the choice is made for; the promise holds for any other, too

    def __post_init__(self) -> None:
        check_probability("alpha", float(self.alpha))
        if len(set(self.trees)) != len(self.trees) or not self.trees:
            raise InputError(f"trees to choose among: {self.trees}; allowed are different ones, at least one")

    def fit(
        self, transitions: Transitions | Logs, model: GaussianModel, state_cov: Floats, *, seed: int
    ) -> Calibration:
        """Try, choose, and calibrate with what was chosen."""
        seen = self.calibrator.look(Logs.of(transitions), model, state_cov, seed=seed)
        partition_rows, _ = split_rows(len(seen.logs), self.calibrator.partition_share, seed)
        trials = Trials(self.calibrator, seen, partition_rows, self.alpha, seed)
        trials.check(self.trees)
        made: list[Trial] = []
        with progress("leaving out", len(trials.places)) as advance:
            for place in trials.places:
                made += trials.without(place, self.trees, encoder_seed=seed)
                advance(place)
        chosen = choose(made, self.alpha)
        fitted = replace(self.calibrator, tree=chosen).fit_seen(seen, seed=seed)
        record = _record(made, chosen, self.alpha)
        return replace(fitted, provenance={**fitted.provenance, "selection": record})


def choose(trials: Sequence[Trial], alpha: float | Fraction) -> TreeSettings:
    """Of the trees that hold in every environment left out, the one with the smallest regions there.

    A tree holds when even its worst environment is covered to 1 - alpha, less a tolerance. If none does, the
    one whose worst is best. Ties go to the first.
    """
    of_tree: dict[TreeSettings, list[Trial]] = {}
    for trial in trials:
        of_tree.setdefault(trial.tree, []).append(trial)
    worst = {tree: min(map(useful, tried)) for tree, tried in of_tree.items()}
    holding = [tree for tree in of_tree if worst[tree] >= _enough(alpha)]
    if holding:
        return min(holding, key=lambda tree: fmean(trial.xi for trial in of_tree[tree]))
    return max(worst, key=lambda tree: worst[tree])


def useful(trial: Trial) -> float:
    """Share of steps inside of a region with bounds: without, it covers and helps nobody."""
    return trial.coverage - trial.unbounded


def _enough(alpha: float | Fraction) -> float:
    return 1 - float(alpha) - TOLERANCE


def _record(trials: Sequence[Trial], chosen: TreeSettings, alpha: float | Fraction) -> dict[str, Any]:
    """The choice in plain values, as a file keeps it; infinity is the text "inf"."""
    worst = min(useful(trial) for trial in trials if trial.tree == chosen)
    return {
        "alpha": float(alpha),
        "tolerance": TOLERANCE,
        "holds": worst >= _enough(alpha),
        "max_depth": chosen.max_depth,
        "min_leaf": chosen.min_leaf,
        "trials": [_plain(trial) for trial in trials],
    }


def _plain(trial: Trial) -> dict[str, Any]:
    """One trial; the encoder's seed is the calibration's own."""
    values = trial.plain()
    del values["seed"]
    return {**values, "xi": trial.xi if math.isfinite(trial.xi) else "inf"}
