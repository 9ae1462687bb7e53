"""Does the position ellipse of a region touch a known obstacle? Exact, and mostly without visiting a cell.

An ellipse is {p : (p - μ)ᵀ M⁻¹ (p - μ) <= 1} with M = q S: q the chi-square quantile of the region and S the
position block of its calibrated covariance (the region's shadow on the plane). M may be singular (a segment
or a point). Cells are closed squares; whatever lies outside of the map is UNKNOWN, so it is no obstacle.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ocular.errors import check_type
from ocular.planning.belief import BeliefMap
from ocular.records import UNKNOWN

HALF_DIAGONAL = float(np.sqrt(0.5))  # of a cell, in cells
SLACK = 1e-3  # in cells: the shortcuts keep this far from ties, which the visit of the cells decides
PARTS = 32  # a penetration depth is known to one of these
LONGEST = 1e6  # cells of a way: a longer one, or one that is no number, is not walked but taken to hit


class Obstacles(NamedTuple):
    """The arrays of a belief map that a kernel needs; row 0 is the lowest y."""

    labels: npt.NDArray[np.uint8]  # (rows, cols)
    distance: npt.NDArray[np.float32]  # (rows, cols) [m], cell centre to nearest OCCUPIED cell centre
    cap: float  # [m], distances from here on are lower bounds
    unknown: int  # label index
    resolution: float  # [m]
    x0: float  # [m], left edge of column 0
    y0: float  # [m], lower edge of row 0


def obstacles_of(belief: BeliefMap) -> Obstacles:
    """What the kernels read of a belief map; ask anew after each update: a map that grew has new arrays."""
    check_type("belief", belief, BeliefMap)
    return Obstacles(
        labels=belief.labels,
        distance=belief.obstacle_distance,
        cap=belief.distance_cap,
        unknown=belief.names.index(UNKNOWN),
        resolution=belief.resolution,
        x0=belief.origin[0],
        y0=belief.origin[1],
    )


@njit(cache=True)
def _span_in_strip(a: float, b: float, c: float, low: float, high: float) -> tuple[float, float]:
    """Least and largest x - mu_x over the part of the ellipse [[a, b], [b, c]] with low <= y - mu_y <= high.

    At a given height the ellipse is an interval around b / c * height; its right end is concave in the height
    and highest at b / sqrt(a), so over the strip it is largest at the height nearest to that.
    """
    reach = np.sqrt(c)
    low, high = max(low, -reach), min(high, reach)
    if a <= 0.0:
        return 0.0, 0.0
    slope = b / c if c > 0.0 else 0.0
    conditional = max(a - slope * b, 0.0)  # Schur complement
    top = b / np.sqrt(a)
    right, left = min(max(top, low), high), min(max(-top, low), high)
    free_right = 1.0 - right * right / c if c > 0.0 else 1.0
    free_left = 1.0 - left * left / c if c > 0.0 else 1.0
    return (
        slope * left - np.sqrt(conditional * max(free_left, 0.0)),
        slope * right + np.sqrt(conditional * max(free_right, 0.0)),
    )


@njit(cache=True)
def _rows(y: float, c: float, map_: Obstacles) -> tuple[int, int]:
    """First and last row of closed cells that the ellipse reaches; may lie outside of the map."""
    reach = np.sqrt(c)
    first = np.ceil((y - reach - map_.y0) / map_.resolution) - 1.0
    last = np.floor((y + reach - map_.y0) / map_.resolution)
    rows = float(map_.distance.shape[0])
    return int(min(max(first, -1.0), rows)), int(min(max(last, -1.0), rows))


@njit(cache=True)
def _columns(x: float, y: float, a: float, b: float, c: float, row: int, map_: Obstacles) -> tuple[int, int]:
    """First and last column of closed cells that the ellipse reaches in this row; may be outside the map."""
    low = map_.y0 + row * map_.resolution - y
    left, right = _span_in_strip(a, b, c, low, low + map_.resolution)
    first = np.ceil((x + left - map_.x0) / map_.resolution) - 1.0
    last = np.floor((x + right - map_.x0) / map_.resolution)
    columns = float(map_.distance.shape[1])
    return int(min(max(first, -1.0), columns)), int(min(max(last, -1.0), columns))


@njit(cache=True)
def _row_hits(x: float, y: float, a: float, b: float, c: float, row: int, map_: Obstacles) -> bool:
    """Walk the cells of the ellipse in one row, leaping as far as the distance field allows."""
    columns = map_.distance.shape[1]
    first, last = _columns(x, y, a, b, c, row, map_)
    column, last = max(first, 0), min(last, columns - 1)
    while column <= last:
        cells_away = map_.distance[row, column] / map_.resolution
        if cells_away < 0.5:
            return True
        leap = np.ceil(cells_away - SLACK)
        column += int(leap) if leap < columns else columns
    return False


@njit(cache=True)
def _visit(x: float, y: float, a: float, b: float, c: float, map_: Obstacles) -> bool:
    """Row by row, from the centre outwards: if a large ellipse is hit, then not at its far ends alone."""
    first, last = _rows(y, c, map_)
    first, last = max(first, 0), min(last, map_.distance.shape[0] - 1)
    if first > last:
        return False
    middle = int(min(max((y - map_.y0) / map_.resolution, float(first)), float(last)))
    for away in range(max(last - middle, middle - first) + 1):
        if middle + away <= last and _row_hits(x, y, a, b, c, middle + away, map_):
            return True
        if 0 < away <= middle - first and _row_hits(x, y, a, b, c, middle - away, map_):
            return True
    return False


@njit(cache=True)
def _norm(x: float, y: float) -> float:
    return float(np.sqrt(x * x + y * y))


@njit(cache=True)
def _bounds(x: float, y: float, map_: Obstacles) -> tuple[float, float]:
    """A distance [m] within which there is no obstacle, and one to some obstacle cell's centre (or inf)."""
    rows, columns = map_.distance.shape
    column_at, row_at = (x - map_.x0) / map_.resolution, (y - map_.y0) / map_.resolution
    # Moving an outside point onto the map brings no obstacle further away: a lower bound stays one.
    near_column = min(max(column_at, 0.5), columns - 0.5)
    near_row = min(max(row_at, 0.5), rows - 0.5)
    row, column = int(near_row), int(near_column)
    away = float(map_.distance[row, column])
    offset = _norm(near_column - column - 0.5, near_row - row - 0.5)
    clearance = away - (offset + HALF_DIAGONAL + SLACK) * map_.resolution
    if away >= map_.cap:
        return clearance, np.inf
    return clearance, away + (_norm(column_at - column - 0.5, row_at - row - 0.5) + SLACK) * map_.resolution


