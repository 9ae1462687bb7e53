"""`ocular drive`: drive a world's route with a calibration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocular.errors import InputError

if TYPE_CHECKING:
    from ocular.report.film import Film
    from ocular.worlds.planar import PlanarWorld


@dataclass(frozen=True)
class Drive:
    """Drive a planar map through its subgoals, trusting the model as far as a calibration says."""

    map: str
    """Name of a packaged map (S, L, H, U) or path of a map file with start and subgoals."""
    calibration: tuple[Path, ...]
    """Files that `ocular calibrate` wrote; each drives with the same noise."""
    episodes: int = 1
    """How many drives; each has its own noise."""
    seed: int = 0
    """Seed of the first drive; the others count up."""
    most_steps: int = 700
    """Control steps after which a drive is a timeout."""
    threads: int = 2
    """Threads of the planner."""
    video: Path | None = None
    """An mp4 of the first drive, all calibrations side by side."""
    record: Path | None = None
    """A Rerun recording (.rrd) of the first drive, with the first calibration; needs the extra `rerun`."""
    json: bool = False
    """Print one JSON object a drive."""

    def run(self) -> None:
        """Drive, one line an episode."""
        import json

        from ocular.calibrators import load
        from ocular.experiments.filming import filmed
        from ocular.experiments.planar_planning import drive, route_of, summary
        from ocular.planning.mppi import PlannerSettings
        from ocular.progress import progress
        from ocular.report.recording import rerun_or_error
        from ocular.worlds.map_file import load_map
        from ocular.worlds.planar import PlanarWorld

        if not self.calibration or self.episodes < 1:
            raise InputError(
                f"{len(self.calibration)} calibrations, {self.episodes} episodes; "
                "allowed is at least 1 of each"
            )
        if self.record:
            rerun_or_error()  # before the drive, not after
        truth, planner = PlanarWorld(load_map(self.map)), PlannerSettings()
        total = len(route_of(truth.map, 0.3).subgoals)
        calibrations = {path: load(path) for path in self.calibration}
        films = []
        with progress(f"driving {truth.map.name}", self.episodes * len(calibrations)) as advance:
            for seed in range(self.seed, self.seed + self.episodes):
                for path, calibration in calibrations.items():
                    how: dict[str, Any] = {
                        "planner": planner,
                        "most_steps": self.most_steps,
                        "threads": self.threads,
                    }
                    if seed == self.seed and (self.video or self.record):
                        films.append(film := filmed(truth, calibration, seed, **how))
                        result = film.ended()
                    else:
                        result = drive(truth, calibration, seed, **how)
                    row = {"calibration": str(path), "seed": seed, **summary(result)}
                    advance(result.outcome)
                    print(json.dumps(row) if self.json else self._line(row, total))
        self._keep(films, truth)

    def _line(self, row: dict[str, Any], total: int) -> str:
        who = f"{row['calibration']}, " if len(self.calibration) > 1 else ""
        return (
            f"{who}seed {row['seed']}: {row['outcome']} after {row['steps']} steps, {row['subgoals']} of "
            f"{total} subgoals, {row['step_ms_p50']:.0f} ms a step (99 %: {row['step_ms_p99']:.0f} ms)"
        )

    def _keep(self, films: list[Film], truth: PlanarWorld) -> None:
        """Write what was asked for."""
        from ocular.progress import progress
        from ocular.report.recording import write_recording
        from ocular.report.video import count_frames, write_video

        if self.video:
            with progress("drawing the video", count_frames(films)) as advance:
                write_video(self.video, films, truth.map.grid, truth.dt, advance)
        if self.record:
            write_recording(self.record, films[0], truth.map.grid, truth.dt)
        if not self.json:
            for path in filter(None, (self.video, self.record)):
                print(f"wrote {path}")
