"""A scale field whose scales a monitor's policy may raise from one control step to the next.

Planner and safety filter use it like any other field. As long as the policy keeps the calibrated scales, it
gives what the field alone gives, bit for bit.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ocular.calibrators import Calibration
from ocular.monitor import Policy
from ocular.planning.belief import BeliefMap
from ocular.planning.latent_field import Floating
from ocular.planning.scale_field import TreeScale, scale_field
from ocular.records import Floats, Labels


class GuardedField:
    """The scale field of a calibration, with the scales that a policy decides on."""

    def __init__(
        self,
        calibration: Calibration,
        alpha: float | Fraction,
        belief: BeliefMap,
        policy: Policy,
        **rounding: Any,
    ) -> None:
        self._field = scale_field(calibration, alpha, belief, **rounding)
        self._policy = policy
        self._in_use: Floats | None = None

    def refresh(self, cells: Labels, position: Floats, heading: float) -> None:
        """What the robot sees now."""
        self._policy.see(cells)
        if isinstance(self._field, TreeScale):
            self._field.refresh(cells, position, heading)

    def scales(self, means: Floating, headings: Floating, actions: Floating) -> Floats:
        """xi (n,) of states (n, 4), headings (n,) [rad] and actions (n, 2)."""
        if self._policy.scales is not self._in_use:
            self._in_use = self._policy.scales
            self._field.use(self._in_use)
        return self._field.scales(means, headings, actions)
