"""A filter in front of any planner: is the next calibrated region clear, and if not, which action's is?

The promise is about one step (section 4.4): if the region of an action is clear of known obstacles, and of
unseen ground where that is asked for, the next state collides with probability at most alpha. A filter cannot
keep a robot out of a state from which no action is clear; then it brakes, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from ocular.dynamics.linear import LinearGaussian
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
from ocular.planning.ellipse import Obstacles, ellipse, hits_obstacle, path_hits, within_seen
from ocular.planning.rollout import Array32, Brake, Rollout
from ocular.planning.scale_field import ScaleField, check_field, check_heading
from ocular.records import FARTHEST, Floats, Gaussian

MOST_CHOICES = 1000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the filter found out about a proposed action."""

    region: Gaussian  # (d,), calibrated prediction of the proposed action
    clear: bool  # the proposed action's region is clear
    action: Floats  # (m,), the proposed one, else the nearest clear one, else braking
    action_clear: bool  # the region of `action` is clear: False means that none was


def is_clear(start: Floats, mean: Floats, cov: Floats, quantile: float, obstacles: Obstacles) -> bool:
    """Whether neither the region nor the way to its centre meets a known obstacle; states begin with x, y."""
    if path_hits(start[0], start[1], mean[0], mean[1], obstacles):
        return False
    return not hits_obstacle(*ellipse(mean, cov, quantile), obstacles)


@dataclass(frozen=True)
class SafetyFilter:
    """Checks actions one step ahead, against a square grid of alternatives within the action bounds."""

    model: LinearGaussian
    state_cov: Floats  # (d, d)
    max_action: float = 0.9  # bound of each action entry [m/s^2]
    alpha: float = 0.1
    choices: int = 9  # alternatives along each action axis
    seen_only: bool = False  # a region must also stay on ground that has been seen

    def __post_init__(self) -> None:
        check_probability("alpha", self.alpha)
        check_type("model", self.model, LinearGaussian)
        if (self.model.state_dim, self.model.action_dim) != (4, 2):
            raise InputError(
                f"the model has {self.model.state_dim} states and {self.model.action_dim} actions; allowed "
                "are the 4 states (x, y, vx, vy) and 2 actions of a robot on a plane"
            )
        check_shape("state_cov", self.state_cov, (4, 4))
        check_covariance("state_cov", self.state_cov)
        check_number("max_action", self.max_action)
        check_whole("choices", self.choices, most=MOST_CHOICES)
        check_type("seen_only", self.seen_only, bool)
        if not 0 < self.max_action <= FARTHEST or self.choices < 2:
            raise InputError(
                f"max_action={self.max_action}, choices={self.choices}; "
                "allowed are max_action > 0 and choices >= 2"
            )

    def check(
        self, state: Floats, heading: float, action: Floats, obstacles: Obstacles, scale_field: ScaleField
    ) -> Verdict:
        """Judge the proposed action at this state, and name the one to apply."""
        for name, vector, length in (("state", state, 4), ("action", action, 2)):
            check_array(name, vector)
            check_shape(name, vector, (length,))
            check_finite(name, vector, FARTHEST)
        check_heading(heading)
        check_type("obstacles", obstacles, Obstacles)
        check_field(scale_field)
        state, action, heading = state.astype(np.float64), action.astype(np.float64), float(heading)
        candidates = np.concatenate(
            [action[None], self._alternatives(action), Brake(self.model, self.max_action).sequence(state, 1)]
        )
        regions = self._regions(state, heading, candidates, scale_field)
        clear = [
            self._is_clear(state, mean, cov, obstacles)
            for mean, cov in zip(regions.mean, regions.cov, strict=True)
        ]
        chosen = clear.index(True) if any(clear) else len(candidates) - 1
        return Verdict(
            region=Gaussian(regions.mean[0], regions.cov[0]),
            clear=clear[0],
            action=candidates[chosen],
            action_clear=clear[chosen],
        )

    def _alternatives(self, action: Floats) -> Floats:
        """The action grid (k, 2), nearest to the proposed action first."""
        axis = np.linspace(-self.max_action, self.max_action, self.choices)
        grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
        return np.asarray(grid[np.argsort(np.linalg.norm(grid - action, axis=1), kind="stable")])

    def _regions(self, state: Floats, heading: float, actions: Floats, scale_field: ScaleField) -> Gaussian:
        sequences: Array32 = np.ascontiguousarray(actions.T[None], np.float32)
        bundle = next(self._rollout.steps(state, self.state_cov, heading, sequences, scale_field))
        covs = np.where(bundle.lost, np.inf, bundle.covs.astype(np.float64))
        return Gaussian(bundle.means.T.astype(np.float64), np.moveaxis(covs, -1, 0))

    def _is_clear(self, state: Floats, mean: Floats, cov: Floats, obstacles: Obstacles) -> bool:
        quantile = self._rollout.quantile
        if not is_clear(state, mean, cov, quantile, obstacles):
            return False
        return not self.seen_only or bool(within_seen(*ellipse(mean, cov, quantile), obstacles))

    @property
    def _rollout(self) -> Rollout:
        return Rollout(self.model, float(chdtri(self.model.state_dim, self.alpha)))
