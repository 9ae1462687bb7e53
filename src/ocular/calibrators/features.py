"""What a partition may look at besides the latent: each method's choice of X (Sec. 4.1).

These features are those of a planar double integrator: state (x, y, vx, vy), action (ax, ay).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ocular.errors import check_choice, check_shape
from ocular.records import Floats, Inputs


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """A named, fixed function of what is known before the step."""

    name: str
    columns: tuple[str, ...]
    _function: Callable[[Inputs], Floats]
    leveled: int | None = None  # the column along which thresholds are interpolated between logged values

    def __call__(self, inputs: Inputs) -> Floats:
        """One row of features (n, len(columns)) an input."""
        check_shape(f"states for the {self.name!r} features", inputs.states, (None, 4))
        check_shape(f"actions for the {self.name!r} features", inputs.actions, (None, 2))
        return self._function(inputs)


def _position(inputs: Inputs) -> Floats:
    return np.concatenate([inputs.states, inputs.actions], axis=1)


def _world(inputs: Inputs) -> Floats:
    return np.concatenate([inputs.states[:, 2:], inputs.actions], axis=1)


def _body(inputs: Inputs) -> Floats:
    velocity, action = inputs.states[:, 2:], inputs.actions
    along = np.stack([np.cos(inputs.headings), np.sin(inputs.headings)], axis=1)
    return np.stack(
        [
            np.hypot(velocity[:, 0], velocity[:, 1]),
            (action * along).sum(axis=1),
            along[:, 0] * action[:, 1] - along[:, 1] * action[:, 0],
        ],
        axis=1,
    )


_FEATURES = {
    feature_map.name: feature_map
    for feature_map in (
        # LUCCa's X: tied to the map that it was collected on.
        FeatureMap("position", ("x", "y", "vx", "vy", "ax", "ay"), _position),
        # The paper's own figures come from world-frame velocities and actions.
        FeatureMap("world", ("vx", "vy", "ax", "ay"), _world),
        # Three numbers that do not change when the world is rotated, for a robot that looks where it goes.
        FeatureMap("body", ("speed", "acceleration along", "acceleration across"), _body, leveled=0),
    )
}


def features(name: str) -> FeatureMap:
    """The feature map of this name."""
    check_choice("features", name, _FEATURES.keys())
    return _FEATURES[name]
