"""Model predictive path integral control with calibrated regions: section 4.4 and appendix C of the paper.

One update is four statements: sample sequences around the nominal one, price their rollouts, weigh them by
exp(-cost / temperature), average. What the paper leaves open is set here once for all methods and maps:

- three updates a control step and ten more before the first; the nominal sequence starts as noise, and is
  shifted by one step with a zero appended;
- the noise is coloured: neighbouring steps of a sequence correlate by a half, at unit variance. White noise
  hardly ever brakes or turns for several steps on end, and LUCCa overshoots corners with it (four drives on
  map U took 333 ± 59 steps; 277 ± 9 with a correlation of 0.5, 275 ± 5 with 0.8);
- the nominal sequence itself, zero action and full braking are among the samples;
- if every sample's regions meet an obstacle, the plan is to brake: none is safe, so none chases the goal;
- the weighted mean of clear sequences need not be clear: then the cheapest clear sample takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from ocular.dynamics import GaussianModel, LinearGaussian
from ocular.errors import (
    InputError,
    check_array,
    check_covariance,
    check_finite,
    check_number,
    check_probability,
    check_shape,
    check_type,
    check_whole,
)
from ocular.planning.cost import PLANAR_WEIGHTS, CostWeights
from ocular.planning.ellipse import Obstacles, ellipse, hits_obstacle, path_hits
from ocular.planning.noise import Array32, draw_indices, perturb
from ocular.planning.rollout import Brake, Priced, Rollout
from ocular.planning.scale_field import ScaleField, check_field, check_heading
from ocular.records import FARTHEST, Floats, Gaussian

MOST_STEPS, MOST_UPDATES = 2**24, 1000
LEAST, MOST = 1e-9, 1e9  # what single precision can make of a setting


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """The planner's constants; the defaults are those of the planar experiments."""

    samples: int = 2048
    horizon: int = 9  # control steps
    temperature: float = 0.25
    noise: float = 1.0  # standard deviation of the control noise [m/s^2]
    correlation: float = 0.5  # of the control noise between neighbouring steps
    iterations: int = 3  # updates a control step
    warmup: int = 10  # further updates before the first control step
    max_action: float = 0.9  # bound of each action entry [m/s^2]
    alpha: float = 0.1  # a region may miss the next state this often
    weights: CostWeights = PLANAR_WEIGHTS

    def __post_init__(self) -> None:
        check_probability("alpha", self.alpha)
        for name in ("samples", "horizon", "iterations", "warmup"):
            check_whole(name, getattr(self, name))
        for name in ("temperature", "noise", "max_action", "correlation"):
            check_number(name, getattr(self, name))
        check_type("weights", self.weights, CostWeights)
        if self.samples * self.horizon > MOST_STEPS or max(self.iterations, self.warmup) > MOST_UPDATES:
            raise InputError(
                f"{self.samples} samples of {self.horizon} steps, updated {self.iterations} and "
                f"{self.warmup} times; allowed are {MOST_STEPS:,} steps and {MOST_UPDATES:,} updates"
            )
        for name, least in (("samples", 4), ("horizon", 1), ("iterations", 1), ("warmup", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; allowed is at least {least}")
        for name in ("temperature", "noise", "max_action"):
            if not LEAST <= getattr(self, name) <= MOST:
                raise InputError(
                    f"{name} is {getattr(self, name)}; allowed is a positive number, {LEAST:g} to {MOST:g}"
                )
        if not 0 <= self.correlation < 1:
            raise InputError(f"correlation is {self.correlation}; allowed is 0 <= correlation < 1")


@dataclass(frozen=True, slots=True)
class Plan:
    """What the planner decided, and what it expects to come of it."""

    action: Floats  # (m,), to apply now
    nominal: Floats  # (H, m), the sequence it belongs to
    regions: Gaussian  # (H, d), calibrated, along that sequence
    collisions: int  # how many of these regions meet a known obstacle
    all_collide: bool  # no sample was clear: the sequence brakes
    samples: Array32  # (H, m, n), the sequences of the last update
    costs: Array32  # (n,), theirs


class MPPI:
    """A receding-horizon planner; it remembers its nominal sequence from one control step to the next."""

    def __init__(self, model: GaussianModel, state_cov: Floats, settings: PlannerSettings) -> None:
        if not isinstance(model, LinearGaussian):
            raise InputError(f"the planner was given a {type(model).__name__}; allowed is a LinearGaussian")
        check_type("settings", settings, PlannerSettings)
        check_shape("state_cov", state_cov, (model.state_dim, model.state_dim))
        check_covariance("state_cov", state_cov)
        if model.state_dim != 4 or model.action_dim != 2:
            raise InputError(
                f"the model has {model.state_dim} states and {model.action_dim} actions; allowed are the "
                "4 states (x, y, vx, vy) and 2 actions of a robot on a plane"
            )
        self.model = model
        self.state_cov = state_cov
        self.settings = settings
        self.brake = Brake(model, settings.max_action)
        self._rollout = Rollout(model, float(chi2.isf(settings.alpha, model.state_dim)))
        self._nominal: Array32 | None = None

    @property
    def quantile(self) -> float:
        """Regions hold what is within this squared Mahalanobis distance."""
        return self._rollout.quantile

    def reset(self) -> None:
        """Forget the nominal sequence, as before the first control step."""
        self._nominal = None

    def plan(
        self,
        state: Floats,  # (4,)
        heading: float,  # [rad]
        goal: Floats,  # (2,) [m]
        obstacles: Obstacles,
        scale_field: ScaleField | None,
        rng: np.random.Generator,
    ) -> Plan:
        """The next action; without a scale field the regions are their centres and uncertainty is ignored."""
        for name, vector, length in (("state", state, 4), ("goal", goal, 2)):
            check_array(name, vector)
            check_shape(name, vector, (length,))
            check_finite(name, vector, FARTHEST)
        check_heading(heading)
        check_type("obstacles", obstacles, Obstacles)
        if scale_field is not None:
            check_field(scale_field)
        # Of one type, for which the kernels are compiled already.
        state, goal, heading = state.astype(np.float64), goal.astype(np.float64), float(heading)
        problem = _Problem(
            self._rollout, state, self.state_cov, heading, goal, obstacles, scale_field, self.settings
        )
        brake = self.brake.sequence(state, self.settings.horizon).astype(np.float32)
        updates = self.settings.iterations
        if self._nominal is None:
            updates += self.settings.warmup
            self._nominal = self._sample(rng, np.zeros_like(brake), brake)[:, :, -1]
        nominal = self._nominal
        for _ in range(updates):
            actions = self._sample(rng, nominal, brake)  # v = clip(u + ε)
            priced = problem.price(actions)  # J(v), eq. C.1
            weights = softmin(priced.costs, self.settings.temperature)  # w ∝ exp(-J / λ)
            nominal = actions @ weights  # u ← Σ w v
        plan = self._decide(problem, nominal, actions, priced, brake)
        self._nominal = np.concatenate([plan.nominal[1:], np.zeros((1, 2))]).astype(np.float32)
        return plan

    def _sample(self, rng: np.random.Generator, nominal: Array32, brake: Array32) -> Array32:
        """Sequences (H, m, n): zero, braking, the nominal one, then noise around that."""
        s = self.settings
        indices = draw_indices(rng, (*nominal.shape, s.samples))
        actions = perturb(nominal, indices, std=s.noise, correlation=s.correlation, bound=s.max_action)
        actions[:, :, 0] = 0.0
        actions[:, :, 1] = brake
        actions[:, :, 2] = nominal
        return actions

    def _decide(
        self, problem: _Problem, nominal: Array32, actions: Array32, priced: Priced, brake: Array32
    ) -> Plan:
        clear = priced.collisions == 0
        if not clear.any():
            nominal = brake
        regions, collisions = problem.predict(nominal)
        if collisions and clear.any():
            nominal = actions[:, :, np.argmin(np.where(clear, priced.costs, np.inf))]
            regions, collisions = problem.predict(nominal)
        return Plan(
            action=np.asarray(nominal[0], np.float64),
            nominal=np.asarray(nominal, np.float64),
            regions=regions,
            collisions=collisions,
            all_collide=not clear.any(),
            samples=actions,
            costs=priced.costs,
        )


@dataclass(frozen=True, slots=True)
class _Problem:
    """What stays the same during one control step."""

    rollout: Rollout
    state: Floats
    cov: Floats
    heading: float
    goal: Floats
    obstacles: Obstacles
    scale_field: ScaleField | None
    settings: PlannerSettings

    def price(self, actions: Array32) -> Priced:
        """What these sequences cost."""
        return self.rollout.price(
            self.state,
            self.cov,
            self.heading,
            actions,
            self.goal,
            self.obstacles,
            self.settings.weights,
            self.scale_field,
        )

    def predict(self, nominal: Array32) -> tuple[Gaussian, int]:
        """The regions along one sequence, and how many of them meet an obstacle."""
        sequence = np.ascontiguousarray(nominal[:, :, None], np.float32)
        regions = self.rollout.regions(self.state, self.cov, self.heading, sequence, self.scale_field)
        if self.scale_field is None:
            return regions, int(self.price(sequence).collisions[0])
        way = np.concatenate([self.state[None, :2], regions.mean[:, :2]])
        collisions, blocked = 0, False
        for here, there, cov in zip(way[:-1], way[1:], regions.cov, strict=True):
            blocked = blocked or path_hits(here[0], here[1], there[0], there[1], self.obstacles)
            shape = ellipse(there, cov, self.rollout.quantile)
            collisions += bool(blocked or hits_obstacle(*shape, self.obstacles))
        return regions, collisions


def softmin(costs: Array32, temperature: float) -> Array32:
    """Weights that sum to one, in proportion to exp(-cost / temperature)."""
    weights = np.exp((costs.min() - costs) / np.float32(temperature))
    return np.asarray(weights / weights.sum(), np.float32)
