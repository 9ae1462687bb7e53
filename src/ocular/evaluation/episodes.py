"""Drive a world from its start through its subgoals, and record what happened; knows no method by name.

Each control step the robot is told a state that is off by a draw from the state covariance, as in
calibration, sees the world from there, votes for its map, plans, and acts; the true state moves. An episode
ends in success when the last subgoal is within reach, in collision when the true path of a step leaves free
space, and in timeout otherwise: a subgoal that cannot be reached is a timeout, not an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ocular.conformal import squared_mahalanobis
from ocular.dynamics.linear import square_root
from ocular.errors import InputError, check_shape
from ocular.monitor import Step
from ocular.planning.belief import BeliefMap
from ocular.planning.ellipse import obstacles_of
from ocular.planning.mppi import MPPI, Plan
from ocular.planning.scale_field import ScaleField
from ocular.records import Floats, FootprintGeometry, Gaussian, Labels
from ocular.seeds import stream
from ocular.worlds.planar import heading

Outcome = Literal["success", "collision", "timeout"]
Flags = npt.NDArray[np.bool_]


@runtime_checkable
class ObservingField(ScaleField, Protocol):
    """A scale field that takes the first step of a plan from what the robot really sees, not from its map."""

    def refresh(self, cells: Labels, position: Floats, heading: float) -> None:
        """The footprint (angles, ranges) at the current pose; the belief map already has it."""


class DrivableWorld(Protocol):
    """What an episode needs of a world; batches of robots, of which it drives one."""

    @property
    def state_cov(self) -> Floats:
        """Uncertainty of the state that the robot is told."""

    @property
    def geometry(self) -> FootprintGeometry:
        """Where the footprint's cells lie."""

    def step(self, rng: np.random.Generator, states: Floats, actions: Floats) -> Floats:
        """Next states."""

    def observe(self, positions: Floats, headings: Floats) -> Labels:
        """Footprints."""

    def region(self, positions: Floats) -> Flags:
        """Whether each position is out of distribution for the nominal dynamics."""

    def is_free(self, positions: Floats) -> Flags:
        """Whether a robot may be there."""

    def path_is_free(self, start: Floats, end: Floats) -> Flags:
        """Whether a straight drive stays in free space."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One control step as it happens, for whoever watches: a video, a recording."""

    step: int
    truth: Floats  # (4,)
    estimate: Floats  # (4,), the state that the robot was told
    heading: float  # [rad]
    goal: Floats  # (2,), the subgoal under way
    cells: Labels  # (angles, ranges), the footprint just seen
    belief: BeliefMap  # the robot's own: copy what must be kept
    plan: Plan
    scale: float  # xi of the step about to be taken; NaN where the plan has no uncertainty


Watcher = Callable[[Moment], None]
Learner = Callable[[Step], object]  # told what came of each step, once it has


@dataclass(frozen=True, slots=True)
class Route:
    """Where to start, at rest, and what to reach, in this order."""

    start: Floats  # (2,) [m]
    subgoals: Floats  # (k, 2) [m]
    reach: float = 0.3  # [m], a subgoal this near counts as reached

    def __post_init__(self) -> None:
        check_shape("start", self.start, (2,))
        check_shape("subgoals", self.subgoals, (None, 2))
        if not len(self.subgoals) or not self.reach > 0:
            raise InputError(
                f"{len(self.subgoals)} subgoals, reach {self.reach} m; allowed are at least 1 and reach > 0"
            )


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """One drive of T control steps."""

    outcome: Outcome
    subgoals: int  # reached
    states: Floats  # (T + 1, 4), where the robot truly was
    headings: Floats  # (T,) [rad]
    actions: Floats  # (T, 2)
    scales: Floats  # (T,), xi of the step that was taken; NaN where the plan had no uncertainty
    step_ms: Floats  # (T,), from footprint to action
    slippery: Flags  # (T,), out of distribution at the step's true start
    missed: Flags  # (T,), the true next state lay outside of the predicted one-step region
    all_collide: Flags  # (T,), no plan was clear: the robot braked

    @property
    def steps(self) -> int:
        """How many control steps it took, T."""
        return len(self.actions)

    def misses(self, *, slippery: bool) -> tuple[int, int]:
        """How many next states left their one-step region, of how many steps, on this kind of ground."""
        here = self.slippery == slippery
        return int(self.missed[here].sum()), int(here.sum())


