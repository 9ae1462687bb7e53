"""Distance of every map cell to the nearest obstacle cell, kept current where the map changes.

Exact up to a cap, by two passes (Meijster et al. 2000): first along each column, then along each row the
lower envelope of one parabola per column. Only what a change can reach is done again: a cell further than the
cap from every changed cell keeps its distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from ocular.records import Labels

Float32s = npt.NDArray[np.float32]
Int16s = npt.NDArray[np.int16]


def update_distances(
    labels: Labels,
    occupied: int,
    column_distance: Int16s,
    distance: Float32s,
    resolution: float,
    reach: int,
    changed: tuple[int, int, int, int],
) -> None:
    """Bring `column_distance` [cells, at most reach + 1] and `distance` [m, at most reach cells] up to date.

    `changed` holds the first and last row and the first and last column in which a cell became, or ceased to
    be, an obstacle since the last call.
    """
    _update(labels, np.uint8(occupied), column_distance, distance, resolution, reach, *changed)


@njit(cache=True, nogil=True)
def _update(
    labels: Labels,
    occupied: Any,
    column_distance: Int16s,
    distance: Float32s,
    resolution: float,
    reach: int,
    row0: int,
    row1: int,
    col0: int,
    col1: int,
) -> None:
    rows, cols = labels.shape
    first, last = max(0, row0 - reach), min(rows - 1, row1 + reach)
    changed_from = np.full(last - first + 1, cols, np.int64)  # per row: which column distances changed
    changed_to = np.full(last - first + 1, -1, np.int64)
    _column_pass(labels, occupied, column_distance, reach, first, last, col0, col1, changed_from, changed_to)
    # The longest row of parabolas: where each is, where it takes over from the one before it.
    apex = np.empty(cols, np.int64)
    start = np.empty(cols + 1, np.float64)
    for row in range(first, last + 1):
        a, b = changed_from[row - first], changed_to[row - first]
        if a <= b:
            _row_pass(
                column_distance[row],
                distance[row],
                resolution,
                reach,
                max(0, a - reach),
                min(cols - 1, b + reach),
                apex,
                start,
            )


@njit(cache=True, nogil=True)
def _column_pass(
    labels: Labels,
    occupied: Any,
    column_distance: Int16s,
    reach: int,
    first: int,
    last: int,
    col0: int,
    col1: int,
    changed_from: Any,
    changed_to: Any,
) -> None:
    """Distance along each column, and per row the span of columns in which it changed."""
    rows = len(labels)
    far = np.int16(reach + 1)
    width = col1 - col0 + 1
    above = np.empty((last - first + 1, width), np.int16)
    current = np.full(width, far, np.int16)
    # An obstacle up to `reach` beyond the rows to be renewed still counts for them.
    for row in range(last + reach if last + reach < rows else rows - 1, first - 1, -1):
        for c in range(width):
            nearer = current[c] + 1 if current[c] < far else far
            current[c] = 0 if labels[row, col0 + c] == occupied else nearer
        if row <= last:
            above[row - first] = current
    current[:] = far
    for row in range(max(0, first - reach), last + 1):
        for c in range(width):
            nearer = current[c] + 1 if current[c] < far else far
            current[c] = 0 if labels[row, col0 + c] == occupied else nearer
        if row < first:
            continue
        for c in range(width):
            new = min(current[c], above[row - first, c])
            if new != column_distance[row, col0 + c]:
                column_distance[row, col0 + c] = new
                changed_from[row - first] = min(changed_from[row - first], col0 + c)
                changed_to[row - first] = col0 + c


@njit(cache=True, nogil=True)
def _row_pass(
    heights: Int16s,
    distance: Float32s,
    resolution: float,
    reach: int,
    begin: int,
    end: int,
    apex: Any,
    start: Any,
) -> None:
    """Distances of columns begin..end of one row, from the column distances of all columns in reach."""
    count = 0
    for q in range(max(0, begin - reach), min(len(heights) - 1, end + reach) + 1):
        h = np.int64(heights[q])
        if h > reach:
            continue
        level = h * h + q * q
        take_over = -np.inf
        while count:
            p = apex[count - 1]
            hp = np.int64(heights[p])
            take_over = (level - hp * hp - p * p) / (2.0 * (q - p))
            if take_over > start[count - 1]:
                break
            count -= 1
            take_over = -np.inf
        apex[count] = q
        start[count] = take_over
        count += 1
    k = 0
    for x in range(begin, end + 1):
        square = reach * reach
        if count:
            while k + 1 < count and start[k + 1] <= x:
                k += 1
            h = np.int64(heights[apex[k]])
            square = min(square, h * h + (x - apex[k]) ** 2)
        distance[x] = np.sqrt(np.float64(square)) * resolution
