"""Between logged values: logs on a grid say nothing of the speeds between its lines, yet robots drive there.

A tree splits halfway between two logged values. An input just below the split would be trusted as much as the
slower logs, and a planner that looks for small regions goes and stays exactly there; one just above it would
be trusted as little as the faster logs. The threshold is therefore interpolated between those of the same
input at the two neighbouring logged values, along the feature's square: so grows a squared distance when the
error is proportional to the feature. At logged values it is the cell's own, so every promise that calibration
data can make is kept; beyond the last ones it is theirs; and where logs are dense nothing changes at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ocular.errors import InputError
from ocular.records import Floats, Indices

MOST = 64  # distinct values above which logs count as dense
TOLERANCE = 1e-9  # relative to the largest: values that rounding alone sets apart are one


@dataclass(frozen=True, slots=True)
class Levels:
    """The logged values of one feature, a magnitude."""

    column: int
    values: Floats  # (k,), ascending, not negative

    def __post_init__(self) -> None:
        rising = np.diff(self.values) > 0
        if self.column < 0 or len(self.values) < 2 or not (self.values[0] >= 0 and rising.all()):
            raise InputError(
                f"levels {self.values} of column {self.column}; allowed are two or more ascending magnitudes"
            )

    @classmethod
    def of(cls, features: Floats, column: int) -> Levels | None:
        """The distinct values of this feature, or nothing where the logs are dense."""
        values = np.unique(features[:, column])
        apart = np.diff(values, prepend=-np.inf) > TOLERANCE * np.abs(values).max(initial=0.0)
        return cls(column, values[apart]) if 1 < apart.sum() <= MOST else None

    def neighbours(self, features: Floats) -> tuple[Floats, Floats, Floats]:
        """The same rows at the logged value below and above, and the share of the way between."""
        # Not clip(), whose own cost is most of a single query's.
        wanted = np.minimum(np.maximum(features[:, self.column], self.values[0]), self.values[-1])
        upper: Indices = np.minimum(np.maximum(self.values.searchsorted(wanted), 1), len(self.values) - 1)
        low, high = self.values[upper - 1], self.values[upper]
        below, above = features.copy(), features.copy()
        below[:, self.column], above[:, self.column] = low, high
        return below, above, (wanted**2 - low**2) / (high**2 - low**2)


def interpolated(below: Floats, above: Floats, share: Floats) -> Floats:
    """Thresholds this share of the way between the neighbours'; next to an infinite one they are infinite."""
    with np.errstate(invalid="ignore"):
        between = below + share * (above - below)
    between = np.where(np.isinf(below) | np.isinf(above), np.inf, between)
    return np.asarray(np.where(share == 0, below, np.where(share == 1, above, between)))
