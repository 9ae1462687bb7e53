"""`ocular diagnose`: what a calibration rests on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from ocular.calibrators import Calibration
    from ocular.records import Transitions


@dataclass(frozen=True)
class Diagnose:
    """Which leaves are small, which environments disagree, and what the result hangs on."""

    store: Annotated[Path, tyro.conf.Positional]
    """Directory of the logs that the calibration was fitted to."""
    calibration: Annotated[Path, tyro.conf.arg(aliases=["-c"])]
    """The file that `ocular calibrate` wrote."""
    alpha: float = 0.1
    """Regions may miss this share of next states."""
    show: int = 10
    """How many leaves to list, the most doubtful first."""
    sensitivity: bool = False
    """Fit again with every environment left out in turn, for each seed and tree below: minutes each."""
    seed: tuple[int, ...] = (0, 1)
    """Seeds of encoder, split and tree."""
    min_leaf: tuple[int, ...] = (150, 300, 600)
    """Least points of a leaf."""
    max_depth: tuple[int, ...] = (13,)
    """Most levels of the tree."""

    def run(self) -> None:
        """Look, and print what was seen."""
        from ocular.calibrators import load
        from ocular.data import TransitionStore
        from ocular.errors import check_choice

        calibration, store = load(self.calibration), TransitionStore.open(self.store)
        parts = calibration.provenance.get("environments", [])
        for part in parts:  # in their order: it decided how they were split
            check_choice("an environment of the calibration", part, store.parts)
        logs = store.load(parts)
        self._leaves(calibration, logs)
        if self.sensitivity:
            self._sensitivity(calibration, logs)

    def _leaves(self, calibration: Calibration, logs: Transitions) -> None:
        import numpy as np

        from ocular.evaluation.diagnostics import diagnose

        leaves = diagnose(calibration, logs, self.alpha)
        points = np.array([leaf.points for leaf in leaves])
        doubtful = [leaf for leaf in leaves if leaf.disagreement < 0.05]
        print(
            f"{len(leaves)} leaves with {points.min()} to {points.max()} points, half of them with at most "
            f"{np.median(points):.0f}; environments disagree in {len(doubtful)} of them (p < 0.05, corrected)"
        )
        print("leaf  points      xi  environments  coverage  disagreement p")
        for leaf in sorted(leaves, key=lambda leaf: (leaf.disagreement, leaf.coverage))[: self.show]:
            print(
                f"{leaf.cell:4d}  {leaf.points:6d}  {leaf.xi:6.2f}  {leaf.environments:12d}  "
                f"{leaf.coverage:8.1%}  {leaf.disagreement:14.2g}"
            )

    def _sensitivity(self, calibration: Calibration, logs: Transitions) -> None:
        from ocular.calibrators import METHODS, LocalCalibrator
        from ocular.calibrators.ocular import train_encoder
        from ocular.errors import InputError
        from ocular.evaluation.diagnostics import sensitivity
        from ocular.partition import TreeSettings
        from ocular.progress import progress

        calibrator = METHODS[calibration.method].make(train_encoder)
        if not isinstance(calibrator, LocalCalibrator):
            raise InputError(f"the method {calibration.method!r} has no leaves; allowed is one with a tree")
        trees = [TreeSettings(depth, leaf) for depth in self.max_depth for leaf in self.min_leaf]
        total = len(logs.environments) * len(self.seed) * len(trees)
        lines = []
        with progress("fitting again", total) as advance:
            for trial in sensitivity(calibrator, calibration, logs, self.alpha, self.seed, trees):
                lines.append(
                    f"{trial.left_out:12s}  {trial.seed:4d}  {trial.tree.max_depth:9d}  "
                    f"{trial.tree.min_leaf:8d}  {trial.cells:6d}  {trial.coverage:8.1%}  {trial.gap:5.3f}  "
                    f"{trial.xi:5.2f}"
                )
                advance(trial.left_out)
        print("left out      seed  max_depth  min_leaf  leaves  coverage    gap     xi")
        print("\n".join(lines))
        print("Settings chosen by this table have seen these logs: calibrate the choice on others.")
