"""`ocular reproduce`: the paper's tables, from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from ocular.errors import InputError


@dataclass(frozen=True)
class Reproduce:
    """Reproduce the paper's tables. Stop it at any moment and run it again: it goes on."""

    world: Annotated[Literal["planar"], tyro.conf.Positional]
    """Which of the paper's worlds."""
    only: Literal["coverage", "planning"] | None = None
    """One part: coverage is Tables 1 and 4, planning Tables 2 and 5. Both unless told."""
    variant: Literal["main", "other_frame"] = "main"
    """Coverage: the paper's six methods, or OCULAR in the world frame and its ablation in the body's."""
    map: tuple[str, ...] = ("S", "L", "H", "U")
    """Maps to test on; each method still calibrates on the maps that it may see."""
    method: tuple[str, ...] = ()
    """Planning: methods to drive with; all six unless told."""
    quick: bool = False
    """Coverage with fewer particles and a shorter training, planning with 3 episodes: coarser numbers."""
    seed: tuple[int, ...] = (0,)
    """Coverage: each seed repeats everything, logs and trainings too. Planning takes the first."""
    workers: int = 2
    """Processes; the rows do not depend on it."""
    output: Path | None = None
    """Folder of the rows: results, or out/quick for --quick."""
    work: Path = Path("out/work")
    """Folder of intermediate results: logs, encoders, calibrations."""

    def run(self) -> None:
        """Make the rows, then print the tables."""
        from ocular.calibrators import METHODS
        from ocular.errors import check_choice
        from ocular.experiments.planar import MAPS

        for name in self.map:
            check_choice("--map", name, MAPS)
        for name in self.method:
            check_choice("--method", name, METHODS)
        if self.workers < 1:
            raise InputError(f"--workers is {self.workers}; allowed is at least 1")
        output = self.output or Path("out/quick" if self.quick else "results")
        if self.only in ("coverage", None):
            self._coverage(output)
        if self.only in ("planning", None):
            self._planning(output)

    def _coverage(self, output: Path) -> None:
        from ocular.evaluation.rows import read_rows
        from ocular.experiments.planar_coverage import CoverageSettings, reproduce_coverage
        from ocular.report import METRICS, coverage_table, print_table

        for seed in self.seed:
            settings = CoverageSettings.quick(seed) if self.quick else CoverageSettings.full(seed)
            made = reproduce_coverage(settings, self.variant, self.map, output, self.work, self.workers)
        rows = [row for row in read_rows(made[0]) if row["map"] in self.map]
        for metric in METRICS:
            print_table(coverage_table(rows, self.world, metric.key))
        print("wrote " + ", ".join(map(str, made)))

    def _planning(self, output: Path) -> None:
        from ocular.calibrators import METHODS
        from ocular.evaluation.rows import read_rows
        from ocular.experiments.planar_coverage import CoverageSettings
        from ocular.experiments.planar_planning import PlanningSettings, reproduce_planning
        from ocular.report import planning_tables, print_table

        settings = PlanningSettings(CoverageSettings.full(self.seed[0]).planar)
        if self.quick:
            settings = PlanningSettings(CoverageSettings.quick(self.seed[0]).planar, episodes=3)
        methods = self.method or tuple(METHODS)
        made = reproduce_planning(settings, self.map, methods, output, self.work, self.workers)
        for table in planning_tables(read_rows(made[0]), self.world):
            print_table(table)
        print("wrote " + ", ".join(map(str, made)))
