"""Between logged values: logs on a grid say nothing of the speeds between its lines, yet robots drive there.

A tree splits halfway between two logged values. An input just below the split would be trusted as much as the
slower logs, and a planner that looks for small regions goes and stays exactly there. Thresholds are therefore
raised to what lies between those at the two neighbouring logged values, in proportion to the feature's
square: so grows a squared distance when the error is proportional to the feature. They are never lowered, so
every cell keeps its promise; at logged values nothing changes, and where logs are dense nothing does either.
Lowering them just above a split, by the same rule, would leave coverage there to the assumption alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ocular.errors import InputError, check_finite, check_shape, check_whole
from ocular.records import Floats, Indices

MOST = 64  # distinct values above which logs count as dense
TOLERANCE = 1e-9  # relative to the largest: values that rounding alone sets apart are one


@dataclass(frozen=True, slots=True)
class Levels:
    """The logged values of one feature, a magnitude."""

    column: int
    values: Floats  # (k,), ascending, not negative

    def __post_init__(self) -> None:
        check_whole("the column of levels", self.column, least=0)
        check_shape("levels", self.values, (None,))
        check_finite("levels", self.values)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            rising = np.diff(self.values**2)  # shares are of squares, which must not overflow or vanish
        if len(self.values) < 2 or not (
            self.values[0] >= 0 and (rising > 0).all() and np.isfinite(rising).all()
        ):
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


def raised(own: Floats, below: Floats, above: Floats, share: Floats) -> Floats:
    """Thresholds raised to this share of the way from one neighbour's to the other's; infinity wins."""
    with np.errstate(invalid="ignore"):
        between = np.where(share == 0, below, np.where(share == 1, above, below + share * (above - below)))
    return np.asarray(np.fmax(own, np.where(np.isinf(below) & (share < 1), np.inf, between)))
