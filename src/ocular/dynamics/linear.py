"""Linear Gaussian models, the double integrator of the paper's appendix B among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ocular.errors import InputError, check_covariance, check_finite, check_shape
from ocular.records import Floats, Gaussian


@dataclass(frozen=True)
class LinearGaussian:
    """s' = A s + B a + w with w ~ N(0, Q); Q may be singular."""

    A: Floats  # (d, d)
    B: Floats  # (d, m)
    Q: Floats  # (d, d)

    def __post_init__(self) -> None:
        d = len(self.A)
        check_shape("A", self.A, (d, d))
        check_shape("B", self.B, (d, None))
        check_shape("Q", self.Q, (d, d))
        check_finite("A", self.A)
        check_finite("B", self.B)
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
        if state.mean.shape[-1] != self.state_dim or actions.shape[-1] != self.action_dim:
            raise InputError(
                f"states of shape {state.mean.shape} and actions of shape {actions.shape}; allowed are "
                f"(..., {self.state_dim}) and (..., {self.action_dim})"
            )
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


def double_integrator(
    dt: float, *, slip: float = 1.0, noise: float = 0.1, floor: float = 0.0
) -> LinearGaussian:
    """Point robot with state (x, y, vx, vy) and acceleration as action: eqs. B.1 and, with slip > 1, B.2.

    The process noise is `noise` * B B^T + `floor` * I with the nominal B: it does not slip.
    """
    if not (0 < dt < np.inf and 0 < slip < np.inf and 0 <= noise < np.inf and 0 <= floor < np.inf):
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
