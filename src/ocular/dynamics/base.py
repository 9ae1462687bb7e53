"""What a dynamics model must offer: to be calibrated, and to be kept in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self, runtime_checkable

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
        """Distribution of the next state; actions have shape (..., m) and broadcast with the mean.

        Entries that are angles are named in the Gaussian's `angles`: scores then wrap their differences.
        """


@runtime_checkable
class StoredModel(GaussianModel, Protocol):
    """A model that plain arrays describe in full, so that a calibration with it can be saved."""

    def to_arrays(self) -> dict[str, Floats]:
        """Everything that `from_arrays` needs, by name."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """The model that `to_arrays` took apart; unsound arrays raise InputError, missing ones KeyError."""
