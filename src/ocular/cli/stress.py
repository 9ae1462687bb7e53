"""`ocular stress`: the monitor's promises, measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ocular.errors import InputError


@dataclass(frozen=True)
class Stress:
    """Measure the monitor's promises on the planar maps. Stop it at any moment and run it again: drives that
    were finished are not driven again."""

    only: tuple[str, ...] = ()
    """Parts: law (false alarms), delay, novelty, drives. All unless told."""
    quick: bool = False
    """100 runs, 2 episodes and a short training: coarser figures."""
    workers: int = 2
    """Processes for drives; the rows do not depend on it."""
    output: Path | None = None
    """Folder of the rows: results, or out/quick for --quick."""
    work: Path = Path("out/work")
    """Folder of intermediate results: logs, encoders, calibrations."""

    def run(self) -> None:
        """Measure, print and write."""
        from ocular.errors import check_choice
        from ocular.experiments.coverage import CoverageSettings
        from ocular.experiments.guarded import GuardedSettings
        from ocular.experiments.limits import recorded
        from ocular.experiments.stress import PARTS, stress

        for part in self.only:
            check_choice("--only", part, PARTS)
        if self.workers < 1:
            raise InputError(f"--workers is {self.workers}; allowed is at least 1")
        output = self.output or Path("out/quick" if self.quick else "results")
        settings, runs = GuardedSettings(), 2000
        if self.quick:
            settings = GuardedSettings(CoverageSettings.quick(seed=0).calibration, episodes=2)
            runs = 100
        figures = stress(settings, self.only or PARTS, runs, output, self.work, self.workers)
        for figure in recorded(figures, output, workers=self.workers):
            print(figure, flush=True)
        print(f"wrote {output / 'stress.csv'}")
