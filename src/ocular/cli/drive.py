"""`ocular drive`: drive a world's route with a calibration."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ocular.errors import InputError

if TYPE_CHECKING:
    from ocular.calibrators import Calibration
    from ocular.evaluation.episodes import Watcher
    from ocular.experiments.workshop import Site
    from ocular.report.film import Film
    from ocular.worlds.planar import PlanarWorld


@dataclass(frozen=True)
class Drive:
    """Drive a map through its subgoals, trusting the model as far as a calibration says."""

    map: str
    """A packaged map (planar: S, L, H, U; camera: icyMain, icyMiddle, icySide), or the path of a map file or
    of an MJCF scene with start and subgoals."""
    calibration: tuple[Path, ...]
    """Files that `ocular calibrate` wrote, in the same world; each drives with the same noise."""
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
    video: Path | None = None
    """An mp4 of the first drive, all calibrations side by side."""
    record: Path | None = None
    """A Rerun recording (.rrd) of the first drive, with the first calibration; needs the extra `rerun`."""
    json: bool = False
    """Print one JSON object a drive."""

    def run(self) -> None:
        """Drive, and keep what was asked for."""
        from ocular.calibrators import load
        from ocular.experiments.worlds import open_map
        from ocular.locks import make_folder, sole_file
        from ocular.report.recording import rerun_or_error

        if not self.calibration or self.episodes < 1:
            raise InputError(
                f"{len(self.calibration)} calibrations, {self.episodes} episodes; "
                "allowed is at least 1 of each"
            )
        for option, path, ending in (("--video", self.video, ".mp4"), ("--record", self.record, ".rrd")):
            if path and path.suffix != ending:
                raise InputError(f"{option} is {path}; allowed is a file name that ends in {ending}")
        if self.record:
            rerun_or_error()  # before the drive, not after
        site, truth = open_map(self.world, self.map)
        calibrations = {path: load(path) for path in self.calibration}
        with ExitStack() as held:
            for path in filter(None, (self.video, self.record)):
                make_folder(path.parent)
                held.enter_context(sole_file(path))
            self._keep(self._drive(site, truth, calibrations), truth)

    def _drive(self, site: Site, truth: PlanarWorld, calibrations: dict[Path, Calibration]) -> list[Film]:
        """Drive, one line an episode; films of the first ones, where they are asked for."""
        import json

        from ocular.experiments.filming import filmed
        from ocular.experiments.planning import drive, route_of, summary
        from ocular.progress import progress

        total = len(route_of(truth.map, site.reach).subgoals)
        films = []
        with progress(f"driving {truth.map.name}", self.episodes * len(calibrations)) as advance:
            for seed in range(self.seed, self.seed + self.episodes):
                for path, calibration in calibrations.items():
                    how: dict[str, Any] = {
                        "planner": site.planner,
                        "reach": site.reach,
                        "most_steps": self.most_steps,
                        "threads": self.threads,
                        "watch": self._watcher(truth, path.stem, seed),
                        "site": site,
                    }
                    if seed == self.seed and (self.video or self.record):
                        films.append(film := filmed(truth, calibration, seed, **how))
                        result = film.ended()
                    else:
                        result = drive(truth, calibration, seed, **how)
                    row = {"calibration": str(path), "seed": seed, **summary(result)}
                    advance(result.outcome)
                    print(json.dumps(row) if self.json else self._line(row, total))
        return films

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
            with progress("writing the recording", len(films[0].shots)) as advance:
                write_recording(self.record, films[0], truth.map.grid, truth.dt, advance)
        if not self.json:
            for path in filter(None, (self.video, self.record)):
                print(f"wrote {path}")

    def _watcher(self, truth: PlanarWorld, who: str, seed: int) -> Watcher | None:
        if self.save is None:
            return None
        from ocular.evaluation.sightings import Sightings
        from ocular.worlds.junction import JunctionWorld

        if not isinstance(truth, JunctionWorld):
            raise InputError(
                f"--save is {self.save} in the world {self.world!r}; allowed is a folder in the world "
                "'camera', where robots have cameras"
            )
        many = len(self.calibration) > 1
        return Sightings(self.save / (f"{who}-seed-{seed}" if many else f"seed-{seed}"), truth)
