"""The command line: one subcommand a use."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from ocular.errors import CalibrationWarning, InputError, OcularError


@dataclass(frozen=True)
class Collect:
    """Log one-step transitions on a planar map, on the paper's grid, into a transition store.

    A map is a TOML file with rectangles or an image; see docs/maps.md. Collecting into a store that
    exists adds to it; a map that is in it already is left alone.
    """

    map: str
    """Name of a packaged map (S, L, H, U) or path of a map file."""
    store: Path
    """Directory of the transition store."""
    positions: int = 16
    """Grid positions along each axis."""
    velocities: int = 8
    """Grid velocities along each axis."""
    actions: int = 4
    """Grid actions along each axis."""
    seed: int = 0
    """Seed of the noise."""

    def run(self) -> None:
        """Collect and say what there is."""
        from ocular.data import TransitionStore
        from ocular.progress import progress
        from ocular.seeds import stream
        from ocular.worlds.collect import GridSpec, collect_transitions
        from ocular.worlds.map_file import PLANAR_LABELS, load_map
        from ocular.worlds.planar import PlanarWorld

        world = PlanarWorld(load_map(self.map))
        grid = GridSpec(self.positions, self.velocities, self.actions)
        if self.store.exists():
            store = TransitionStore.open(self.store)
        else:
            store = TransitionStore.create(self.store, PLANAR_LABELS, world.geometry, 4, 2)
        name = world.map.name
        if name in store.parts:
            print(f"{name} is in {self.store} already; nothing was collected")
        else:
            with progress(f"collecting {name}", 1) as advance:
                rng = stream(self.seed, "planar", name, "transitions")
                store.append(name, collect_transitions(world, grid, rng))
                advance("done")
        for part, summary in store.summary().items():
            print(f"{part}: {summary.transitions:,} transitions, {summary.footprints:,} footprints")


@dataclass(frozen=True)
class Calibrate:
    """Calibrate the planar double integrator on a store of logs, into one portable file."""

    store: Annotated[Path, tyro.conf.Positional]
    """Directory of the transition store."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The file to write."""
    method: Literal["nocp", "splitcp", "lucca", "ocular", "ocular_no_encode"] = "ocular"
    """Which calibrator."""
    without: tuple[str, ...] = ()
    """Parts of the store to leave out."""
    seed: int = 0
    """Seed of the split, the encoder and the tree."""

    def run(self) -> None:
        """Fit, save, and say what came of it."""
        import numpy as np

        from ocular.calibrators import METHODS, save
        from ocular.calibrators.ocular import train_encoder
        from ocular.data import TransitionStore
        from ocular.errors import check_choice
        from ocular.worlds.map_file import load_map
        from ocular.worlds.planar import PlanarWorld

        store = TransitionStore.open(self.store)
        for part in self.without:
            check_choice("--without", part, store.parts)
        logs = store.load([part for part in store.parts if part not in self.without])
        truth = PlanarWorld(load_map("S"))  # any map: the nominal model does not depend on it
        calibrator = METHODS[self.method].make(train_encoder)
        calibration = calibrator.fit(logs, truth.nominal, truth.state_cov, seed=self.seed)
        save(calibration, self.output)
        scales = calibration.scales(0.1)
        print(
            f"{self.output}: {self.method} on {len(logs):,} transitions of {', '.join(logs.environments)}; "
            f"{len(scales)} cells, at alpha = 0.1 xi from {np.min(scales):.2f} to {np.max(scales):.2f}"
        )


@dataclass(frozen=True)
class Drive:
    """Drive a planar map through its subgoals, trusting the model as far as a calibration says."""

    map: str
    """Name of a packaged map (S, L, H, U) or path of a map file with start and subgoals."""
    calibration: Path
    """A file that `ocular calibrate` wrote."""
    episodes: int = 1
    """How many drives; each has its own noise."""
    seed: int = 0
    """Seed of the first drive; the others count up."""
    most_steps: int = 700
    """Control steps after which a drive is a timeout."""
    threads: int = 2
    """Threads of the planner."""

    def run(self) -> None:
        """Drive, one line an episode."""
        from ocular.calibrators import load
        from ocular.experiments.planar_planning import drive, route_of, summary
        from ocular.planning.mppi import PlannerSettings
        from ocular.progress import progress
        from ocular.worlds.map_file import load_map
        from ocular.worlds.planar import PlanarWorld

        truth, calibration, planner = (
            PlanarWorld(load_map(self.map)),
            load(self.calibration),
            PlannerSettings(),
        )
        total = len(route_of(truth.map, 0.3).subgoals)
        with progress(f"driving {truth.map.name}", self.episodes) as advance:
            for seed in range(self.seed, self.seed + self.episodes):
                result = drive(
                    truth,
                    calibration,
                    seed,
                    planner=planner,
                    most_steps=self.most_steps,
                    threads=self.threads,
                )
                row = summary(result)
                advance(result.outcome)
                print(
                    f"seed {seed}: {row['outcome']} after {row['steps']} steps, {row['subgoals']} of {total} "
                    f"subgoals, {row['step_ms_p50']:.0f} ms a step (99 %: {row['step_ms_p99']:.0f} ms)"
                )


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


Command = (
    Annotated[Collect, tyro.conf.subcommand("collect")]
    | Annotated[Calibrate, tyro.conf.subcommand("calibrate")]
    | Annotated[Drive, tyro.conf.subcommand("drive")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
)


def main() -> None:
    """Entry point: errors of ours are one line, not a traceback."""
    warnings.simplefilter("once", CalibrationWarning)
    try:
        command: Command = tyro.cli(
            Command,
            prog="ocular",
            description="Local conformal calibration of a robot's dynamics uncertainty from semantic images.",
        )
        command.run()
    except OcularError as error:
        sys.exit(f"ocular: {error}")
    except KeyboardInterrupt:
        sys.exit("ocular: stopped; run the same command again to go on")