@njit(cache=True)
def _semi_axes(a: float, b: float, c: float) -> tuple[float, float]:
    """Major and minor semi-axis of the ellipse with M = [[a, b], [b, c]]."""
    spread = 0.5 * (a + c)
    bulge = np.sqrt(0.25 * (a - c) * (a - c) + b * b)
    return np.sqrt(spread + bulge), np.sqrt(max(spread - bulge, 0.0))


@njit(cache=True)
def _first_in_row(at: float, row: int, step: int, limit: float, map_: Obstacles) -> float:
    """Gap [cells] from this column coordinate to the row's first obstacle in one direction, or `limit`."""
    columns = map_.distance.shape[1]
    column = int(min(max(np.floor(at), 0.0), columns - 1.0))
    while 0 <= column < columns:
        gap = max(column - at, at - column - 1.0, 0.0)
        if gap >= limit:
            return limit
        cells_away = map_.distance[row, column] / map_.resolution
        if cells_away < 0.5:
            return gap
        column += step * int(max(np.ceil(min(cells_away, float(columns)) - SLACK), 1.0))
    return limit


@njit(cache=True)
def _gap(x: float, y: float, most: float, map_: Obstacles) -> float:
    """Exact distance [m] from a point to the nearest OCCUPIED closed cell; anything beyond `most` if more."""
    rows = map_.distance.shape[0]
    column_at, row_at = (x - map_.x0) / map_.resolution, (y - map_.y0) / map_.resolution
    middle = int(min(max(np.floor(row_at), 0.0), rows - 1.0))
    best = np.nextafter(most / map_.resolution, np.inf) * (1.0 + 1e-12)
    for away in range(rows):
        going = False
        for row in (middle + away, middle - away) if away else (middle, -1):
            rise = max(row - row_at, row_at - row - 1.0, 0.0)
            if not 0 <= row < rows or rise >= best:
                continue
            going = True
            limit = np.sqrt(best * best - rise * rise)
            across = min(
                _first_in_row(column_at, row, 1, limit, map_), _first_in_row(column_at, row, -1, limit, map_)
            )
            if across < limit:
                best = _norm(across, rise)
        if not going:
            break
    return float(best * map_.resolution)


