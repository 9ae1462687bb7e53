"""NoCP: the model's own region, uncalibrated. What the others are compared with."""

from __future__ import annotations

from dataclasses import dataclass

from ocular.calibrators.base import Calibrator, blank_calibration
from ocular.calibrators.calibration import Calibration
from ocular.dynamics import GaussianModel
from ocular.records import Floats, Logs, Transitions


@dataclass(frozen=True)
class NoCP(Calibrator):
    """xi = 1 everywhere."""

    def fit(
        self, transitions: Transitions | Logs, model: GaussianModel, state_cov: Floats, *, seed: int
    ) -> Calibration:
        """Looks at no score."""
        return blank_calibration("nocp", Logs.of(transitions), model, state_cov, seed)
