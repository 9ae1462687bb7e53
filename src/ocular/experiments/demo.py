"""A few minutes that show the point: coverage on one map, two drives beside each other, report and video."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ocular.experiments.coverage import CoverageSettings, reproduce_coverage
from ocular.experiments.filming import filmed
from ocular.experiments.planning import PlanningSettings, reproduce_planning
from ocular.experiments.workshop import Workshop
from ocular.progress import progress
from ocular.report.film import Film
from ocular.report.video import count_frames, write_video
from ocular.seeds import integer

METHODS = ("nocp", "ocular")  # side by side
EPISODE = 0


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demo made."""

    coverage: Path  # rows
    planning: Path
    films: list[Film]


def make_rows(map_name: str, output: Path, work: Path, workers: int) -> Demo:
    """Coverage of all methods on one map, and a drive with OCULAR and one without calibration."""
    settings = CoverageSettings.quick(seed=0)
    coverage, *_ = reproduce_coverage(settings, "main", (map_name,), output, work, workers)
    planning = PlanningSettings(settings.calibration, episodes=1)
    rows, *_ = reproduce_planning(planning, (map_name,), METHODS, output, work, workers)
    workshop, truth = Workshop.under(work, settings.calibration), settings.calibration.world(map_name)
    seed = integer(settings.calibration.seed, "planar", map_name, "episode", EPISODE)
    films = []
    with progress("filming", len(METHODS)) as advance:
        for method in METHODS:
            calibration = workshop.calibration(map_name, method)
            film = filmed(
                truth,
                calibration,
                seed,
                planner=planning.planner,
                reach=planning.reach,
                most_steps=planning.most_steps,
            )
            films.append(film)
            advance(method)
    return Demo(coverage, rows, films)


def make_video(path: Path, map_name: str, films: list[Film]) -> None:
    """The two drives side by side."""
    truth = CoverageSettings.quick(seed=0).calibration.world(map_name)
    with progress("drawing the video", count_frames(films)) as advance:
        write_video(path, films, truth.map.grid, truth.dt, advance)
