"""`ocular drive`: drive a world's route with a calibration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
