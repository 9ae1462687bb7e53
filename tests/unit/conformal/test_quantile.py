"""The exact rank, where floating point goes wrong, and the quantile's edges."""

from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocular.conformal import conformal_quantile, conformal_rank, exact_fraction
from ocular.errors import InputError


@pytest.mark.parametrize(
    ("n", "alpha", "rank"),
    [(9, 0.1, 9), (19, 0.1, 18), (29, 0.1, 27), (99, 0.1, 90), (8, 0.1, 9), (0, 0.5, 1), (19, 0.05, 19)],
)
def test_known_ranks(n, alpha, rank):
    assert conformal_rank(n, alpha) == rank


@given(st.integers(0, 10_000), st.integers(1, 999_999))
def test_rank_agrees_with_decimal_arithmetic(n, millionths):
    exact = (Decimal(n + 1) * (1 - Decimal(millionths) / Decimal(10**6))).to_integral_value(ROUND_CEILING)
    assert conformal_rank(n, millionths / 10**6) == int(exact)


def test_floating_point_would_have_been_wrong_somewhere():
    naive = [int(np.ceil((n + 1) * (1 - a))) for n in range(1, 300) for a in (0.1, 0.2, 0.3, 0.7, 0.9)]
    exact = [conformal_rank(n, a) for n in range(1, 300) for a in (0.1, 0.2, 0.3, 0.7, 0.9)]
    assert naive != exact


def test_alpha_means_the_decimal_its_user_wrote():
    assert exact_fraction(0.1) == Fraction(1, 10)
    assert exact_fraction(Fraction(1, 3)) == Fraction(1, 3)
    assert exact_fraction(1e-6) == Fraction(1, 10**6)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, float("nan"), float("inf")])
def test_alpha_outside_is_refused(alpha):
    with pytest.raises(InputError, match=r"alpha is .*strictly between 0 and 1"):
        conformal_rank(10, alpha)


def test_quantile_is_an_order_statistic_or_infinite():
    scores = np.arange(1.0, 10.0)  # n = 9
    assert conformal_quantile(scores, 0.1) == 9.0
    assert conformal_quantile(scores[:8], 0.1) == np.inf
    assert conformal_quantile(np.array([]), 0.5) == np.inf
    assert conformal_quantile(scores, 0.999) == 1.0
