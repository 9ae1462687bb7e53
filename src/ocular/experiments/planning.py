"""Tables 2, 5 and 7 of the paper: every method drives every map of a world, one row an episode."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ocular.calibrators import Calibration
from ocular.errors import InputError, check_choice
from ocular.evaluation.episodes import EpisodeResult, Moment, Route, Watcher, run_episode
from ocular.evaluation.recordings import TrajectoryFile
from ocular.evaluation.rows import Provenance, Row, RowFile
from ocular.experiments.jobs import gibibytes, own_peak_bytes, prepare, run
from ocular.experiments.planar import PLANAR, PlanarSettings
from ocular.experiments.workshop import CalibrationSettings, Site, Workshop
from ocular.monitor import Policy
from ocular.planning.belief import BeliefMap
from ocular.planning.guarded_field import GuardedField
from ocular.planning.mppi import MPPI, PlannerSettings
from ocular.planning.scale_field import ScaleField, scale_field
from ocular.progress import Advance, progress
from ocular.seeds import integer
from ocular.worlds.map_file import PlanarMap
from ocular.worlds.planar import PlanarWorld

_COLUMNS = (
    *("world", "map", "method", "episode", "seed", "outcome", "steps", "subgoals"),
    *("step_ms_p50", "step_ms_p99", "id_steps", "id_left_region", "ood_steps", "ood_left_region"),
)
_KEY = ("world", "map", "method", "episode")
VARIANTS: dict[str, Callable[[Calibration], Calibration]] = {
    # name: what becomes of the calibrations that are driven with
    "main": lambda calibration: calibration,
    # Thresholds as the tree has them, not raised between logged speeds.
    "stepped": lambda calibration: replace(calibration, levels=None),
}


@dataclass(frozen=True, slots=True)
class PlanningSettings:
    """The paper's protocol, and its free choices: one set for all methods and maps."""

    calibration: CalibrationSettings = field(default_factory=PlanarSettings)
    planner: PlannerSettings = field(default_factory=PlannerSettings)
    episodes: int = 30
    reach: float = 0.3  # [m], a subgoal this near counts as reached
    most_steps: int = 700

    @classmethod
    def of(cls, calibration: CalibrationSettings, *, episodes: int = 30) -> PlanningSettings:
        """With the choices made for this world."""
        site = calibration.site
        return cls(calibration, planner=site.planner, episodes=episodes, reach=site.reach)

    def config(self) -> dict[str, Any]:
        """The settings as plain values, for provenance."""
        config = asdict(self)
        return {self.calibration.site.name: config.pop("calibration"), **config}


def reproduce_planning(
    settings: PlanningSettings,
    maps: Sequence[str],
    methods: Sequence[str],
    output: Path,
    work: Path,
    workers: int,
    *,
    variant: str = "main",
) -> list[Path]:
    """Drive the episodes that have no row yet; returns the files that hold them."""
    check_choice("variant", variant, VARIANTS)
    site = settings.calibration.site.name
    folder = output / site
    name = "planning" if variant == "main" else f"planning_{variant}"
    rows = RowFile(folder / f"{name}.csv", _KEY, _COLUMNS)
    provenance = Provenance(folder / f"{name}.provenance.json", settings.config())
    provenance.check()
    driven = rows.keys()
    episodes = [
        (map_name, method, episode)
        for episode in range(settings.episodes)
        for map_name in maps
        for method in methods
        if (site, map_name, method, str(episode)) not in driven
    ]
    if not episodes:
        return [rows.path, provenance.path]
    with provenance.start(workers=workers) as record:
        workshop = Workshop.under(work, settings.calibration)
        prepare(workshop, sorted({e[0] for e in episodes}), methods, workers)
        calls = [joblib.delayed(_drive)(settings, workshop, variant, *episode) for episode in episodes]
        names = [f"{m} {method} {episode}" for m, method, episode in episodes]
        peaks: dict[int, int] = {}
        made: Counter[str] = Counter()
        for result, row, pid, peak in run(calls, names, workers, "driving"):
            made[f"{row['map']} {row['method']}"] += 1
            peaks[pid] = max(peak, peaks.get(pid, 0))
            record.record([f"{what}: {count} episodes" for what, count in made.items()], gibibytes(peaks))
            # The trajectory first: a kill between the two leaves a drive without a row, to be driven again.
            if variant == "main":
                TrajectoryFile.under(folder, row["map"], row["method"]).add(row["episode"], result)
            rows.add([row])
    return [rows.path, provenance.path]


