"""Has the world changed? A conformal test martingale, which grows when scores become larger than calibrated.

Its law (Ville's inequality): while the scores of each cell are exchangeable with those that calibrated it,
the capital reaches 1 / delta ever, in however many steps, with probability at most delta. That needs p-values
that are uniform and independent of each other. Against a fixed calibration set they are not independent: all
share its luck. So each new score joins the reference scores of its cell once it has been ranked; then they
are exactly so, for any sizes. Nor may these scores have been looked at before: what decides on which steps to
bet must be other scores.

A robot that drives for months cannot keep them all. Once a cell has ROOM more than it was calibrated with,
one of all, the newest among them, leaves for each that joins: each with the same chance, whatever it is. The
law stays exact, for any room. Look at the scores that a new one is ranked among, itself included, as a bag
without order. They were picked without a look at them, so given this bag and all that comes later, each is
the new one with the same chance: p is uniform. Who leaves is drawn without knowing which one is new, so who
stays tells no more than the bag; and all later p-values follow from who stays, later scores and later draws.
So p is independent of them. A set that stays as it was, one that drops its oldest score, or a reservoir that
lets fewer and fewer in, would remember which was new; one that drops its largest is picked by looking. The
price: a change that creeps in over more than some ROOM steps of a cell is taken for how things are.

A change comes late as a rule, when bets on it have long lost their stakes. Capital therefore starts asleep,
where it is kept, and wakes a little at a time: the share that wakes falls as 1 / (steps + WAKING), so that
after many thousands of quiet steps some is still left. Awake capital falls asleep again, to last over
stretches that the change does not touch. Moving capital between bets before the next p-value is seen leaves
the sum a martingale. A CUSUM, which restarts at 1 for free, is none: it bounds only the mean time between
false alarms.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

import numpy as np

from ocular.conformal import CellScores
from ocular.errors import InputError, check_array, check_number, check_shape, check_whole
from ocular.monitor.bets import bets
from ocular.records import Floats

WAKING = 30.0  # [steps]: a change in the first few dozen steps is found fastest
ROOM = 1000  # scores by which a cell's references grow; of 8 bytes each
MOST_RUNS = 2**24
DROWSY = 0.01  # share of the awake capital that falls asleep in a step


class TestMartingale:
    """Capital of players that bet against uniform p-values; many independent runs side by side."""

    __test__ = False  # not a test case, whatever pytest thinks of its name

    def __init__(self, kind: str = "mixture", runs: int = 1) -> None:
        check_whole("runs", runs, 1, MOST_RUNS)
        self._bets = bets(kind)
        count = self._bets(np.ones(1)).shape[-1]
        self._awake = np.zeros((runs, count))  # shares of the capital; what is missing to 1 is asleep
        self._asleep = np.ones(runs)
        self.log_capital = np.zeros(runs)
        self.steps = np.zeros(runs, np.int64)

    def update(self, p: Floats) -> Floats:
        """Bet on these p-values (runs,), NaN for a run that sits this step out; log capitals (runs,)."""
        check_array("p", p)
        check_shape("p", p, self.log_capital.shape)
        playing = ~np.isnan(p)
        if not ((p[playing] > 0) & (p[playing] <= 1)).all():
            raise InputError(f"p-values run from {np.min(p)} to {np.max(p)}; allowed is 0 < p <= 1")
        waking = playing / (self.steps + WAKING)
        drowsy = playing * DROWSY
        up, down = self._asleep * waking, self._awake * drowsy[:, None]
        asleep = self._asleep - up + down.sum(axis=1)
        awake = self._awake - down + up[:, None] / self._awake.shape[1]
        awake = awake * np.where(playing[:, None], self._bets(np.where(playing, p, 1.0)), 1.0)
        total = asleep + awake.sum(axis=1)
        self._asleep, self._awake = asleep / total, awake / total[:, None]
        self.log_capital = self.log_capital + np.log(total)
        self.steps += playing
        return self.log_capital


class References:
    """The scores of each cell, joined by those that are seen, up to `room` more than at first."""

    def __init__(self, scores: CellScores, rng: np.random.Generator, room: int = ROOM) -> None:
        if room < 0:
            raise InputError(f"room is {room}; allowed is at least 0")
        self._scores, self._rng, self._room = scores, rng, room
        self._sorted: dict[int, array[float]] = {}  # of the cells that were visited

    def rank(self, cell: int, score: float) -> float:
        """The smoothed p-value of a new score in its cell, which it joins: uniform if nothing has changed."""
        check_number("score", score)
        if not score >= 0:
            raise InputError(f"the score is {score}; allowed is 0 to infinity")
        calibrated = self._scores.of_cell(cell)
        if cell not in self._sorted:
            self._sorted[cell] = array("d", calibrated)
        known = self._sorted[cell]
        below, upto = bisect_left(known, score), bisect_right(known, score)
        above, ties = len(known) - upto, upto - below + 1  # it ties with itself
        p = (above + (1.0 - self._rng.random()) * ties) / (len(known) + 1)
        known.insert(upto, score)
        if len(known) > len(calibrated) + self._room:
            known.pop(int(self._rng.integers(len(known))))
        return float(p)
