"""Watches a calibration at work, one step at a time: does the world still keep its promise?

Cells fall on two grounds: where the calibration found the model right, and where it found it wrong (on ice).
A change touches one of them as a rule, so each has a martingale and a clock of its own; the alarm is shared
out between them, which keeps its law. A random half of the calibration's scores tells the grounds apart; the
other half is what new scores are compared with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from ocular.calibrators import Calibration
from ocular.conformal import CellScores, squared_mahalanobis
from ocular.errors import (
    InputError,
    check_array,
    check_number,
    check_probability,
    check_shape,
    check_type,
    check_whole,
)
from ocular.monitor.martingale import References, TestMartingale
from ocular.records import Floats, Indices, Labels
from ocular.seeds import stream

RIGHT, ERRS = 0, 1
Flags = npt.NDArray[np.bool_]
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
        check_type("calibration", calibration, Calibration)
        check_probability("delta", delta)
        check_probability("alpha", alpha)
        check_whole("seed", seed, 0)
        self.calibration = calibration
        self.grounds = np.full(calibration.partition.n_cells, RIGHT)  # of a model that is taken at its word
        self._references: References | None = None
        if calibration.scores is not None:
            rng = stream(seed, "monitor")
            looked_at, kept = halves(calibration.scores, rng)
            self.grounds = grounds_of(looked_at, alpha, MODEL_ERRS * calibration.chi2(alpha))
            self._references = References(kept, rng)
        self._martingale = TestMartingale(bets, runs=len(GROUNDS))
        self._limit = math.log(len(GROUNDS) / delta)
        self._changed = np.zeros(len(GROUNDS), np.bool_)

    @property
    def changed(self) -> tuple[bool, ...]:
        """Grounds on which the world is no longer the calibration's."""
        return tuple(bool(flag) for flag in self._changed)

    def observe(self, step: Step) -> Reading:
        """Take a step into account: what was seen and done, and what came of it."""
        check_type("step", step, Step)
        check_array("next_state", step.next_state)
        check_shape("next_state", step.next_state, (self.calibration.model.state_dim,))
        inputs = self.calibration.one_input(step.state, step.action, step.heading, step.cells)
        prediction = self.calibration.predict(inputs)
        score = float(squared_mahalanobis(prediction, step.next_state[None])[0])
        return self.score(int(self.calibration.cells(inputs)[0]), score)

    def score(self, cell: int, score: float) -> Reading:
        """The same where cell and score are known already."""
        check_whole("cell", cell)
        check_number("score", score)
        if not 0 <= cell < len(self.grounds):
            raise InputError(f"the cell is {cell}; allowed are 0 to {len(self.grounds) - 1}")
        ground, p = int(self.grounds[cell]), self.p_value(cell, score)
        betting = np.full(len(GROUNDS), np.nan)
        betting[ground] = p
        log_capital = self._martingale.update(betting)
        self._changed |= log_capital >= self._limit
        return Reading(cell, ground, score, p, log_capital, self.changed)

    def p_value(self, cell: int, score: float) -> float:
        """How far a new score, which joins the references of its cell, lies among them."""
        if self._references is not None:
            return self._references.rank(cell, score)
        # Without logged scores the model is taken at its word, and its word is a law too.
        return max(float(chdtrc(self.calibration.model.state_dim, score)), SMALLEST)


def halves(scores: CellScores, rng: np.random.Generator) -> tuple[CellScores, CellScores]:
    """Two halves, drawn at random: each score falls into one or the other."""
    first = rng.random(len(scores.scores)) < 0.5
    return _these(scores, first), _these(scores, ~first)


def _these(scores: CellScores, picked: Flags) -> CellScores:
    before = np.concatenate([[0], np.cumsum(picked)]).astype(np.int64)
    return CellScores(scores.scores[picked], before[scores.offsets])


def grounds_of(scores: CellScores, alpha: float | Fraction, limit: float) -> Indices:
    """ERRS for each cell whose (1 - alpha) quantile is beyond the limit, or unknown; RIGHT elsewhere."""
    return np.where(scores.quantiles(alpha)[0] > limit, ERRS, RIGHT).astype(np.int64)
