"""Per-cell thresholds: grouping, several alphas, starved cells and their fallback."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocular.conformal import CellScores, Lineage, conformal_quantile
from ocular.errors import CalibrationWarning, InputError


@given(st.integers(0, 10**6), st.integers(1, 8), st.sampled_from([0.05, 0.1, 0.3, 0.9]))
def test_thresholds_are_each_cells_own_quantile(seed, n_cells, alpha):
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, n_cells, 400)
    scores = rng.exponential(size=400)
    grouped = CellScores.group(scores, cells, n_cells)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        thresholds = grouped.thresholds(alpha)
    for cell in range(n_cells):
        assert thresholds[cell] == conformal_quantile(np.sort(scores[cells == cell]), alpha)


@given(st.integers(0, 10**6), st.floats(0.001, 0.998), st.floats(0.0001, 0.5))
def test_a_larger_alpha_never_enlarges_a_region(seed, alpha, more):
    rng = np.random.default_rng(seed)
    grouped = CellScores.group(rng.exponential(size=60), rng.integers(0, 3, 60), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        assert (grouped.thresholds(min(alpha + more, 0.999)) <= grouped.thresholds(alpha)).all()


def test_a_starved_cell_is_infinite_and_the_warning_names_it():
    cells = np.array([0] * 20 + [1] * 8 + [3] * 9)
    grouped = CellScores.group(np.arange(37.0), cells, 4)
    with pytest.warns(CalibrationWarning, match=r"2 of 4 cells .* 9 points .*cell 1: 8 points.*cell 2: 0 p"):
        thresholds = grouped.thresholds(0.1)
    assert np.isinf(thresholds).tolist() == [False, True, True, False]


def test_fallback_takes_the_nearest_ancestor_with_enough_points():
    #        0
    #      1   4
    #     2 3      leaves 2, 3, 4 are cells 0, 1, 2
    lineage = Lineage(np.array([2, 3, 4]), np.array([-1, 0, 1, 1, 0]))
    scores = np.concatenate([np.arange(12.0), [100.0, 101.0], np.full(50, 1000.0)])
    cells = np.array([0] * 12 + [1] * 2 + [2] * 50)
    grouped = CellScores.group(scores, cells, 3)
    with pytest.warns(CalibrationWarning, match="cell 1: 2 points, threshold 101"):
        thresholds = grouped.thresholds(0.1, lineage)
    # Cell 1 pools with its sibling: 14 scores, rank ceil(15 * 0.9) = 14 at alpha 0.1 is 101 ...
    assert thresholds[1] == conformal_quantile(np.sort(scores[:14]), 0.1)
    assert thresholds[0] == conformal_quantile(scores[:12], 0.1)
    # ... and when even the root has too few, infinity stays.
    with pytest.warns(CalibrationWarning):
        assert np.isinf(grouped.thresholds(0.001, lineage)).all()


def test_fallback_is_chosen_by_counts_alone():
    """Shuffling the scores among the same cells never changes whose scores are pooled."""
    lineage = Lineage(np.array([1, 2]), np.array([-1, 0, 0]))
    rng = np.random.default_rng(0)
    cells = np.array([0] * 3 + [1] * 40)
    for _ in range(20):
        scores = rng.permutation(43.0 + np.arange(43))
        with pytest.warns(CalibrationWarning):
            thresholds = CellScores.group(scores, cells, 2).thresholds(0.1, lineage)
        assert thresholds[0] == conformal_quantile(np.sort(scores), 0.1)


def test_infinite_scores_are_legal_and_nan_is_not():
    grouped = CellScores.group(np.array([1.0, np.inf, np.inf]), np.zeros(3, dtype=int), 1)
    assert grouped.thresholds(0.5) == np.inf
    with pytest.raises(InputError, match="1 scores are NaN"):
        CellScores.group(np.array([1.0, np.nan]), np.zeros(2, dtype=int), 1)


@pytest.mark.parametrize(
    ("scores", "offsets"),
    [
        ([2.0, 1.0], [0, 2]),
        ([1.0, 2.0], [0, 1]),
        ([1.0, np.nan], [0, 2]),
        ([1.0], [1, 1]),
        ([1.0], [0, 2, 1]),
    ],
)
def test_unsound_groups_are_refused(scores, offsets):
    with pytest.raises(InputError, match="allowed"):
        CellScores(np.array(scores), np.array(offsets))


def test_cells_out_of_range_are_refused():
    with pytest.raises(InputError, match="cells run from 0 to 5; allowed are 0 to 2"):
        CellScores.group(np.ones(2), np.array([0, 5]), 3)
    with pytest.raises(InputError, match="cells has shape"):
        CellScores.group(np.ones(2), np.array([0]), 3)


def test_the_smallest_alpha_says_at_once_how_many_points_it_needs():
    scores = CellScores(np.arange(6.0), np.array([0, 6]))
    with pytest.warns(CalibrationWarning, match="fewer than the 9 points that alpha=0.1 needs"):
        scores.thresholds(0.1)
    with pytest.warns(CalibrationWarning, match="fewer than the 9{300} points that alpha=1e-300 needs"):
        scores.thresholds(1e-300)
