"""What a partition may look at besides the latent: each method's choice of X (Sec. 4.1).

name            for                                   columns
position        a planar double integrator, that is   x, y, vx, vy, ax, ay: tied to the logged map
world           state (x, y, vx, vy), action (ax, ay) vx, vy, ax, ay
body            the same                              speed, acceleration along and across the motion
speeds          state (x, y, yaw), action (forward    speed, turn rate
                speed, turn rate)
wheels          state (x, y, yaw), action (left,      mean of the wheel speeds, right minus left: how
                right wheel speed)                    fast, and how sharp a turn
action          any model                             the action's entries
state+action    any model                             the state's and the action's entries

Only what does not change when the robot stands elsewhere, or looks elsewhere, says anything in a new place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ocular.errors import InputError, check_choice, check_shape
from ocular.records import Floats, Inputs


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """A named, fixed function of what is known before the step."""

    name: str
    columns: tuple[str, ...]
    _function: Callable[[Inputs], Floats]
    leveled: int | None = None  # the column whose thresholds are raised between logged values

    # Of the model that it is for.
    state_dim: int = 4
    action_dim: int = 2

    def __call__(self, inputs: Inputs) -> Floats:
        """One row of features (n, len(columns)) an input."""
        check_shape(f"states for the {self.name!r} features", inputs.states, (None, self.state_dim))
        check_shape(f"actions for the {self.name!r} features", inputs.actions, (None, self.action_dim))
        return self._function(inputs)


def _state_and_action(inputs: Inputs) -> Floats:
    return np.concatenate([inputs.states, inputs.actions], axis=1)


def _action(inputs: Inputs) -> Floats:
    return inputs.actions


def _wheels(inputs: Inputs) -> Floats:
    left, right = inputs.actions[:, 0], inputs.actions[:, 1]
    return np.stack([(left + right) / 2, right - left], axis=1)


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


_FIXED = {
    feature_map.name: feature_map
    for feature_map in (
        # LUCCa's X: tied to the map that it was collected on.
        FeatureMap("position", ("x", "y", "vx", "vy", "ax", "ay"), _state_and_action),
        # The paper's own figures come from world-frame velocities and actions.
        FeatureMap("world", ("vx", "vy", "ax", "ay"), _world),
        # Three numbers that do not change when the world is rotated, for a robot that looks where it goes.
        FeatureMap("body", ("speed", "acceleration along", "acceleration across"), _body, leveled=0),
        FeatureMap("speeds", ("speed", "turn rate"), _action, state_dim=3),
        FeatureMap("wheels", ("mean wheel speed", "right minus left wheel speed"), _wheels, state_dim=3),
    )
}


_GENERIC: dict[str, Callable[[Inputs], Floats]] = {"action": _action, "state+action": _state_and_action}


def features(name: str, state_dim: int = 4, action_dim: int = 2) -> FeatureMap:
    """The feature map of this name, for a model of these dimensions."""
    check_choice("features", name, [*_FIXED, *_GENERIC])
    if name in _GENERIC:
        columns = [f"action {k}" for k in range(action_dim)]
        if name == "state+action":
            columns = [f"state {k}" for k in range(state_dim)] + columns
        dims = {"state_dim": state_dim, "action_dim": action_dim}
        return FeatureMap(name, tuple(columns), _GENERIC[name], **dims)
    found = _FIXED[name]
    if (found.state_dim, found.action_dim) != (state_dim, action_dim):
        raise InputError(
            f"the features {name!r} are for {found.state_dim} states and {found.action_dim} actions, the "
            f"model has {state_dim} and {action_dim}; allowed are "
            f"{', '.join(map(repr, feature_names(state_dim, action_dim)))}"
        )
    return found


def feature_names(state_dim: int, action_dim: int) -> tuple[str, ...]:
    """Names of the feature maps for a model of these dimensions."""
    fixed = [n for n, f in _FIXED.items() if (f.state_dim, f.action_dim) == (state_dim, action_dim)]
    return (*fixed, *_GENERIC)
