"""`ocular diagnose`: what a calibration rests on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from ocular.calibrators import Calibration
    from ocular.records import Logs, Transitions


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
    """Fit again with every environment left out in turn, for each seed and tree below: each place and seed
    trains an encoder. Stop it at any moment and run it again: what was finished is not done again."""
    seed: tuple[int, ...] = (0, 1)
    """Seeds of the encoder; split and tree keep the calibration's."""
    min_leaf: tuple[int, ...] = (150, 300, 600)
    """Least points of a leaf."""
    max_depth: tuple[int, ...] = (13,)
    """Most levels of the tree."""
    quick: bool = False
    """Train encoders briefly and on fewer footprints: for a first look."""
    output: Path = Path("out/sensitivity")
    """Folder of the rows of --sensitivity."""

    def run(self) -> None:
        """Look, and print what was seen."""
        from ocular.calibrators import load
        from ocular.data import TransitionStore
        from ocular.errors import check_choice

        calibration, store = load(self.calibration), TransitionStore.open(self.store)
        parts = calibration.provenance.get("environments", [])
        for part in parts:  # in their order: it decided how they were split
            check_choice("an environment of the calibration", part, store.parts)
        self._leaves(calibration, store.load(parts))
        if self.sensitivity:
            self._sensitivity(calibration, store.logs(parts))

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

    def _sensitivity(self, calibration: Calibration, logs: Logs) -> None:
        from dataclasses import asdict, replace
        from functools import partial

        from ocular.calibrators import METHODS, LocalCalibrator
        from ocular.calibrators.ocular import train_encoder
        from ocular.cli.calibrate import training_settings
        from ocular.errors import InputError
        from ocular.experiments.sensitivity import Question, sensitivity
        from ocular.partition import TreeSettings
        from ocular.report import print_table
        from ocular.report.trials import sensitivity_table

        training = training_settings(self.quick)
        calibrator = METHODS[calibration.method].make(partial(train_encoder, settings=training))
        if not isinstance(calibrator, LocalCalibrator):
            raise InputError(f"the method {calibration.method!r} has no leaves; allowed is one with a tree")
        if calibration.features is not None:
            calibrator = replace(calibrator, features=calibration.features.name)
        calibrator = replace(calibrator, fallback=calibration.fallback)
        trees = [TreeSettings(depth, leaf) for depth in self.max_depth for leaf in self.min_leaf]
        question = Question(self.seed, trees, self.alpha)
        rows = sensitivity(calibrator, calibration, logs, question, self.output, asdict(training))
        print_table(sensitivity_table(rows))
        print(f"wrote {self.output / 'sensitivity.csv'}")
        print(
            "A choice by this table has seen the scores that thresholds are made of; `ocular calibrate "
            "--select` makes one that has not."
        )