def _drive(
    settings: PlanningSettings, workshop: Workshop, variant: str, map_name: str, method: str, episode: int
) -> tuple[EpisodeResult, Row, int, int]:
    truth, site = _world(map_name, settings.calibration), settings.calibration.site
    seed = integer(settings.calibration.seed, site.name, map_name, "episode", episode)
    result = drive(
        truth,
        VARIANTS[variant](_calibration(workshop, map_name, method)),
        seed,
        planner=settings.planner,
        reach=settings.reach,
        most_steps=settings.most_steps,
        site=site,
    )
    where = {"world": site.name, "map": map_name, "method": method, "episode": episode, "seed": seed}
    return result, {**where, **summary(result)}, os.getpid(), own_peak_bytes()


# A worker drives many episodes of the same few maps and methods.
@lru_cache(maxsize=8)
def _world(map_name: str, settings: CalibrationSettings) -> PlanarWorld:
    return settings.world(map_name)


@lru_cache(maxsize=24)
def _calibration(workshop: Workshop, map_name: str, method: str) -> Calibration:
    return workshop.calibration(map_name, method)


def drive(
    truth: PlanarWorld,
    calibration: Calibration,
    seed: int,
    *,
    planner: PlannerSettings,
    reach: float = 0.3,
    most_steps: int = 700,
    threads: int = 1,
    watch: Watcher | None = None,
    site: Site = PLANAR,
    policy: Policy | None = None,
) -> EpisodeResult:
    """One episode with a calibrated model, from the map's start through its subgoals."""

    def field_on(belief: BeliefMap) -> ScaleField:
        how: dict[str, Any] = {"threads": threads, **site.rounding}
        if policy is not None:
            return GuardedField(calibration, planner.alpha, belief, policy, **how)
        return scale_field(calibration, planner.alpha, belief, **how)

    route = route_of(truth.map, reach)
    with progress(f"{calibration.method} on {truth.map.name}, subgoals", len(route.subgoals)) as advance:
        return run_episode(
            truth,
            route,
            MPPI(calibration.model, calibration.state_cov, planner),
            site.belief(truth),
            field_on,
            seed,
            max_steps=most_steps,
            watch=_telling(advance, route, watch),
            learn=None if policy is None else policy.learn,
        )


def _telling(advance: Advance, route: Route, watch: Watcher | None) -> Watcher:
    """A watcher that also tells how far the drive is."""
    goal = route.subgoals[0]

    def told(moment: Moment) -> None:
        nonlocal goal
        new = bool((moment.goal != goal).any())
        goal = moment.goal
        advance(f"step {moment.step}, {np.hypot(*moment.truth[2:4]):.2f} m/s", int(new))
        if watch is not None:
            watch(moment)

    return told


def route_of(planar_map: PlanarMap, reach: float) -> Route:
    """The map's own start and subgoals."""
    if planar_map.start is None or not planar_map.subgoals:
        raise InputError(
            f"map {planar_map.name!r} has start {planar_map.start} and {len(planar_map.subgoals)} subgoals; "
            "allowed is a map file with both, to be driven"
        )
    return Route(np.array(planar_map.start), np.array(planar_map.subgoals), reach)


def summary(result: EpisodeResult) -> Row:
    """One episode as columns."""
    (id_left, id_steps), (ood_left, ood_steps) = (result.misses(slippery=s) for s in (False, True))
    return {
        "outcome": result.outcome,
        "steps": result.steps,
        "subgoals": result.subgoals,
        "step_ms_p50": float(np.median(result.step_ms)),
        "step_ms_p99": float(np.quantile(result.step_ms, 0.99)),
        "id_steps": id_steps,
        "id_left_region": id_left,
        "ood_steps": ood_steps,
        "ood_left_region": ood_left,
    }
