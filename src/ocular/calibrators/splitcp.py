"""SplitCP: one xi for the whole space (Sec. 3.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ocular.calibrators.base import Calibrator, blank_calibration, check_scores
from ocular.calibrators.calibration import Calibration
from ocular.calibrators.streaming import score_logs
from ocular.conformal import CellScores
from ocular.dynamics import GaussianModel
from ocular.records import Floats, Logs, Transitions


@dataclass(frozen=True)
class SplitCP(Calibrator):
    """One cell; with no cells to draw, all data calibrates."""

    def fit(
        self, transitions: Transitions | Logs, model: GaussianModel, state_cov: Floats, *, seed: int
    ) -> Calibration:
        """Sort the scores."""
        logs = Logs.of(transitions)
        blank = blank_calibration("splitcp", logs, model, state_cov, seed)
        scores = score_logs(logs, blank)
        check_scores(scores)
        return replace(
            blank, scores=CellScores.group(scores, np.zeros(len(scores), dtype=np.int64), n_cells=1)
        )
