"""Roll out every sampled action sequence at once, one horizon step after the other, and price it.

Samples are the last, contiguous axis of every array: the loops over them vectorise for any small linear
model. Between two steps the scale field is asked once for all samples, which lets it share its work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from ocular.dynamics.linear import LinearGaussian
from ocular.planning.cost import (
    CostWeights,
    add_distance,
    add_point_collisions,
    add_uncertainty,
    uncertainty_weights,
)
from ocular.planning.ellipse import Obstacles
from ocular.planning.scale_field import ScaleField
from ocular.records import Floats, Gaussian

Array32 = npt.NDArray[np.float32]

RESTING_SPEED = 1e-6  # [m/s], below it a predicted robot keeps its last heading
LARGEST_TRACE = 1e12  # a calibrated covariance beyond this is as good as the whole space


@dataclass(frozen=True, slots=True)
class Bundle:
    """All samples after one horizon step."""

    before: Array32  # (d, n), the means one step earlier
    means: Array32  # (d, n)
    covs: Array32  # (d, d, n), calibrated
    lost: npt.NDArray[np.bool_]  # (n,), an infinite scale made the region the whole space


@dataclass(frozen=True, slots=True)
class Priced:
    """What each sampled sequence costs."""

    costs: Array32  # (n,)
    collisions: npt.NDArray[np.int32]  # (n,), how many of the predicted regions meet an obstacle


@njit(cache=True)
def _advance_means(A: Array32, B: Array32, means: Array32, actions: Array32) -> Array32:
    """A mu + B a for every sample; zeros in A and B cost nothing."""
    d, n = means.shape
    following = np.zeros((d, n), np.float32)
    for i in range(d):
        row = following[i]
        for k in range(d):
            if A[i, k] != 0.0:
                gain, source = A[i, k], means[k]
                for s in range(n):
                    row[s] += gain * source[s]
        for k in range(B.shape[1]):
            if B[i, k] != 0.0:
                gain, source = B[i, k], actions[k]
                for s in range(n):
                    row[s] += gain * source[s]
    return following


@njit(cache=True)
def _mean_path(A: Array32, B: Array32, state: Array32, sequence: Array32) -> Array32:
    """The means (H, d) along one sequence (H, m, 1)."""
    means = state.copy().reshape(-1, 1)
    path = np.empty((len(sequence), len(state)), np.float32)
    for h in range(len(sequence)):
        means = _advance_means(A, B, means, sequence[h])
        path[h] = means[:, 0]
    return path


@njit(cache=True)
def _left_product(A: Array32, covs: Array32) -> Array32:
    """(A Sigma)^T for every sample: applied twice it is A Sigma A^T."""
    d, n = covs.shape[0], covs.shape[2]
    product = np.zeros((d, d, n), np.float32)
    for i in range(d):
        for k in range(d):
            if A[i, k] != 0.0:
                gain = A[i, k]
                for j in range(d):
                    row, source = product[j, i], covs[k, j]
                    for s in range(n):
                        row[s] += gain * source[s]
    return product


@njit(cache=True)
def _advance_covs(
    A: Array32, Q: Array32, covs: Array32, xi: npt.NDArray[np.float64], lost: npt.NDArray[np.bool_]
) -> Array32:
    """xi (A Sigma A^T + Q) for every sample that is not lost; marks those that become lost."""
    d, n = covs.shape[0], covs.shape[2]
    following = _left_product(A, _left_product(A, covs))
    trace = np.zeros(n, np.float32)
    for i in range(d):
        for j in range(d):
            row, noise = following[i, j], Q[i, j]
            for s in range(n):
                row[s] += noise
        row = following[i, i]
        for s in range(n):
            trace[s] += row[s]
    gain = np.empty(n, np.float32)
    for s in range(n):
        # Negated so that a scale that is not a number loses the sample too.
        if lost[s] or not xi[s] * trace[s] <= LARGEST_TRACE:
            lost[s] = True
            gain[s] = 0.0
        else:
            gain[s] = xi[s]
    for i in range(d):
        for j in range(d):
            row = following[i, j]
            for s in range(n):
                row[s] *= gain[s]
    return following


@njit(cache=True)
def _turn(means: Array32, headings: Array32) -> None:
    """Let the headings follow the predicted velocities; resting samples keep theirs."""
    for s in range(means.shape[1]):
        vx, vy = means[2, s], means[3, s]
        if vx * vx + vy * vy > RESTING_SPEED * RESTING_SPEED:
            headings[s] = np.arctan2(vy, vx)


@njit(cache=True)
def _price_points(
    A: Array32,
    B: Array32,
    state: Array32,  # (d,)
    actions: Array32,  # (H, m, n)
    goal: Array32,
    map_: Obstacles,
    weights: tuple[float, float, float],  # running, terminal, collision
    costs: Array32,
    collisions: npt.NDArray[np.int32],
) -> None:
    """The whole rollout without uncertainty, in one go: nothing has to be asked between the steps."""
    running, terminal, collision = weights
    horizon, _, n = actions.shape
    blocked = np.zeros(n, np.bool_)
    means = np.empty((len(state), n), np.float32)
    for i in range(len(state)):
        means[i] = state[i]
    for h in range(horizon):
        before, means = means, _advance_means(A, B, means, actions[h])
        add_distance(means, goal, terminal if h == horizon - 1 else running, costs)
        add_point_collisions(before, means, map_, collision, blocked, costs, collisions)


@njit(cache=True)
def _brake(A: Floats, B: Floats, gain: Floats, bound: float, state: Floats, horizon: int) -> Floats:
    """Actions (H, m) that each ask for zero velocity next, shortened to fit the bound."""
    actions = np.empty((horizon, B.shape[1]))
    for h in range(horizon):
        stop = gain @ state
        actions[h] = stop * min(1.0, bound / max(np.abs(stop).max(), 1e-12))
        state = A @ state + B @ actions[h]
    return actions


class Brake:
    """Stops a robot on a straight line, or slows it as much as the bound on each action entry allows."""

    def __init__(self, model: LinearGaussian, bound: float) -> None:
        self._A, self._B = (np.ascontiguousarray(M, np.float64) for M in (model.A, model.B))
        self._gain = -np.linalg.pinv(self._B[2:]) @ self._A[2:]
        self._bound = float(bound)

    def sequence(self, state: Floats, horizon: int) -> Floats:
        """Braking actions (H, m) from this state on."""
        start = np.ascontiguousarray(state, np.float64)
        actions: Floats = _brake(self._A, self._B, self._gain, self._bound, start, horizon)
        return actions


class Rollout:
    """Propagates means and calibrated covariances through a linear Gaussian model (section 4.4)."""

    def __init__(self, model: LinearGaussian, quantile: float) -> None:
        self.quantile = quantile  # of the chi-square distribution: how large the regions are
        self._A, self._B, self._Q = (np.ascontiguousarray(M, np.float32) for M in (model.A, model.B, model.Q))

    def steps(
        self,
        state: Floats,  # (d,)
        cov: Floats,  # (d, d)
        heading: float,
        actions: Array32,  # (H, m, n)
        field: ScaleField,
    ) -> Iterator[Bundle]:
        """The samples after each step: predict with the model, multiply by xi, and predict on from there."""
        n = actions.shape[2]
        means = np.repeat(np.asarray(state, np.float32)[:, None], n, axis=1)
        covs = np.repeat(np.asarray(cov, np.float32)[:, :, None], n, axis=2)
        headings = np.full(n, heading, np.float32)
        lost = np.zeros(n, bool)
        for action in actions:
            xi = field.scales(np.ascontiguousarray(means.T), headings, np.ascontiguousarray(action.T))
            before, means = means, _advance_means(self._A, self._B, means, action)
            covs = _advance_covs(self._A, self._Q, covs, xi, lost)
            _turn(means, headings)
            yield Bundle(before, means, covs, lost.copy())

    def price(
        self,
        state: Floats,
        cov: Floats,
        heading: float,
        actions: Array32,  # (H, m, n)
        goal: Floats,  # (2,) [m]
        map_: Obstacles,
        weights: CostWeights,
        field: ScaleField | None,
    ) -> Priced:
        """Eq. C.1 for every sample; without a scale field the regions shrink to their centres."""
        horizon, _, n = actions.shape
        costs, collisions, blocked = np.zeros(n, np.float32), np.zeros(n, np.int32), np.zeros(n, np.bool_)
        target = np.asarray(goal, np.float32)
        if field is None:
            gains = weights.running, weights.terminal, weights.collision
            start = np.asarray(state, np.float32)
            _price_points(self._A, self._B, start, actions, target, map_, gains, costs, collisions)
            return Priced(costs, collisions)
        for h, bundle in enumerate(self.steps(state, cov, heading, actions, field)):
            add_distance(
                bundle.means, target, weights.terminal if h == horizon - 1 else weights.running, costs
            )
            add_uncertainty(
                bundle.before,
                bundle.means,
                bundle.covs,
                bundle.lost,
                self.quantile,
                map_,
                uncertainty_weights(weights),
                blocked,
                costs,
                collisions,
            )
        return Priced(costs, collisions)

    def regions(
        self,
        state: Floats,
        cov: Floats,
        heading: float,
        sequence: Array32,  # (H, m, 1)
        field: ScaleField | None,
    ) -> Gaussian:
        """The calibrated predictions (H, d) along one sequence; covariances are infinite once a scale was."""
        if field is None:
            path = _mean_path(self._A, self._B, np.asarray(state, np.float32), sequence).astype(np.float64)
            return Gaussian(mean=path, cov=np.zeros((*path.shape, path.shape[1])))
        bundles = list(self.steps(state, cov, heading, sequence, field))
        covs = np.array([np.where(b.lost[0], np.inf, b.covs[:, :, 0]) for b in bundles], np.float64)
        return Gaussian(mean=np.array([b.means[:, 0] for b in bundles], np.float64), cov=covs)
