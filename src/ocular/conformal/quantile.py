"""The split-conformal quantile with an exact rank: floating point gets (9 + 1)(1 - 0.1) wrong."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ocular.errors import InputError, check_array, check_probability, check_shape, check_whole
from ocular.records import Floats


def exact_fraction(alpha: float | Fraction) -> Fraction:
    """alpha as the decimal number its user wrote: 0.1 means one tenth, not the nearest binary number."""
    check_probability("alpha", alpha)
    return alpha if isinstance(alpha, Fraction) else Fraction(repr(float(alpha)))


def conformal_rank(n: int, alpha: float | Fraction) -> int:
    """ceil((n + 1)(1 - alpha)), exactly; a rank above n means that n scores are too few."""
    check_whole("n", n)
    if n < 0:
        raise InputError(f"n is {n}; allowed is a count of at least 0")
    return math.ceil((n + 1) * (1 - exact_fraction(alpha)))


def conformal_quantile(sorted_scores: Floats, alpha: float | Fraction) -> float:
    """The rank-th smallest score, or infinity where the rank exceeds their number. Never interpolated."""
    check_array("sorted_scores", sorted_scores)
    check_shape("sorted_scores", sorted_scores, (None,))
    rank = conformal_rank(len(sorted_scores), alpha)
    found = float(sorted_scores[rank - 1]) if rank <= len(sorted_scores) else np.inf
    if np.isnan(found):
        raise InputError(f"the {rank}. score is {found}; allowed are numbers and infinity")
    return found
