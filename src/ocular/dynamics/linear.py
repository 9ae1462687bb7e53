"""Linear Gaussian models, the double integrator of the paper's appendix B among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ocular.dynamics.base import GaussianModel
from ocular.errors import (
    LARGEST,
    InputError,
    check_array,
    check_covariance,
    check_finite,
    check_number,
    check_shape,
    check_type,
)
from ocular.records import Floats, Gaussian

LARGEST_SCALE = 1e9  # of time steps, gains and noises


@dataclass(frozen=True)
class LinearGaussian:
    """s' = A s + B a + w with w ~ N(0, Q); Q may be singular."""

    A: Floats  # (d, d)
    B: Floats  # (d, m)
    Q: Floats  # (d, d)

    def __post_init__(self) -> None:
        check_shape("A", self.A, (None, None))
        d = len(self.A)
        check_shape("A", self.A, (d, d))
        check_shape("B", self.B, (d, None))
        check_shape("Q", self.Q, (d, d))
        for name in ("A", "B"):
            check_array(name, getattr(self, name))
            check_finite(name, getattr(self, name), LARGEST)
        check_covariance("Q", self.Q)

    @property
    def state_dim(self) -> int:
        """Number of state entries, d."""
        return len(self.A)

    @property
    def action_dim(self) -> int:
        """Number of action entries, m."""
        return int(self.B.shape[1])

    def predict(self, state: Gaussian, actions: Floats) -> Gaussian:
        """N(A mu + B a, A Sigma A^T + Q)."""
        check_step(self, state, actions)
        return Gaussian(
            mean=state.mean @ self.A.T + actions @ self.B.T,
            cov=self.A @ state.cov @ self.A.T + self.Q,
        )

    def step(self, rng: np.random.Generator, states: Floats, actions: Floats) -> Floats:
        """One noisy step of this system for each row."""
        noise = rng.standard_normal(np.broadcast_shapes(states.shape, (1, self.state_dim)))
        return states @ self.A.T + actions @ self.B.T + noise @ self._noise_factor.T

    def to_arrays(self) -> dict[str, Floats]:
        """The three matrices."""
        return {"A": self.A, "B": self.B, "Q": self.Q}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> LinearGaussian:
        """The inverse of to_arrays."""
        return cls(arrays["A"], arrays["B"], arrays["Q"])

    @cached_property
    def _noise_factor(self) -> Floats:
        return square_root(self.Q)


def square_root(cov: Floats) -> Floats:
    """A matrix F with F F^T = cov, for singular covariances too (where Cholesky fails)."""
    values, vectors = np.linalg.eigh(cov)
    return np.asarray(vectors * np.sqrt(np.clip(values, 0.0, None)))


def check_step(model: GaussianModel, state: Gaussian, actions: Floats) -> None:
    """Raise unless a model can predict from these; that they are finite is seen to where logs are made."""
    check_type("state", state, Gaussian)
    check_array("actions", actions)
    means, batch = state.mean.shape, actions.shape
    fits = means[-1:] == (model.state_dim,) and batch[-1:] == (model.action_dim,)
    if not fits or (means[:-1] != batch[:-1] and not _broadcast(means[:-1], batch[:-1])):
        raise InputError(
            f"states of shape {means} and actions of shape {batch}; allowed are "
            f"(..., {model.state_dim}) and (..., {model.action_dim}), which broadcast"
        )


def _broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    try:
        return len(np.broadcast_shapes(first, second)) >= 0
    except ValueError:
        return False


def double_integrator(
    dt: float, *, slip: float = 1.0, noise: float = 0.1, floor: float = 0.0
) -> LinearGaussian:
    """Point robot with state (x, y, vx, vy) and acceleration as action: eqs. B.1 and, with slip > 1, B.2.

    The process noise is `noise` * B B^T + `floor` * I with the nominal B: it does not slip.
    """
    for name, value in {"dt": dt, "slip": slip, "noise": noise, "floor": floor}.items():
        check_number(name, value)
    positive, others = (dt, slip), (noise, floor)
    if not (min(positive) > 0 and min(others) >= 0 and max(*positive, *others) <= LARGEST_SCALE):
        raise InputError(
            f"dt={dt}, slip={slip}, noise={noise}, floor={floor}; allowed are finite dt > 0, slip > 0, "
            "noise >= 0, floor >= 0"
        )
    eye, zero = np.eye(2), np.zeros((2, 2))
    nominal_B = np.vstack([dt**2 / 2 * eye, dt * eye])
    return LinearGaussian(
        A=np.block([[eye, slip * dt * eye], [zero, eye]]),
        B=slip * nominal_B,
        Q=noise * nominal_B @ nominal_B.T + floor * np.eye(4),
    )
