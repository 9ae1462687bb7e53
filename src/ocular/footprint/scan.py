"""The footprint a robot sees from a pose in a label grid, compiled: the inner loop of a planner.

scan_reference.py says the same in NumPy; the two agree bit for bit.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit

from ocular.errors import InputError, check_array, check_finite, check_shape, check_type, check_whole
from ocular.footprint.grid import LabelGrid
from ocular.records import OCCUPIED, UNKNOWN, Floats, FootprintGeometry, Labels, for_kernels

MOST_THREADS = 1024


def scan(
    grid: LabelGrid,
    geometry: FootprintGeometry,
    positions: Floats,
    headings: Floats,
    *,
    threads: int = 1,
) -> Labels:
    """Footprints (n, angles, ranges): a ray ends in the first OCCUPIED cell, all behind it is UNKNOWN."""
    check_type("grid", grid, LabelGrid)
    check_type("geometry", geometry, FootprintGeometry)
    check_shape("positions", positions, (None, 2))
    check_shape("headings", headings, (len(positions),))
    for name, array in {"positions": positions, "headings": headings}.items():
        check_array(name, array)
        check_finite(name, array)
    check_whole("threads", threads, most=MOST_THREADS)
    if threads < 1:
        raise InputError(f"threads is {threads}; allowed is at least 1")
    out = np.empty((len(positions), geometry.angles, geometry.ranges), np.uint8)
    positions = for_kernels(np.asarray(positions, np.float64))
    # NumPy's cosine and the compiler's may differ in the last bit, so the kernel is given NumPy's.
    headings = headings.astype(np.float64)
    directions = np.stack([np.cos(headings), np.sin(headings)], axis=1)
    shared = (
        for_kernels(grid.labels),
        1.0 / grid.resolution,
        float(grid.origin[0]),
        float(grid.origin[1]),
        *rays(geometry, grid.resolution),
        np.uint8(grid.index(OCCUPIED)),
        np.uint8(grid.index(UNKNOWN)),
        np.uint8(grid.index(grid.outside)),
    )
    if threads == 1:
        _scan_poses(*shared, positions, directions, out)
        return out
    chunks = [np.array_split(array, threads) for array in (positions, directions, out)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda chunk: _scan_poses(*shared, *chunk), zip(*chunks, strict=True)))
    return out


def rays(geometry: FootprintGeometry, resolution: float) -> tuple[Floats, Floats, Floats]:
    """What `scan_into` asks of a geometry: cosine and sine of the bearings, the distances in cells."""
    reach = geometry.distances * (1.0 / resolution)
    return np.cos(geometry.bearings), np.sin(geometry.bearings), reach


@njit(cache=True, nogil=True)
def scan_into(  # type: ignore[no-untyped-def]
    labels,  # (rows, cols), C-contiguous
    cells_per_metre,
    origin_x,
    origin_y,
    cos_bearings,  # (angles,)
    sin_bearings,  # (angles,)
    reach,  # (ranges,), ascending [cells]
    occupied,
    unknown,
    outside,
    x,
    y,
    cos_heading,  # the heading as a unit vector: a planner has it as velocity / speed, without trigonometry
    sin_heading,
    out,  # (angles, ranges)
):
    """Scan one pose; all raw arrays and numbers, to be called from other kernels."""
    height, width = labels.shape
    last = reach[-1]
    column = (x - origin_x) * cells_per_metre
    row = (y - origin_y) * cells_per_metre
    cells = np.empty(len(reach), np.int32)
    flat = labels.ravel()
    for i in range(len(cos_bearings)):
        right = cos_heading * cos_bearings[i] - sin_heading * sin_bearings[i]
        up = sin_heading * cos_bearings[i] + cos_heading * sin_bearings[i]
        # A segment with both ends inside is inside (rounding keeps order): no test per cell is needed.
        inside = (
            min(column, column + last * right) >= 0
            and max(column, column + last * right) < width
            and min(row, row + last * up) >= 0
            and max(row, row + last * up) < height
        )
        if inside:
            ended = _ray_inside(flat, width, column, row, right, up, reach, occupied, cells, out[i])
        else:
            ended = _ray_across_edge(labels, column, row, right, up, reach, occupied, outside, out[i])
        for k in range(ended, len(reach)):
            out[i, k] = unknown


@njit(cache=True, nogil=True)
def _ray_inside(flat, width, column, row, right, up, reach, occupied, cells, line):  # type: ignore[no-untyped-def]
    """Fill `line` up to the first occupied cell; return how many were filled."""
    # Without branches or lookups, so that the compiler makes vector instructions of it.
    for k in range(len(reach)):
        cells[k] = np.int32(row + reach[k] * up) * np.int32(width) + np.int32(column + reach[k] * right)
    for k in range(len(reach)):
        # Unsigned, or the compiler tests each index for being negative.
        line[k] = flat[np.uintp(cells[k])]
        if line[k] == occupied:
            return k + 1
    return len(reach)


@njit(cache=True, nogil=True)
def _ray_across_edge(labels, column, row, right, up, reach, occupied, outside, line):  # type: ignore[no-untyped-def]
    """The same where some of the cells may be off the grid."""
    height, width = labels.shape
    for k in range(len(reach)):
        u = column + reach[k] * right
        v = row + reach[k] * up
        if u >= 0 and u < width and v >= 0 and v < height:
            line[k] = labels[np.int64(v), np.int64(u)]
        else:
            line[k] = outside
        if line[k] == occupied:
            return k + 1
    return len(reach)


@njit(cache=True, nogil=True)
def _scan_poses(  # type: ignore[no-untyped-def]
    labels,
    cells_per_metre,
    origin_x,
    origin_y,
    cos_bearings,
    sin_bearings,
    reach,
    occupied,
    unknown,
    outside,
    positions,  # (n, 2)
    directions,  # (n, 2)
    out,  # (n, angles, ranges)
):
    for j in range(len(positions)):
        scan_into(
            labels,
            cells_per_metre,
            origin_x,
            origin_y,
            cos_bearings,
            sin_bearings,
            reach,
            occupied,
            unknown,
            outside,
            positions[j, 0],
            positions[j, 1],
            directions[j, 0],
            directions[j, 1],
            out[j],
        )
