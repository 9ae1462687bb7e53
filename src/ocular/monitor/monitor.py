"""Watches a calibration at work, one step at a time: does the world still keep its promise?

Cells fall on two grounds: where the calibration found the model right, and where it found it to err (on ice).
A change touches one of them as a rule, so each has a martingale and a clock of its own; the alarm is shared
out between them, which keeps its law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import chdtrc

from ocular.calibrators import Calibration
from ocular.conformal import squared_mahalanobis
from ocular.errors import InputError, check_probability, check_shape
from ocular.monitor.martingale import References, TestMartingale
from ocular.records import (
    OCCUPIED,
    UNKNOWN,
    Floats,
    FootprintGeometry,
    Footprints,
    Indices,
    Inputs,
    Labels,
)
from ocular.seeds import stream

RIGHT, ERRS = 0, 1
GROUNDS = ("where the model was right", "where the model erred")
SMALLEST = 1e-300  # p-value, so that a payout stays finite
MODEL_ERRS = 1.25  # calibrated scale above which a cell's model errs


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a robot, once it is known what came of it: as in the logs, and measured as there."""

    state: Floats  # (d,), as the robot was told
    heading: float  # [rad]
    action: Floats  # (m,)
    cells: Labels  # (angles, ranges), what it saw; not looked at by a calibration without encoder
    next_state: Floats  # (d,)


@dataclass(frozen=True, slots=True)
class Reading:
    """What the monitor makes of one step."""

    cell: int
    ground: int  # RIGHT or ERRS
    score: float
    p: float  # uniform while nothing has changed
    log_capital: Floats  # (grounds,)
    changed: tuple[bool, ...]  # (grounds,), an alarm on this ground, now or earlier


class Monitor:
    """Conformal test martingales on the p-values of a calibration's scores.

    While the scores in every cell are exchangeable with those that calibrated it, `changed` ever becomes true
    with probability at most `delta`, however long the robot drives. Begin anew with a new monitor.
    """

    def __init__(
        self,
        calibration: Calibration,
        *,
        delta: float = 0.01,
        alpha: float | Fraction = 0.1,  # decides which ground a cell belongs to
        bets: str = "mixture",
        seed: int = 0,  # of the draws that break ties between scores
    ) -> None:
        check_probability("delta", delta)
        self.calibration = calibration
        self.grounds = grounds_of(calibration.scales(alpha))
        scores = calibration.scores
        self._references = None if scores is None else References(scores, stream(seed, "monitor"))
        self._martingale = TestMartingale(bets, runs=len(GROUNDS))
        self._limit = math.log(len(GROUNDS) / delta)
        self._changed = np.zeros(len(GROUNDS), np.bool_)

    @property
    def changed(self) -> tuple[bool, ...]:
        """Grounds on which the world is no longer the calibration's."""
        return tuple(bool(flag) for flag in self._changed)

    def observe(self, step: Step) -> Reading:
        """Take a step into account: what was seen and done, and what came of it."""
        inputs, model = self._inputs(step), self.calibration.model
        check_shape("next_state", step.next_state, (model.state_dim,))
        prediction = self.calibration.predict(inputs)
        score = float(squared_mahalanobis(prediction, step.next_state[None])[0])
        return self.score(int(self.calibration.cells(inputs)[0]), score)

    def score(self, cell: int, score: float) -> Reading:
        """The same where cell and score are known already."""
        if not 0 <= cell < len(self.grounds):
            raise InputError(f"the cell is {cell}; allowed are 0 to {len(self.grounds) - 1}")
        ground, p = int(self.grounds[cell]), self._p_value(cell, score)
        betting = np.full(len(GROUNDS), np.nan)
        betting[ground] = p
        log_capital = self._martingale.update(betting)
        self._changed |= log_capital >= self._limit
        return Reading(cell, ground, score, p, log_capital, self.changed)

    def _p_value(self, cell: int, score: float) -> float:
        if self._references is not None:
            return self._references.rank(cell, score)
        # Without logged scores the model is taken at its word, and its word is a law too.
        return max(float(chdtrc(self.calibration.model.state_dim, score)), SMALLEST)

    def _inputs(self, step: Step) -> Inputs:
        encoder = self.calibration.encoder
        seen = _BLIND if encoder is None else Footprints(step.cells[None], encoder.labels, encoder.geometry)
        index = np.zeros(1, np.int64)
        return Inputs(step.state[None], step.action[None], np.array([step.heading]), index, seen)


_BLIND = Footprints(np.zeros((1, 1, 1), np.uint8), (OCCUPIED, UNKNOWN), FootprintGeometry(angles=1, ranges=1))


def grounds_of(scales: Floats) -> Indices:
    """RIGHT or ERRS for each cell, by its calibrated scale; a cell without enough scores errs."""
    return np.where(scales > MODEL_ERRS, ERRS, RIGHT).astype(np.int64)
