"""`ocular reproduce`: the paper's tables, from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from ocular.errors import InputError

if TYPE_CHECKING:
    from ocular.report.tables import Table


@dataclass(frozen=True)
class Reproduce:
    """Reproduce the paper's tables. Stop it at any moment and run it again: it goes on."""

    world: Annotated[Literal["planar", "camera"], tyro.conf.Positional]
    """Which of the paper's worlds."""
    only: Literal["coverage", "planning"] | None = None
    """One part: coverage is Tables 1 and 4 (planar) or 3 and 6 (camera), planning 2 and 5 or 7. Both unless
    told."""
    variant: Literal["main", "other_frame", "noisy", "stepped"] = "main"
    """main: the paper's six methods. Of coverage, other_frame: OCULAR in the world frame and its ablation in
    the body's; noisy (camera): 5 % of noise in depth and labels, at calibration and test. Of planning,
    stepped: OCULAR without thresholds raised between logged speeds."""
    map: tuple[str, ...] = ()
    """Maps to test on, all of the world unless told; each method still calibrates on the maps that it may
    see."""
    method: tuple[str, ...] = ()
    """Planning: methods to drive with; all six unless told."""
    quick: bool = False
    """Coverage with fewer particles and a shorter training, planning with 3 episodes: coarser numbers."""
    seed: tuple[int, ...] = (0,)
    """Coverage: each seed repeats everything, logs and trainings too. Planning takes the first."""
    workers: int = 2
    """Processes; the rows do not depend on it."""
    scheduler: str | None = None
    """Address of a dask scheduler (tcp://host:port) whose workers do the jobs instead; they must see the
    same folders, under the same names."""
    output: Path | None = None
    """Folder of the rows: results, or out/quick for --quick."""
    work: Path = Path("out/work")
    """Folder of intermediate results: logs, encoders, calibrations."""
    json: bool = False
    """Print tables and files as one JSON object."""

    def run(self) -> None:
        """Make the rows, then print the tables."""
        from ocular.calibrators import METHODS
        from ocular.cli.output import print_results
        from ocular.errors import check_choice
        from ocular.experiments.cluster import workers_at
        from ocular.experiments.worlds import SETTINGS

        maps = self.map or SETTINGS[self.world].site.maps
        for name in maps:
            check_choice("--map", name, SETTINGS[self.world].site.maps)
        for name in self.method:
            check_choice("--method", name, METHODS)
        if self.workers < 1:
            raise InputError(f"--workers is {self.workers}; allowed is at least 1")
        output = self.output or Path("out/quick" if self.quick else "results")
        made: dict[str, list[Path]] = {}
        tables: list[Table] = []
        parts = {"coverage": self._coverage, "planning": self._planning}
        for part in parts if self.only is None else (self.only,):
            if self.variant not in _variants(part):
                if self.only:
                    check_choice(f"--variant of {part}", self.variant, _variants(part))
                continue
            with workers_at(self.scheduler, self.workers) as workers:
                found, made[part] = parts[part](maps, output, workers)
            tables += found
            if not self.json:  # planning takes hours more
                print_results(found, {part: made[part]}, as_json=False)
        if self.json:
            print_results(tables, made, as_json=True)

    def _coverage(self, maps: tuple[str, ...], output: Path, workers: int) -> tuple[list[Table], list[Path]]:
        from ocular.evaluation.rows import read_rows
        from ocular.experiments.coverage import CoverageSettings, reproduce_coverage
        from ocular.experiments.worlds import SETTINGS
        from ocular.report import METRICS, coverage_table

        kind = SETTINGS[self.world]
        make = CoverageSettings.quick if self.quick else CoverageSettings.full
        for seed in self.seed:
            settings = make(seed, kind)
            made = reproduce_coverage(settings, self.variant, maps, output, self.work, workers)
        rows = [row for row in read_rows(made[0]) if row["map"] in maps]
        return [coverage_table(rows, self.world, metric.key) for metric in METRICS], made

    def _planning(self, maps: tuple[str, ...], output: Path, workers: int) -> tuple[list[Table], list[Path]]:
        from ocular.calibrators import METHODS
        from ocular.evaluation.rows import read_rows
        from ocular.experiments.coverage import CoverageSettings
        from ocular.experiments.planning import PlanningSettings, reproduce_planning
        from ocular.experiments.worlds import SETTINGS
        from ocular.report import planning_tables

        kind = SETTINGS[self.world]
        settings = PlanningSettings.of(CoverageSettings.full(self.seed[0], kind).calibration)
        if self.quick:
            calibration = CoverageSettings.quick(self.seed[0], kind).calibration
            settings = PlanningSettings.of(calibration, episodes=3)
        methods = self.method or (tuple(METHODS) if self.variant == "main" else ("ocular",))
        made = reproduce_planning(settings, maps, methods, output, self.work, workers, variant=self.variant)
        return planning_tables(read_rows(made[0]), self.world), made


def _variants(part: str) -> tuple[str, ...]:
    from ocular.experiments import coverage, planning

    return tuple({"coverage": coverage, "planning": planning}[part].VARIANTS)
