"""Thresholds between logged values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ocular.calibrators.levels import MOST, Levels, raised
from ocular.errors import InputError

VALUES = np.array([0.0, 0.4, 0.8, 2.0])
NUMBERS = st.one_of(st.floats(0, 100), st.just(np.inf))


def test_values_that_rounding_sets_apart_are_one():
    speeds = np.array([0.4, 0.4 * (1 + 1e-15), 0.8, 2.0, 0.0])
    levels = Levels.of(np.column_stack([np.ones(5), speeds]), 1)
    np.testing.assert_allclose(levels.values, VALUES)


def test_dense_logs_and_constant_ones_have_no_levels():
    assert Levels.of(np.linspace(0, 1, MOST + 1)[:, None], 0) is None
    assert Levels.of(np.ones((5, 1)), 0) is None
    assert Levels.of(np.linspace(0, 1, MOST)[:, None], 0) is not None


def test_neighbours_enclose_what_lies_between_and_hold_what_lies_beyond():
    rows = np.array([[7.0, 0.5], [7.0, 0.4], [7.0, 3.0], [7.0, -1.0], [7.0, 0.0]])
    below, above, share = Levels(1, VALUES).neighbours(rows)
    np.testing.assert_array_equal(below[:, 0], 7)
    np.testing.assert_array_equal(below[:, 1], [0.4, 0.0, 0.8, 0.0, 0.0])
    np.testing.assert_array_equal(above[:, 1], [0.8, 0.4, 2.0, 0.4, 0.4])
    np.testing.assert_allclose(share, [0.09 / 0.48, 1, 1, 0, 0], atol=1e-12)
    np.testing.assert_array_equal(rows[:, 1], [0.5, 0.4, 3.0, -1.0, 0.0])


@given(*[hnp.arrays(float, 6, elements=NUMBERS)] * 3, hnp.arrays(float, 6, elements=st.floats(0, 1)))
def test_a_threshold_is_never_lowered_and_never_more_than_the_largest(own, below, above, share):
    result = raised(own, below, above, share)
    assert (result >= own).all()
    assert (result <= np.maximum(own, np.maximum(below, above))).all()
    np.testing.assert_array_equal(raised(own, below, above, np.zeros(6)), np.maximum(own, below))
    np.testing.assert_array_equal(raised(own, below, above, np.ones(6)), np.maximum(own, above))
    between = (share > 0) & (share < 1) & np.isinf(below + above)
    assert np.isinf(result[between]).all()


def test_a_quarter_of_the_way():
    assert raised(*np.array([[1.0], [2.0], [4.0], [0.25]])) == 2.5


@pytest.mark.parametrize(
    "values", [np.array([1.0, 0.5]), np.array([0.0, np.nan]), np.empty(0), np.ones(1), np.array([-1.0, 0.0])]
)
def test_levels_that_are_none_are_refused(values):
    with pytest.raises(InputError, match="allowed"):
        Levels(0, values)
