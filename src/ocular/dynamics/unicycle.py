"""A robot that drives on the ground: each action is a body velocity, held for one step.

State (x, y, yaw) in the world, [m, m, rad]. An action of any kind maps linearly to the velocity of the body,
(forward [m/s], left [m/s], turn [rad/s]) = G a, so one class serves commanded speeds and wheel speeds alike;
slip that is known beforehand goes into G. The noise Q is that of one step's displacement in the body frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocular.dynamics.linear import LARGEST_SCALE, check_step, square_root
from ocular.errors import (
    LARGEST,
    InputError,
    check_array,
    check_covariance,
    check_finite,
    check_number,
    check_shape,
)
from ocular.records import Floats, Gaussian

YAW = 2
SHORTEST = 1e-9  # time step [s], and length [m]


@dataclass(frozen=True)
class Unicycle:
    """The pose moves along the arc of body velocity G a over dt, with noise N(0, Q) in the body frame."""

    dt: float  # [s]
    G: Floats  # (3, m), action -> body velocity
    Q: Floats  # (3, 3), covariance of (forward [m], left [m], turn [rad]) over one step

    def __post_init__(self) -> None:
        check_number("dt", self.dt)
        if not SHORTEST <= self.dt <= LARGEST_SCALE:
            raise InputError(
                f"dt is {self.dt}; allowed is a positive number of seconds, {SHORTEST:g} to {LARGEST_SCALE:g}"
            )
        check_array("G", self.G)
        check_shape("G", self.G, (3, None))
        check_finite("G", self.G, LARGEST)
        check_shape("Q", self.Q, (3, 3))
        check_covariance("Q", self.Q)

    @property
    def state_dim(self) -> int:
        """Three: x, y and yaw."""
        return 3

    @property
    def action_dim(self) -> int:
        """Number of action entries, m."""
        return int(self.G.shape[1])

    def predict(self, state: Gaussian, actions: Floats) -> Gaussian:
        """N(pose + R d, F Sigma F^T + R Q R^T): the arc is exact, the covariance linearised at the mean.

        R turns by the yaw, d is the displacement in the body frame, and F = d pose' / d pose.
        """
        check_step(self, state, actions)
        turn = rotation(state.mean[..., YAW])
        moved = np.einsum("...ij,...j->...i", turn, self.displacement(actions))
        F = np.broadcast_to(np.eye(3), (*moved.shape, 3)).copy()
        F[..., 0, YAW], F[..., 1, YAW] = -moved[..., 1], moved[..., 0]
        cov = F @ state.cov @ np.swapaxes(F, -1, -2) + turn @ self.Q @ np.swapaxes(turn, -1, -2)
        return Gaussian(state.mean + moved, (cov + np.swapaxes(cov, -1, -2)) / 2, angles=(YAW,))

    def displacement(self, actions: Floats) -> Floats:
        """Expected (forward, left, turn) over one step, in the frame of its start."""
        twist = actions @ (self.G.T * self.dt)
        half = twist[..., 2] / 2
        chord = np.sinc(half / np.pi)  # length of the chord over that of the arc
        cos, sin = chord * np.cos(half), chord * np.sin(half)
        ahead, left = twist[..., 0], twist[..., 1]
        return np.stack([cos * ahead - sin * left, sin * ahead + cos * left, twist[..., 2]], axis=-1)

    def step(self, rng: np.random.Generator, states: Floats, actions: Floats) -> Floats:
        """One noisy step of this robot for each row; the yaw is not wrapped."""
        noise = rng.standard_normal(states.shape) @ square_root(self.Q).T
        moved = self.displacement(actions) + noise
        return np.asarray(states + np.einsum("...ij,...j->...i", rotation(states[..., YAW]), moved))

    def to_arrays(self) -> dict[str, Floats]:
        """The time step and the two matrices."""
        return {"dt": np.array(self.dt), "G": self.G, "Q": self.Q}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Unicycle:
        """The inverse of to_arrays."""
        check_shape("dt", arrays["dt"], ())
        return cls(float(arrays["dt"]), arrays["G"], arrays["Q"])


def rotation(yaw: Floats) -> Floats:
    """Body frame to world frame of a (x, y, yaw) displacement: yaws (...) -> matrices (..., 3, 3)."""
    matrix = np.zeros((*np.shape(yaw), 3, 3))
    cos, sin = np.cos(yaw), np.sin(yaw)
    matrix[..., 0, 0], matrix[..., 0, 1] = cos, -sin
    matrix[..., 1, 0], matrix[..., 1, 1] = sin, cos
    matrix[..., 2, 2] = 1.0
    return matrix


def body_displacement(states: Floats, next_states: Floats) -> Floats:
    """What was seen to happen: (forward, left, turn in [-pi, pi)) of each step, in the frame of its start."""
    moved = Gaussian(states, np.eye(3), angles=(YAW,)).deviation(next_states)
    return np.asarray(np.einsum("...ji,...j->...i", rotation(states[..., YAW]), moved))


def body_velocity(displacement: Floats, dt: float) -> Floats:
    """The constant body velocity that makes this displacement in dt: undoes `Unicycle.displacement`."""
    ahead, left, turn = displacement[..., 0], displacement[..., 1], displacement[..., 2]
    chord = np.sinc(turn / 2 / np.pi)
    cos, sin = np.cos(turn / 2) / chord, np.sin(turn / 2) / chord
    return np.stack([cos * ahead + sin * left, cos * left - sin * ahead, turn], axis=-1) / dt


def unicycle(dt: float, Q: Floats, *, speed_gain: float = 1.0, turn_gain: float = 1.0) -> Unicycle:
    """Actions (speed [m/s], turn rate [rad/s]); the gains are what the ground lets through of them."""
    check_number("speed_gain", speed_gain)
    check_number("turn_gain", turn_gain)
    return Unicycle(dt, np.array([[speed_gain, 0.0], [0.0, 0.0], [0.0, turn_gain]]), Q)


def differential_drive(
    dt: float,
    Q: Floats,
    *,
    wheel_radius: float,
    baseline: float,
    speed_gain: float = 1.0,
    turn_gain: float = 1.0,
) -> Unicycle:
    """Actions (left, right wheel speed [rad/s]) of a robot that steers by their difference."""
    given = {"wheel_radius": wheel_radius, "baseline": baseline}
    for name, value in (given | {"speed_gain": speed_gain, "turn_gain": turn_gain}).items():
        check_number(name, value)
    if not all(SHORTEST <= value <= LARGEST_SCALE for value in given.values()):
        raise InputError(
            f"wheel_radius={wheel_radius}, baseline={baseline}; allowed are positive numbers of metres"
        )
    # As floats, of which the largest becomes infinite and is refused.
    ahead = float(speed_gain) * float(wheel_radius) / 2
    turn = float(turn_gain) * float(wheel_radius) / float(baseline)
    return Unicycle(dt, np.array([[ahead, ahead], [0.0, 0.0], [-turn, turn]]), Q)
