"""Scores, quantiles and regions at the ends of double precision: infinity where nothing else is true."""

import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocular.calibrators.levels import Levels
from ocular.conformal import CellScores, Region, conformal_rank, squared_mahalanobis
from ocular.errors import CalibrationWarning, InputError
from ocular.partition import TreePartition
from ocular.records import Gaussian

anything = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=60, deadline=None)
@given(mean=st.lists(anything, min_size=3, max_size=3), outcome=st.lists(anything, min_size=3, max_size=3))
def test_whatever_lies_however_far_away_has_a_score(mean, outcome):
    for angles in ((), (2,)):
        prediction = Gaussian(np.array(mean), np.diag([1e-12, 1.0, 0.0]), angles)
        score = squared_mahalanobis(prediction, np.array(outcome))
        assert score >= 0
    assert squared_mahalanobis(Gaussian(np.array(mean), np.eye(3)), np.array(mean)) == 0


@settings(max_examples=60, deadline=None)
@given(threshold=st.floats(0, allow_nan=False), power=st.integers(-300, 300))
def test_semi_axes_neither_vanish_nor_overflow_before_they_must(threshold, power):
    variance = 10.0**power
    region = Region(Gaussian(np.zeros(2), variance * np.eye(2)), np.array(threshold))
    lengths, _ = region.semi_axes()
    wanted = np.inf if np.isinf(threshold) else float(np.sqrt(threshold) * np.sqrt(variance))
    np.testing.assert_allclose(lengths, wanted, rtol=1e-12)
    assert not np.isnan(region.volume())


def test_a_prediction_that_overflowed_has_no_semi_axes():
    region = Region(Gaussian(np.zeros(2), np.diag([1.0, np.inf])), np.array(1.0))
    with pytest.raises(InputError, match="the predicted covariance has 1 values that are not finite"):
        region.semi_axes()


@pytest.mark.parametrize("alpha", [1e-6, 1e-4, 0.05, 0.1, 0.3, 0.5, 0.9, 0.999])
def test_the_warning_names_how_many_points_are_needed_and_does_not_count_up_to_them(alpha):
    empty = CellScores(np.empty(0), np.zeros(2, np.int64))
    started = time.process_time()
    with pytest.warns(CalibrationWarning, match=r"fewer than the \d+ points") as caught:
        assert np.isinf(empty.thresholds(alpha)).all()
    assert time.process_time() - started < 0.5
    needed = int(str(caught[0].message).split("fewer than the ")[1].split()[0])
    assert conformal_rank(needed, alpha) <= needed
    assert conformal_rank(needed - 1, alpha) > needed - 1


def test_negative_scores_are_refused():
    with pytest.raises(InputError, match="negative number"):
        CellScores(np.array([-1e-300, 1.0]), np.array([0, 2]))


@pytest.mark.parametrize("values", [[1e-200, 2e-200], [1e200, 2e200], [0.0, np.inf], [1.0, 1.0]])
def test_levels_whose_squares_cannot_be_told_apart_are_refused(values):
    with pytest.raises(InputError):
        Levels(0, np.array(values))


@pytest.mark.parametrize("threshold", [1e300, -1e300, 1e-300, -1e-300])
def test_thresholds_beyond_single_precision_decide_as_double_does(threshold):
    tree = TreePartition(
        n_features=1,
        feature=np.array([0, -1, -1], np.int32),
        threshold=np.array([threshold, 0.0, 0.0]),
        left=np.array([1, -1, -1], np.int32),
        right=np.array([2, -1, -1], np.int32),
        cell=np.array([-1, 0, 1], np.int32),
    )
    rows = np.array([[-3e38], [-1.0], [-1e-44], [0.0], [1e-44], [1.0], [3e38]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cells = tree.apply(rows)
    assert (
        cells.tolist() == (rows[:, 0].astype(np.float32).astype(np.float64) > threshold).astype(int).tolist()
    )
