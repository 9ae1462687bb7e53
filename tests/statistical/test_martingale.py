"""The monitor's law, P(ever alarm) <= delta, over 2,000 runs in which nothing changed; and its delay."""

import numpy as np
import pytest
from scipy.stats import binom

from ocular.conformal import CellScores
from ocular.monitor import References, TestMartingale
from ocular.monitor.bets import BETS
from ocular.monitor.martingale import ROOM

RUNS, STEPS = 2000, 300
CHANCE = 1e-4  # that a right implementation fails a test of this file


def most(delta: float) -> int:
    """False alarms that RUNS runs may raise."""
    return int(binom.isf(CHANCE, RUNS, delta))


def p_values(rng, runs, steps, *, cells=3, each=20, online=True, louder=None, room=ROOM):
    """Of chi-square-like scores against few, redrawn calibration scores; later ones times `louder`."""
    p = np.empty((runs, steps))
    for run in range(runs):
        known = CellScores.group(rng.exponential(size=cells * each), np.arange(cells * each) % cells, cells)
        references = References(known, rng, room)
        frozen = [known.of_cell(cell) for cell in range(cells)]
        scores = rng.exponential(size=steps)
        if louder is not None:
            scores[steps // 2 :] *= louder
        for step, (cell, score) in enumerate(zip(rng.integers(0, cells, steps), scores, strict=True)):
            if online:
                p[run, step] = references.rank(cell, score)
            else:
                above = each - np.searchsorted(frozen[cell], score)
                p[run, step] = (above + 1 - rng.random()) / (each + 1)
    return p


def highest(p, kind: str):
    """The largest log capital of each run, ever."""
    martingale, peak = TestMartingale(kind, len(p)), np.zeros(len(p))
    for column in p.T:
        peak = np.maximum(peak, martingale.update(column))
    return peak


@pytest.fixture(scope="module")
def quiet():
    return p_values(np.random.default_rng(0), RUNS, STEPS)


@pytest.fixture(scope="module")
def crowded():
    """So little room that soon each new score drives one out of five."""
    return p_values(np.random.default_rng(5), RUNS, STEPS, each=3, room=2)


@pytest.mark.parametrize("kind", BETS)
@pytest.mark.parametrize("delta", [0.05, 0.01])
def test_false_alarms_keep_to_villes_law(quiet, kind, delta):
    alarms = (highest(quiet, kind) >= np.log(1 / delta)).sum()
    assert alarms <= most(delta)


@pytest.mark.parametrize("delta", [0.05, 0.01])
def test_the_law_holds_where_references_leave(crowded, delta):
    assert (highest(crowded, "mixture") >= np.log(1 / delta)).sum() <= most(delta)


def test_the_law_would_notice_p_values_against_a_fixed_set():
    """Twenty scores a cell, looked at again and again, are no law: their luck is taken for a change."""
    fixed = p_values(np.random.default_rng(1), 300, 1500, online=False)
    assert (highest(fixed, "mixture") >= np.log(20)).mean() > 0.1


@pytest.mark.parametrize("references", ["quiet", "crowded"])
def test_p_values_are_uniform_and_independent(references, request):
    p = request.getfixturevalue(references)
    counts = np.histogram(p, bins=20, range=(0, 1))[0] / p.size
    np.testing.assert_allclose(counts, 0.05, atol=0.0015)
    centred = p - 0.5
    for lag in (1, 3, 10, 30):
        together = (centred[:, lag:] * centred[:, :-lag]).mean() / centred.var()
        assert abs(together) < 4 / np.sqrt(p.size), lag
    # Of a whole run, too: its mean scatters as the mean of independent p-values does.
    assert abs(p.mean(axis=1).var() * 12 * STEPS - 1) < 4 * np.sqrt(2 / RUNS)


def test_the_capital_stays_one_on_average():
    """A martingale, over the few steps in which its mean can be measured."""
    rng = np.random.default_rng(2)
    for kind in ("linear", "step"):  # the power bets' variance is infinite
        martingale = TestMartingale(kind, 200_000)
        for _ in range(5):
            martingale.update(rng.random(200_000))
        capital = np.exp(martingale.log_capital)
        assert abs(capital.mean() - 1) < 4 * capital.std() / np.sqrt(len(capital))


@pytest.mark.parametrize("room", [ROOM, 20])
def test_a_late_change_is_found_soon_and_by_every_bet(room):
    p = p_values(np.random.default_rng(3), 200, 1000, each=100, louder=3.0, room=room)
    for kind in BETS:
        martingale, found = TestMartingale(kind, len(p)), np.full(len(p), np.inf)
        for step, column in enumerate(p.T):
            over = martingale.update(column) >= np.log(100)
            found = np.where(over & np.isinf(found), step, found)
        assert np.median(found) - 500 < 60, kind


def test_scores_that_became_smaller_raise_no_alarm():
    p = p_values(np.random.default_rng(4), 200, 300, louder=0.3)
    assert (highest(p, "mixture") >= np.log(20)).sum() <= binom.isf(CHANCE, 200, 0.05)


def test_a_run_that_sits_out_is_left_as_it_is():
    martingale = TestMartingale("mixture", 2)
    alone = TestMartingale("mixture", 1)
    for p in (0.01, 0.5, 0.02):
        both = martingale.update(np.array([p, np.nan]))
        one = alone.update(np.array([p]))
    assert both[0] == one[0]
    assert both[1] == 0.0
    assert martingale.steps.tolist() == [3, 0]
