"""What to do about an alarm: keep the calibrated scales, widen them, or stop.

- keep: the alarm is only reported.
- worst: the scales of the ground that changed become the largest of any cell. Nothing is promised if
  the world is worse than all the logs.
- adapt: an online correction, as in adaptive conformal inference. A factor per ground rises with each next
  state that leaves its region and falls with each that does not. Whatever the world does, the share of next
  states on this ground that leave their widened regions exceeds alpha by at most log(largest factor needed)
  / (RATE * steps) + 1 / steps: a promise about the long run, not about the next step.
- stop: the scales become infinite, so that planners and filters brake.

Where the model erred, the factor multiplies the error beyond the model's own noise (1 + f (xi - 1)): a robot
that slips twice as far is no noisier when it stands still.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import NoneType
from typing import Literal, get_args

import numpy as np

from ocular.calibrators import Calibration
from ocular.errors import check_array, check_choice, check_probability, check_type
from ocular.monitor.monitor import GROUNDS, MODEL_ERRS, Monitor, Reading, Step
from ocular.monitor.novelty import Novelty
from ocular.records import Floats, Labels

Response = Literal["keep", "worst", "adapt", "stop"]
RATE = 0.5  # by how much the logarithm of a factor rises when all next states leave their regions
LARGEST = 710.0  # logarithm of a factor that is infinite: nothing but the whole space was ever enough


@dataclass(frozen=True, slots=True)
class Responses:
    """What to do when the world has changed, and while something new is in view."""

    changed: Response = "adapt"
    new: Response = "keep"  # adapt is no answer to what has not happened yet
    new_below: float = 0.01  # p-value of a footprint that counts as new

    def __post_init__(self) -> None:
        check_choice("changed", self.changed, get_args(Response))
        check_choice("new", self.new, ("keep", "worst", "stop"))
        check_probability("new_below", self.new_below)


class Policy:
    """The scales that planners and filters should use now, one a cell.

    Call `see` with each footprint before planning, and `learn` with each step once its outcome is known.
    """

    def __init__(
        self,
        calibration: Calibration,
        alpha: float | Fraction,
        *,
        responses: Responses = Responses(),
        novelty: Novelty | None = None,
        delta: float = 0.01,
        seed: int = 0,
    ) -> None:
        check_type("responses", responses, Responses)
        check_type("novelty", novelty, (Novelty, NoneType))
        self.monitor = Monitor(calibration, delta=delta, alpha=alpha, seed=seed)
        self.responses, self.novelty = responses, novelty
        self.new_in_view = False
        self._alpha = float(alpha)
        self._quantile = calibration.chi2(alpha)
        self._calibrated = calibration.scales(alpha)
        self._log_factors = np.zeros(len(GROUNDS))
        self.scales = self._calibrated  # (n_cells,); a new array whenever it changes

    @property
    def factors(self) -> Floats:
        """The online correction of each ground, in use or not."""
        with np.errstate(over="ignore"):  # nothing but the whole space was ever enough
            return np.asarray(np.exp(self._log_factors))

    def see(self, cells: Labels) -> None:
        """What is in view now (angles, ranges)."""
        if self.novelty is None or self.responses.new == "keep":
            return
        check_array("cells", cells)
        new = bool(self.novelty.p_values(cells[None])[0] <= self.responses.new_below)
        if new != self.new_in_view:
            self.new_in_view = new
            self.scales = self._decide()

    def learn(self, step: Step) -> Reading:
        """What came of a step."""
        reading = self.monitor.observe(step)
        self.take(reading)
        return reading

    def take(self, reading: Reading) -> None:
        """The same for a step that the monitor has seen already."""
        with np.errstate(over="ignore"):
            missed = reading.score > self._quantile * self._adapted()[reading.cell]
        ground = reading.ground
        log_factor = self._log_factors[ground] + RATE * (missed - self._alpha)
        self._log_factors[ground] = min(max(0.0, log_factor), LARGEST)
        if any(reading.changed) and self.responses.changed != "keep":
            self.scales = self._decide()

    def _decide(self) -> Floats:
        scales = self._calibrated
        if any(self.monitor.changed):
            changed = np.array(self.monitor.changed)[self.monitor.grounds]
            scales = np.where(changed, self._answer(self.responses.changed), scales)
        if self.new_in_view:
            scales = self._answer(self.responses.new)
        return scales

    def _answer(self, response: Response) -> Floats:
        """What the scales would become if this answer applied to every cell."""
        if response == "adapt":
            return self._adapted()
        if response == "worst":
            return np.full_like(self._calibrated, self._calibrated.max())
        if response == "stop":
            return np.full_like(self._calibrated, np.inf)
        return self._calibrated

    def _adapted(self) -> Floats:
        noise = np.where(self._calibrated > MODEL_ERRS, 1.0, 0.0)
        factors = self.factors[self.monitor.grounds]
        with np.errstate(over="ignore", invalid="ignore"):  # an infinite factor times no error is no number
            adapted = noise + factors * (self._calibrated - noise)
        return np.where(np.isinf(factors), np.inf, adapted)
