"""`ocular drive`: drive a world's route with a calibration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ocular.errors import InputError

if TYPE_CHECKING:
    from ocular.evaluation.episodes import Watcher
    from ocular.worlds.planar import PlanarWorld


@dataclass(frozen=True)
class Drive:
    """Drive a map through its subgoals, trusting the model as far as a calibration says."""

    map: str
    """A packaged map (planar: S, L, H, U; camera: icyMain, icyMiddle, icySide), or the path of a map file or
    of an MJCF scene with start and subgoals."""
    calibration: Path
    """A file that `ocular calibrate` wrote, in the same world."""
    world: Literal["planar", "camera"] = "planar"
    """Where the map is."""
    save: Path | None = None
    """Camera: a folder for what the robot saw at every step (RGB, depth, semantics, footprint, map)."""
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
        from ocular.experiments.worlds import open_map
        from ocular.progress import progress

        site, truth = open_map(self.world, self.map)
        calibration = load(self.calibration)
        total = len(route_of(truth.map, site.reach).subgoals)
        with progress(f"driving {truth.map.name}", self.episodes) as advance:
            for seed in range(self.seed, self.seed + self.episodes):
                result = drive(
                    truth,
                    calibration,
                    seed,
                    planner=site.planner,
                    reach=site.reach,
                    most_steps=self.most_steps,
                    threads=self.threads,
                    watch=self._watcher(truth, seed),
                    site=site,
                )
                row = summary(result)
                advance(result.outcome)
                print(
                    f"seed {seed}: {row['outcome']} after {row['steps']} steps, {row['subgoals']} of {total} "
                    f"subgoals, {row['step_ms_p50']:.0f} ms a step (99 %: {row['step_ms_p99']:.0f} ms)"
                )

    def _watcher(self, truth: PlanarWorld, seed: int) -> Watcher | None:
        if self.save is None:
            return None
        from ocular.evaluation.sightings import Sightings
        from ocular.worlds.junction import JunctionWorld

        if not isinstance(truth, JunctionWorld):
            raise InputError(
                f"--save is {self.save} in the world {self.world!r}; allowed is a folder in the world "
                "'camera', where robots have cameras"
            )
        return Sightings(self.save / f"seed-{seed}", truth)
