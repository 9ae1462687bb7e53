"""A model from logs alone, by least squares, for those who have none; and how it does on logs unseen.

What a fit leaves unexplained becomes its noise Q, the error of the logged states included: calibrate such a
model with a `state_cov` that is small beside Q. Calibrate on other logs than those that were fitted: on these
the model looks better than it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocular.dynamics.base import GaussianModel
from ocular.dynamics.linear import LinearGaussian
from ocular.dynamics.unicycle import Unicycle, body_displacement, body_velocity
from ocular.errors import InputError, check_shape, check_type
from ocular.records import Floats, Gaussian, Indices, Transitions

Fitter = Callable[[Transitions], GaussianModel]
BLOCKS = 5  # that one environment's logs are cut into


@dataclass(frozen=True, slots=True)
class HeldOut:
    """How a model that was fitted to the other logs predicts these."""

    name: str  # of the environment, or of the block of its logs
    transitions: int
    error: Floats  # (d,) root mean square, of each state entry
    expected: Floats  # (d,) the same as the model itself expects it
    moved: Floats  # (d,) root mean square of next state - state: what "nothing changes" gets wrong

    @property
    def explained(self) -> Floats:
        """Share of the change that was foreseen, of each state entry; below 0, no model does better."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(1 - (self.error / self.moved) ** 2)


def fit_linear(transitions: Transitions) -> LinearGaussian:
    """A, B and Q of s' = A s + B a + N(0, Q)."""
    check_type("transitions", transitions, Transitions)
    states, actions = transitions.inputs.states, transitions.inputs.actions
    d = states.shape[1]
    AB = _least_squares(np.concatenate([states, actions], axis=1), transitions.next_states)
    A, B = np.ascontiguousarray(AB[:, :d]), np.ascontiguousarray(AB[:, d:])
    residuals = transitions.next_states - states @ A.T - actions @ B.T
    return LinearGaussian(A, B, _second_moment(residuals, AB.shape[1]))


def fit_unicycle(transitions: Transitions, dt: float) -> Unicycle:
    """G and Q of a robot on the ground, whatever its actions are: speeds, wheels, or both and more.

    A step that turns the robot by half a revolution or more cannot be told from one the other way.
    """
    check_type("transitions", transitions, Transitions)
    inputs = transitions.inputs
    check_shape("states of a unicycle", inputs.states, (None, 3))
    moved = body_displacement(inputs.states, transitions.next_states)
    blank = Unicycle(dt, np.zeros((3, inputs.actions.shape[1])), np.zeros((3, 3)))  # checks dt
    G = _least_squares(inputs.actions, body_velocity(moved, dt))
    residuals = Gaussian(Unicycle(dt, G, blank.Q).displacement(inputs.actions), blank.Q, (2,)).deviation(
        moved
    )
    return Unicycle(dt, G, _second_moment(residuals, G.shape[1]))


def held_out(fit: Fitter, transitions: Transitions) -> tuple[HeldOut, ...]:
    """Fit without each environment in turn, and predict it; blocks of successive rows where there is but one.

    Blocks and not rows at random: a row's neighbours have all but seen it.
    """
    check_type("transitions", transitions, Transitions)
    return tuple(_judge(fit, transitions, name, out) for name, out in _groups(transitions))


def _judge(fit: Fitter, transitions: Transitions, name: str, out: Indices) -> HeldOut:
    model = fit(transitions.take(np.setdiff1d(np.arange(len(transitions)), out)))
    unseen = transitions.take(out)
    states = unseen.inputs.states
    prediction = model.predict(Gaussian(states, np.zeros((model.state_dim,) * 2)), unseen.inputs.actions)
    variances = np.diagonal(prediction.cov, axis1=-2, axis2=-1)
    stay = Gaussian(states, np.eye(model.state_dim), prediction.angles)
    return HeldOut(
        name=name,
        transitions=len(out),
        error=_rms(prediction.deviation(unseen.next_states)),
        expected=np.sqrt(np.broadcast_to(variances, states.shape).mean(axis=0)),
        moved=_rms(stay.deviation(unseen.next_states)),
    )


def _groups(transitions: Transitions) -> Iterator[tuple[str, Indices]]:
    present = np.unique(transitions.environment)
    if len(present) > 1:
        for number in present:
            yield transitions.environments[number], np.flatnonzero(transitions.environment == number)
    else:
        for k, block in enumerate(np.array_split(np.arange(len(transitions)), BLOCKS)):
            yield f"block {k + 1} of {BLOCKS}", block


def _least_squares(causes: Floats, effects: Floats) -> Floats:
    """The matrix M with effects = M causes, rows in pairs; the logs must tell the causes apart."""
    n, k = causes.shape
    size = _rms(causes) if n else np.zeros(k)
    rank: int | np.integer[Any] = 0
    if n > k and (size > 0).all():
        solution, _, rank, _ = np.linalg.lstsq(causes / size, effects, rcond=1e-9)
    if rank < k:
        idle = ", ".join(f"entry {i}" for i in np.flatnonzero(size == 0))
        raise InputError(
            f"{n} transitions in which the {k} fitted entries (states first, then actions) vary along too "
            f"few directions{f', {idle} never' if idle else ''}; allowed are more than {k}, with each entry "
            "varied on its own"
        )
    return np.ascontiguousarray((solution / size[:, None]).T)


def _second_moment(residuals: Floats, parameters: int) -> Floats:
    """Covariance about zero, not about the mean: a bias is an error too."""
    return np.asarray(residuals.T @ residuals / (len(residuals) - parameters))


def _rms(values: Floats) -> Floats:
    return np.asarray(np.sqrt((values**2).mean(axis=0)))
