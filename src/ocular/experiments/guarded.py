"""Drives on ice more slippery than any logged, with a monitor that only reports, and with one that acts."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import joblib

from ocular.calibrators import Calibration
from ocular.evaluation.episodes import Moment
from ocular.evaluation.rows import Provenance, Row, RowFile
from ocular.experiments.jobs import gibibytes, own_peak_bytes, prepare, run
from ocular.experiments.planar import PlanarSettings
from ocular.experiments.planning import drive, summary
from ocular.experiments.workshop import CalibrationSettings, Workshop
from ocular.monitor import Policy, Responses
from ocular.monitor.policy import Response
from ocular.planning.mppi import PlannerSettings
from ocular.seeds import integer

SLIPS = (1.3, 1.6, 2.0)  # the first is the one that was logged
METHODS = ("nocp", "ocular")
ANSWERS: tuple[Response, ...] = ("keep", "adapt")  # keep drives as if there were no monitor
_KEY = ("map", "method", "slip", "answer", "episode")
_COLUMNS = (
    *_KEY,
    *("seed", "outcome", "steps", "subgoals", "alarm_step", "ood_steps", "ood_left_region"),
    *("ood_steps_after", "ood_left_region_after"),
)
NEVER = -1  # the alarm's step where there was none


@dataclass(frozen=True, slots=True)
class GuardedSettings:
    """Episodes go round the maps in turn, each with the same noise whatever drives."""

    calibration: CalibrationSettings = field(default_factory=PlanarSettings)
    planner: PlannerSettings = field(default_factory=PlannerSettings)
    episodes: int = 30
    delta: float = 0.01
    most_steps: int = 700

    def config(self) -> dict[str, Any]:
        """The settings as plain values, for provenance; episodes may be added later."""
        config = asdict(self)
        del config["episodes"]
        return config


@dataclass(frozen=True, slots=True)
class Drive:
    """One drive to be made."""

    map_name: str
    method: str
    slip: float
    answer: Response
    episode: int

    def key(self) -> tuple[str, ...]:
        """As in the rows."""
        return (self.map_name, self.method, str(self.slip), self.answer, str(self.episode))


def drive_guarded(settings: GuardedSettings, output: Path, work: Path, workers: int) -> list[Row]:
    """Make the drives that have no row yet; returns the rows of all."""
    folder = output / settings.calibration.site.name
    rows = RowFile(folder / "guarded.csv", _KEY, _COLUMNS)
    provenance = Provenance(folder / "guarded.provenance.json", settings.config())
    provenance.check()
    there = rows.keys()
    missing = [one for one in wanted_drives(settings) if one.key() not in there]
    if not missing:
        return rows.read()
    with provenance.start(workers=workers) as record:
        workshop = Workshop.under(work, settings.calibration)
        prepare(workshop, sorted({one.map_name for one in missing}), METHODS, workers)
        calls = [joblib.delayed(_drive)(settings, workshop, one) for one in missing]
        peaks: dict[int, int] = {}
        names = [" ".join(one.key()) for one in missing]
        for made, (row, pid, peak) in enumerate(run(calls, names, workers, "driving"), start=1):
            peaks[pid] = max(peak, peaks.get(pid, 0))
            record.record([f"{made} drives"], gibibytes(peaks))
            rows.add([row])
    return rows.read()


def wanted_drives(settings: GuardedSettings) -> list[Drive]:
    """Every drive, episode by episode, so that a run that is cut short has something of all."""
    maps = settings.calibration.site.maps
    return [
        Drive(maps[episode % len(maps)], method, slip, answer, episode)
        for episode in range(settings.episodes)
        for slip in SLIPS
        for method in METHODS
        for answer in ANSWERS
    ]


def _drive(settings: GuardedSettings, workshop: Workshop, one: Drive) -> tuple[Row, int, int]:
    site, calibration = settings.calibration.site, _calibration(workshop, one.map_name, one.method)
    policy = Policy(
        calibration,
        settings.planner.alpha,
        responses=Responses(changed=one.answer),
        delta=settings.delta,
    )
    alarms: list[int] = []

    def watch(moment: Moment) -> None:
        if any(policy.monitor.changed):
            alarms.append(moment.step)

    seed = integer(settings.calibration.seed, site.name, one.map_name, "guarded", one.episode)
    result = drive(
        site.open(one.map_name, one.slip),
        calibration,
        seed,
        planner=settings.planner,
        reach=site.reach,
        most_steps=settings.most_steps,
        watch=watch,
        site=site,
        policy=policy,
    )
    whole = summary(result)
    after = result.slippery[alarms] if alarms else result.slippery[:0]
    missed = result.missed[alarms] if alarms else result.missed[:0]
    row = {
        **dict(zip(_KEY, one.key(), strict=True)),
        **{name: whole[name] for name in ("outcome", "steps", "subgoals", "ood_steps", "ood_left_region")},
        "seed": seed,
        "alarm_step": alarms[0] if alarms else NEVER,
        "ood_steps_after": int(after.sum()),
        "ood_left_region_after": int(missed[after].sum()),
    }
    return row, os.getpid(), own_peak_bytes()


@lru_cache(maxsize=8)
def _calibration(workshop: Workshop, map_name: str, method: str) -> Calibration:
    return workshop.calibration(map_name, method)
