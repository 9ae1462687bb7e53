"""The long test of odd numbers, in short: any seed may be drawn."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ocular.errors import CalibrationWarning
from stress.number_checks import CHECKS, exact_score


@pytest.mark.parametrize("name", CHECKS)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32 - 1))
def test_no_trouble(name, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        assert list(CHECKS[name](np.random.default_rng(seed))) == []


def test_the_exact_score_is_what_it_says():
    cov = np.array([[4.0, 1.0], [1.0, 2.0]])
    assert float(exact_score(cov, np.array([1.0, -3.0]))) == pytest.approx(
        np.array([1.0, -3.0]) @ np.linalg.inv(cov) @ np.array([1.0, -3.0])
    )
