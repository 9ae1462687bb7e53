"""A soak: one robot takes 30,000 control steps. No leak, and the last steps cost what the first did.

It drives lap after lap and keeps everything it has: map, latents, planner, monitor and policy. Its control
steps are those of the experiments but for the number of samples. They cost processor time, from one plan to
the next with all that lies between. Processors are faster at some times than at others, so in the first and
in the last tenth of the steps a young robot, which began a lap earlier, drives the same in turns with it:
what counts is how much longer the old one takes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from ocular.calibrators import Calibration
from ocular.evaluation.episodes import Moment, run_episode
from ocular.experiments.limits import Limited
from ocular.experiments.planning import route_of
from ocular.monitor import Monitor, Novelty, Policy, Responses
from ocular.planning.belief import BeliefMap
from ocular.planning.guarded_field import GuardedField
from ocular.planning.mppi import MPPI, PlannerSettings
from ocular.progress import progress
from ocular.seeds import integer, stream
from ocular.worlds.planar import PlanarWorld
from stress.load import MAP, task
from stress.memory import watched_memory

SETTINGS = replace(PlannerSettings(), samples=256)
NEW_BELOW = 0.001  # footprints as unlike those of the logs as this widen all scales
TENTH = 0.1  # share of the steps, at the start and at the end, that are timed
WATCHED_CELLS = 5  # so few that the monitor's references soon are as many as they may be
READINGS = 100


class Robot:
    """All that a robot keeps from one lap to the next."""

    def __init__(self, world: PlanarWorld, calibration: Calibration, novelty: Novelty) -> None:
        responses = Responses(changed="adapt", new="worst", new_below=NEW_BELOW)
        self._world, self._route = world, route_of(world.map, 0.3)
        self._belief = BeliefMap(world.map.grid.names)
        self.policy = Policy(calibration, SETTINGS.alpha, responses=responses, novelty=novelty)
        self._field = GuardedField(calibration, SETTINGS.alpha, self._belief, self.policy)
        self._planner = MPPI(calibration.model, calibration.state_cov, SETTINGS)

    def lap(self, number: int, most_steps: int) -> list[float]:
        """Milliseconds of processor time from each plan of the lap to the next."""
        clock: list[float] = []

        def watch(_: Moment) -> None:
            clock.append(1e3 * time.process_time())

        run_episode(
            self._world,
            self._route,
            self._planner,
            self._belief,
            lambda _: self._field,
            integer(0, "soak", number),
            max_steps=most_steps,
            watch=watch,
            learn=self.policy.learn,
        )
        return [after - before for before, after in pairwise(clock)]


@dataclass
class Times:
    """Of the steps at one end of the soak [ms]."""

    old: list[float] = field(default_factory=list)
    young: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """How much longer the old robot takes than the young one."""
        return median(self.old) / median(self.young)


def soak(scratch: Path, quick: bool) -> Iterator[Limited]:  # noqa: ARG001
    """The robot's laps, then the monitor alone for very long."""
    steps, longest_lap, scores = (200, 20, 12_000) if quick else (30_000, 700, 1_000_000)
    world, logs, calibration = task()
    novelty = Novelty.fit(logs.inputs.footprints, seed=0)
    del logs
    yield from drive_long(world, calibration, novelty, steps, longest_lap)
    yield from watch_long(calibration, scores)


def drive_long(
    world: PlanarWorld, calibration: Calibration, novelty: Novelty, steps: int, longest_lap: int
) -> Iterator[Limited]:
    """Laps until there were so many steps; memory is read between the first and the last tenth."""

    def begin() -> Robot:
        robot = Robot(world, calibration, novelty)
        robot.lap(0, longest_lap)
        return robot

    old, done, number = begin(), 0, 1
    young: Robot | None = None
    first, last = Times(), Times()
    with watched_memory() as memory, progress(f"steps on map {MAP}", steps) as advance:
        while done < steps:
            times = first if done < TENTH * steps else last if done >= (1 - TENTH) * steps else None
            taken = old.lap(number, longest_lap)
            if times is None:
                young = None
                memory.read()
            else:
                young = young or begin()
                times.old += taken
                times.young += young.lap(number, longest_lap)
            done, number = done + len(taken) + 1, number + 1
            advance(f"lap {number}", len(taken) + 1)
    yield Limited("soak_step_time_drift", "<=1.1", last.ratio / first.ratio, done)
    yield from memory.figures("soak", (2.0, 0.25), done)


def watch_long(calibration: Calibration, count: int) -> Iterator[Limited]:
    """A monitor alone, on scores of a few cells that are drawn anew from the logged ones."""
    assert calibration.scores is not None
    monitor, rng = Monitor(calibration), stream(0, "soak", "scores")
    known = [calibration.scores.of_cell(cell) for cell in range(WATCHED_CELLS)]
    with watched_memory() as memory, progress("scores", READINGS) as advance:
        for _ in range(READINGS):
            for cell in rng.integers(WATCHED_CELLS, size=count // READINGS).tolist():
                monitor.score(cell, float(rng.choice(known[cell])))
            memory.read()
            advance("")
    yield from memory.figures("soak_monitor", (2.0, 0.02), count)