class _Robot:
    """What the robot knows and does: map, heading, planner."""

    def __init__(
        self, world: DrivableWorld, planner: MPPI, belief: BeliefMap, scale_field: ScaleField | None
    ) -> None:
        self._world, self._planner, self._belief, self._field = world, planner, belief, scale_field

    def control(
        self, estimate: Floats, looking: float, goal: Floats, rng: np.random.Generator
    ) -> tuple[Labels, Plan, float]:
        """One control step: what was seen, the plan, and the milliseconds from footprint to plan."""
        position = estimate[:2]
        cells = self._world.observe(position[None], np.array([looking]))[0]
        began = time.perf_counter()
        self._belief.update(cells, self._world.geometry, position, looking)
        if isinstance(self._field, ObservingField):
            self._field.refresh(cells, position, looking)
        plan = self._planner.plan(estimate, looking, goal, obstacles_of(self._belief), self._field, rng)
        return cells, plan, 1e3 * (time.perf_counter() - began)


def run_episode(
    world: DrivableWorld,
    route: Route,
    planner: MPPI,
    belief: BeliefMap,
    make_field: Callable[[BeliefMap], ScaleField] | None,
    seed: int,
    *,
    max_steps: int = 700,
    watch: Watcher | None = None,
    learn: Learner | None = None,
) -> EpisodeResult:
    """Drive the route; on an empty belief map the same seed drives the same, watched or not.

    No field: no uncertainty.
    """
    if not world.is_free(route.start[None])[0]:
        raise InputError(f"the start {route.start.tolist()} m is not free; allowed is a point in free space")
    planner.reset()
    robot = _Robot(world, planner, belief, make_field(belief) if make_field else None)
    nature, mind = stream(seed, "world"), stream(seed, "planner")
    blur = square_root(world.state_cov)
    log = _Log(np.concatenate([route.start, np.zeros(2)]))
    looking = float(np.arctan2(*(route.subgoals[0] - route.start)[::-1]))
    reached = 0
    while len(log.actions) < max_steps:
        truth = log.states[-1]
        estimate = truth + blur @ nature.standard_normal(len(truth))
        looking = float(heading(estimate[None], np.array([looking]))[0])
        goal = route.subgoals[reached]
        cells, plan, milliseconds = robot.control(estimate, looking, goal, mind)
        scale = _scale_of(plan, planner, estimate)
        if watch is not None:
            watch(Moment(len(log.actions), truth, estimate, looking, goal, cells, belief, plan, scale))
        following = world.step(nature, truth[None], plan.action[None])[0]
        if learn is not None:
            learn(Step(estimate, looking, plan.action, cells, following))
        missed = _outside(plan, following, planner.quantile)
        slippery = bool(world.region(truth[None, :2])[0])
        log.add(following, plan, (looking, scale, milliseconds, slippery, missed, plan.all_collide))
        if not world.path_is_free(truth[None, :2], following[None, :2])[0]:
            return log.close("collision", reached)
        while np.linalg.norm(following[:2] - route.subgoals[reached]) <= route.reach:
            reached += 1
            if reached == len(route.subgoals):
                return log.close("success", reached)
    return log.close("timeout", reached)


def _outside(plan: Plan, following: Floats, quantile: float) -> bool:
    first = Gaussian(plan.regions.mean[0], plan.regions.cov[0])
    if not np.isfinite(first.cov).all():
        return False
    return bool(squared_mahalanobis(first, following) > quantile)


def _scale_of(plan: Plan, planner: MPPI, estimate: Floats) -> float:
    """By how much the region of the step about to be taken was inflated."""
    if not plan.regions.cov[0].any():
        return float("nan")
    uncalibrated = planner.model.predict(Gaussian(estimate, planner.state_cov), plan.action).cov
    return float(np.trace(plan.regions.cov[0]) / np.trace(uncalibrated))


class _Log:
    """The lists that grow during an episode."""

    def __init__(self, start: Floats) -> None:
        self.states = [start]
        self.actions: list[Floats] = []
        self._steps: list[tuple[float, float, float, bool, bool, bool]] = []

    def add(self, following: Floats, plan: Plan, step: tuple[float, float, float, bool, bool, bool]) -> None:
        """Append one control step."""
        self.states.append(following)
        self.actions.append(plan.action)
        self._steps.append(step)

    def close(self, outcome: Outcome, subgoals: int) -> EpisodeResult:
        """The record of the episode."""
        headings, scales, step_ms, slippery, missed, all_collide = (
            np.array(column) for column in zip(*self._steps, strict=True)
        )
        return EpisodeResult(
            outcome=outcome,
            subgoals=subgoals,
            states=np.array(self.states),
            headings=headings,
            actions=np.array(self.actions),
            scales=scales,
            step_ms=step_ms,
            slippery=slippery,
            missed=missed,
            all_collide=all_collide,
        )
