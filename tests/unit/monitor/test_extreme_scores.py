"""Hundreds of impossible steps: capital, factors and scales stay numbers, and at last infinity is said."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocular.conformal import CellScores
from ocular.monitor import Policy
from ocular.monitor.martingale import References, TestMartingale
from stress.artefact_kinds import calibration
from stress.number_checks import hostile_scores


@settings(max_examples=30, deadline=None)
@given(scores=st.lists(st.floats(0, allow_nan=False), min_size=1, max_size=50), seed=st.integers(0, 9))
def test_any_score_has_a_rank(scores, seed):
    rng = np.random.default_rng(seed)
    known = CellScores(np.sort(hostile_scores(rng, 20)), np.array([0, 20]))
    references, martingale = References(known, rng), TestMartingale()
    for score in scores:
        p = references.rank(0, score)
        assert 0 < p <= 1
        assert np.isfinite(martingale.update(np.array([p]))).all()


def test_capital_survives_thousands_of_impossible_steps_and_quiet_ones_after():
    martingale = TestMartingale()
    for p in [1e-300] * 800 + [1.0] * 800:
        capital = martingale.update(np.array([p]))
        assert np.isfinite(capital).all()


def test_when_no_factor_is_enough_the_region_becomes_the_whole_space():
    known = calibration("ocular_no_encode")
    zero = CellScores(np.zeros(len(known.scores.scores)), known.scores.offsets)
    for scores in (known.scores, zero):  # zero times infinity is no number
        policy = Policy(replace(known, scores=scores), 0.1, delta=0.9)  # so that the alarm comes at once
        for _ in range(1700):
            reading = policy.monitor.score(0, np.inf)
            policy.take(reading)
            assert not np.isnan(policy.scales).any()
        assert (policy.scales[policy.monitor.grounds == reading.ground] > 1e300).all()


@pytest.mark.parametrize("score", [0.0, 1e-300, 1e300, np.inf])
def test_a_model_at_its_word_gives_a_p_value_to_any_score(score):
    reading = Policy(calibration("nocp"), 0.1).monitor.score(0, score)
    assert 0 < reading.p <= 1