@njit(cache=True)
def hits_obstacle(x: float, y: float, a: float, b: float, c: float, map_: Obstacles) -> bool:
    """Whether the ellipse with centre (x, y) and M = [[a, b], [b, c]] meets an OCCUPIED cell."""
    if not np.isfinite(a + b + c + x + y):
        return True
    clearance, to_centre = _bounds(x, y, map_)
    if clearance > 0.0 and clearance * clearance > a + c:  # the trace bounds the largest eigenvalue
        return False
    major, minor = _semi_axes(a, b, c)
    if clearance > major:
        return False
    if to_centre < minor:  # a cell centre within the minor semi-axis
        return True
    if major == minor:  # a disc
        return bool(_gap(x, y, major, map_) <= major)
    return bool(_visit(x, y, a, b, c, map_))


@njit(cache=True)
def _distance_at(x: float, y: float, map_: Obstacles, per_metre: float) -> float:
    """Distance [m] from the centre of this point's cell to the nearest OCCUPIED one; negative off the map."""
    rows, columns = map_.distance.shape
    column, row = (x - map_.x0) * per_metre, (y - map_.y0) * per_metre
    if column >= 0.0 and row >= 0.0 and column < columns and row < rows:
        return float(map_.distance[np.uint64(row), np.uint64(column)])
    return -1.0


@njit(cache=True)
def _walk_hits(x0: float, y0: float, x1: float, y1: float, map_: Obstacles, slack: float) -> bool:
    """Look along the way in leaps as long as the distance field allows, of half a cell at least."""
    length, done = _norm(x1 - x0, y1 - y0), 0.0
    if not length <= LONGEST * map_.resolution:
        return True
    if length == 0.0:
        return bool(_distance_at(x0, y0, map_, 1.0 / map_.resolution) == 0.0)
    per_metre, shortest = 1.0 / map_.resolution, 0.5 * map_.resolution
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    while True:
        away = _distance_at(x0 + done * ux, y0 + done * uy, map_, per_metre)
        if away == 0.0:
            return True
        if done >= length:
            return False
        done = min(length, done + max(shortest, away - slack))


@njit(cache=True)
def path_hits(x0: float, y0: float, x1: float, y1: float, map_: Obstacles) -> bool:
    """Whether the straight way between two points, ends included, meets an OCCUPIED cell.

    An obstacle is known by its visible boundary alone, one cell thin, with UNKNOWN behind it; a fast robot
    would leap over it from one predicted state to the next. A corner cut by less than half a cell is let
    pass.
    """
    slack = (2.0 * HALF_DIAGONAL + SLACK) * map_.resolution
    per_metre = 1.0 / map_.resolution
    squared = (x1 - x0) * (x1 - x0) + (y1 - y0) * (y1 - y0)
    last = _distance_at(x1, y1, map_, per_metre)
    if last == 0.0:
        return True
    first = _distance_at(x0, y0, map_, per_metre)
    # Two discs without an obstacle, round both ends, that cover the way.
    free = max(first - slack, 0.0) + max(last - slack, 0.0)
    if first != 0.0 and free * free > squared:
        return False
    return bool(_walk_hits(x0, y0, x1, y1, map_, slack))


