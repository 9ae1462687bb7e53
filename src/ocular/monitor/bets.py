"""Bets against "nothing has changed": each pays more the smaller a p-value is, and is fair if it is uniform.

Every bet is a density on [0, 1] that never increases. Its expected payout is 1 if p is uniform and at most 1
if p tends to be larger, so that robots that do better than their calibration says cannot raise an alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from ocular.errors import check_choice
from ocular.records import Floats

Bets = Callable[[Floats], Floats]
"""p-values (...,) -> payouts (..., k) of k bets."""

_POWERS = np.array([0.1, 0.25, 0.5, 0.75])
_SLOPES = np.array([1.0, 2.0])
_STEPS = np.array([0.02, 0.1, 0.3])


def power(p: Floats) -> Floats:
    """k p^(k - 1): for scores far beyond those calibrated; the smaller k, the further."""
    return np.asarray(_POWERS * p[..., None] ** (_POWERS - 1.0))


def linear(p: Floats) -> Floats:
    """1 + e (1/2 - p), the simple jumper's bets, its upper half: for many scores that are a little high."""
    return np.asarray(1.0 + _SLOPES * (0.5 - p[..., None]))


def step(p: Floats) -> Floats:
    """Half of the stake on p <= s: for a region that is left too often, whatever lies beyond."""
    return np.asarray(0.5 + 0.5 * (p[..., None] <= _STEPS) / _STEPS)


def mixture(p: Floats) -> Floats:
    """All of them, with equal stakes."""
    return np.concatenate([power(p), linear(p), step(p)], axis=-1)


BETS: Mapping[str, Bets] = MappingProxyType(
    {"power": power, "linear": linear, "step": step, "mixture": mixture}
)


def bets(name: str) -> Bets:
    """The bets of this name."""
    check_choice("bets", name, BETS)
    return BETS[name]
