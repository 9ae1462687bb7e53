"""How a ratio is measured: both sides in turns, medians, after a warm-up of each."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row of results/benchmarks.csv."""

    name: str
    ours: float
    peer: float
    peer_name: str
    unit: str
    is_overhead: bool = False  # the row's ratio is ours over the peer's, not how many times faster we are

    @property
    def ratio(self) -> float:
        """How many times faster we are, or what our addition costs."""
        return self.ours / self.peer if self.is_overhead else self.peer / self.ours


SHORTEST_TURN = 5e-3  # [s]


def _seconds(function: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return time.perf_counter() - start


def compare(
    name: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    peer_name: str,
    *,
    unit: str,
    per: float,
    rounds: int,
) -> Comparison:
    """Time both in turns, so that a busy machine slows both; `per` divides seconds into the unit.

    A turn is one call, or as many as fill some milliseconds: a control loop finds its caches as it left them.
    """
    ours(), peer()
    calls = [max(1, math.ceil(SHORTEST_TURN / _seconds(function, 1))) for function in (ours, peer)]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for function, count, spent in zip((ours, peer), calls, times, strict=True):
            spent.append(_seconds(function, count) / count / per)
    return Comparison(name, median(times[0]), median(times[1]), peer_name, unit)