@njit(cache=True)
def paths_hit(before: Any, means: Any, map_: Obstacles, blocked: Any) -> None:
    """Mark the samples (d, n) whose way from before to means meets an OCCUPIED cell; marks stay.

    The first loop is free of branches, so that it vectorises, and settles nearly all: an end that is further
    from any obstacle than the way is long. Beyond the map's edge, the nearest cell on it is a lower bound.
    """
    n = means.shape[1]
    rows, columns = map_.distance.shape
    distance = map_.distance.reshape(-1)
    x0, y0 = np.float32(map_.x0), np.float32(map_.y0)
    per_metre = np.float32(1.0 / map_.resolution)
    slack = np.float32((2.0 * HALF_DIAGONAL + SLACK) * map_.resolution)
    last_row, last_column = np.float32(rows - 1), np.float32(columns - 1)
    zero, width = np.float32(0.0), np.int32(columns)
    close = np.empty(n, np.bool_)
    for s in range(n):
        # Spelled out so that what is not a number becomes zero: as an index it would lead anywhere.
        x, y = (means[0, s] - x0) * per_metre, (means[1, s] - y0) * per_metre
        x, y = x if x > zero else zero, y if y > zero else zero
        column = np.int32(x if x < last_column else last_column)
        row = np.int32(y if y < last_row else last_row)
        dx, dy = means[0, s] - before[0, s], means[1, s] - before[1, s]
        clearance = max(distance[np.uint32(row * width + column)] - slack, zero)
        close[s] = not clearance * clearance > dx * dx + dy * dy
    for s in range(n):
        if close[s] and not blocked[s]:
            blocked[s] = path_hits(
                float(before[0, s]), float(before[1, s]), float(means[0, s]), float(means[1, s]), map_
            )


@njit(cache=True)
def penetration(x: float, y: float, a: float, b: float, c: float, map_: Obstacles) -> float:
    """How deep obstacles reach into the ellipse: 0 when clear, 1 when the centre itself is in one.

    It is 1 - s for the largest s in [0, 1] such that the ellipse with semi-axes scaled by s is clear: one
    minus the least Mahalanobis distance of an obstacle over that of the boundary. Rounded up to 1 / PARTS.
    """
    if not np.isfinite(a + b + c + x + y):
        return 1.0
    if not hits_obstacle(x, y, a, b, c, map_):
        return 0.0
    # The scales that the distance field settles need no look at the map: those are nearly all of a large one.
    (clearance, to_centre), (major, minor) = _bounds(x, y, map_), _semi_axes(a, b, c)
    if major == minor and major > 0.0:  # a disc
        gap = _gap(x, y, min(major, to_centre), map_)
        return float(1.0 - min(max(np.ceil(PARTS * gap / major) - 1.0, 0.0), PARTS - 1.0) / PARTS)
    clear, hit = 0, PARTS
    if major > 0.0:
        clear = int(min(max(np.ceil(PARTS * clearance / major) - 1.0, 0.0), PARTS - 1.0))
    if PARTS * to_centre < (PARTS - 1.0) * minor:
        hit = int(PARTS * to_centre / minor) + 1
    while hit - clear > 1:
        middle = (clear + hit) // 2
        square = (middle / PARTS) * (middle / PARTS)
        if hits_obstacle(x, y, square * a, square * b, square * c, map_):
            hit = middle
        else:
            clear = middle
    return 1.0 - clear / PARTS


@njit(cache=True)
def within_seen(x: float, y: float, a: float, b: float, c: float, map_: Obstacles) -> bool:
    """Whether every cell that the ellipse meets lies on the map and is not UNKNOWN."""
    if not np.isfinite(a + b + c + x + y):
        return False
    rows, columns = map_.labels.shape
    first_row, last_row = _rows(y, c, map_)
    if first_row < 0 or last_row >= rows:
        return False
    for row in range(first_row, last_row + 1):
        first, last = _columns(x, y, a, b, c, row, map_)
        if first < 0 or last >= columns:
            return False
        for column in range(first, last + 1):
            if map_.labels[row, column] == map_.unknown:
                return False
    return True


def ellipse(
    mean: npt.NDArray[Any], cov: npt.NDArray[Any], quantile: float
) -> tuple[float, float, float, float, float]:
    """x, y and the entries a, b, c of M = q S, for a state that begins with the position."""
    a, b, c = float(quantile * cov[0, 0]), float(quantile * cov[0, 1]), float(quantile * cov[1, 1])
    return float(mean[0]), float(mean[1]), a, b, c
