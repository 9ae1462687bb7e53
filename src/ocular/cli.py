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
class Reproduce:
    """Reproduce the paper's tables. Stop it at any moment and run it again: it goes on."""

    world: Annotated[Literal["planar"], tyro.conf.Positional]
    """Which of the paper's worlds."""
    only: Literal["coverage"] = "coverage"
    """Which part: coverage is Tables 1 and 4."""
    variant: Literal["main", "other_frame"] = "main"
    """main: the paper's six methods; other_frame: OCULAR in the world frame, its ablation in the body's."""
    map: tuple[str, ...] = ("S", "L", "H", "U")
    """Maps to test on; each method still calibrates on the maps that it may see."""
    quick: bool = False
    """Fewer particles and a shorter training: minutes instead of half an hour, and coarser numbers."""
    seed: tuple[int, ...] = (0,)
    """Each seed repeats everything: logs, splits, trainings, particles."""
    workers: int = 2
    """Processes; the rows do not depend on it."""
    output: Path | None = None
    """Folder of the rows: results, or out/quick for --quick."""
    work: Path = Path("out/work")
    """Folder of intermediate results: logs, encoders, calibrations."""

    def run(self) -> None:
        """Make the rows, then print the tables."""
        from ocular.errors import check_choice
        from ocular.evaluation.rows import read_rows
        from ocular.experiments.planar import MAPS
        from ocular.experiments.planar_coverage import CoverageSettings, reproduce_coverage
        from ocular.report import METRICS, coverage_table, print_table

        for name in self.map:
            check_choice("--map", name, MAPS)
        if self.workers < 1:
            raise InputError(f"--workers is {self.workers}; allowed is at least 1")
        output = self.output or Path("out/quick" if self.quick else "results")
        for seed in self.seed:
            settings = CoverageSettings.quick(seed) if self.quick else CoverageSettings.full(seed)
            made = reproduce_coverage(settings, self.variant, self.map, output, self.work, self.workers)
        rows = [row for row in read_rows(made[0]) if row["map"] in self.map]
        for metric in METRICS:
            print_table(coverage_table(rows, self.world, metric.key))
        print("wrote " + ", ".join(map(str, made)))


Command = (
    Annotated[Collect, tyro.conf.subcommand("collect")]
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
