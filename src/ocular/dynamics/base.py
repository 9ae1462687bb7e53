"""What a dynamics model must offer to be calibrated."""

from __future__ import annotations

from typing import Protocol

from ocular.records import Floats, Gaussian


class GaussianModel(Protocol):
    """Maps a Gaussian over the state and an action to a Gaussian over the next state."""

    @property
    def state_dim(self) -> int:
        """Number of state entries, d."""

    @property
    def action_dim(self) -> int:
        """Number of action entries, m."""

    def predict(self, state: Gaussian, actions: Floats) -> Gaussian:
        """Distribution of the next state; actions have shape (..., m) and broadcast with the mean."""
