"""What the map shows all round a position, and which part of it has changed: shared by all headings there.

Turning by one group of rays (8, the encoder's stride) shifts a footprint by exactly one position of the
encoder's last layer. So its columns are computed once per position and not per pose, in three kinds: within a
footprint, and as its first or last column, which sees the padding. When the map changes, only what sees a
change is computed again. Neither alters a single bit: panorama_encoding.py uses the encoder's operations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ocular.encoding.kernels import Scratch, Tables, make_scratch
from ocular.footprint.scan import scan_into
from ocular.records import Floats, Labels

RAYS = 8  # in a group: the encoder's stride
NONE, SUSPECT, FRESH = 0, 1, 2  # a latent is not there, or its view may have changed, or it is current
INNER, FIRST, LAST = 0, 1, 2  # kinds of column: within the footprint, or at an end of it
KINDS = 3

Bools = npt.NDArray[np.bool_]
Float32s = npt.NDArray[np.float32]


class Panoramas(NamedTuple):
    """One slot for each position; ray groups and headings go round from -pi counter-clockwise."""

    seen: Labels  # (slots, groups, RAYS, ranges)
    dirty: Bools  # (slots, groups), something in sight of these rays may have changed
    hidden: Float32s  # (slots, KINDS, groups, ranges / 8, 32), the encoder's last layer
    classes: Labels  # (slots, KINDS, groups, ranges / 8), the label that fills the field of view, or MIXED
    stale: Bools  # (slots, KINDS, groups, ranges / 8), hidden and classes are out of date
    latents: Float32s  # (slots, headings, dim)
    state: npt.NDArray[np.uint8]  # (slots, headings), NONE, SUSPECT or FRESH
    positions: Floats  # (slots, 2) [m]
    checked: npt.NDArray[np.int64]  # (slots,), the map version that dirty is up to date with


class Sight(NamedTuple):
    """The map, and the rays that look at it."""

    labels: Labels  # (rows, cols)
    tile_version: npt.NDArray[np.int64]  # (tile rows, tile cols)
    tile_size: float  # [m]
    version: int
    cells_per_metre: float
    x0: float  # [m]
    y0: float  # [m]
    cosines: Floats  # (groups, RAYS)
    sines: Floats
    reach: Floats  # (ranges,) [cells]
    max_range: float  # [m]
    occupied: int
    unknown: int
    first_angle: float  # [rad], where the first group begins
    group_angle: float  # [rad]
    width: int  # groups in a footprint


class Work(NamedTuple):
    """Working memory of one thread."""

    scratch: Scratch  # for a whole turn and two groups; one more holds the products of end columns
    image: Labels  # (rays, ranges)
    wanted: Bools  # (KINDS, groups), columns to be renewed
    marked: Bools  # (groups), rays that these columns see
    need: Bools  # (KINDS, groups + 2, ranges / 8), what is to be renewed in an image
    need1: Bools  # positions of each layer that this is made of
    need2: Bools
    need3: Bools
    class1: Labels  # (4, ranges / 2), around an end column
    class2: Labels  # (4, ranges / 4)
    end1: Labels  # (2, ranges / 2), the end column itself; which row it is depends on the end
    end2: Labels  # (2, ranges / 4)
    end3: Labels  # (2, ranges / 8)
    rows1: npt.NDArray[np.int32]  # (4, ranges / 2 + 2)
    rows2: npt.NDArray[np.int32]  # (4, ranges / 4 + 2)
    rays: Labels  # (RAYS, ranges)
    added: Float32s  # (1, padded dim)
    total: Float32s  # (padded dim,)


@njit(cache=True)
def make_work(tables: Tables, groups: int, ranges: int) -> Work:
    """Working memory for panoramas of this many ray groups."""
    angles = (groups + 2) * RAYS
    half, quarter, blocks = ranges // 2, ranges // 4, ranges // 8
    return Work(
        make_scratch(tables, angles + RAYS, ranges),
        np.empty((angles, ranges), np.uint8),
        np.empty((KINDS, groups), np.bool_),
        np.empty(groups, np.bool_),
        np.empty((KINDS, groups + 2, blocks), np.bool_),
        np.empty((angles // 2, half), np.bool_),
        np.empty((angles // 4, quarter), np.bool_),
        np.empty((angles // 8, blocks), np.bool_),
        np.empty((4, half), np.uint8),
        np.empty((4, quarter), np.uint8),
        np.empty((2, half), np.uint8),
        np.empty((2, quarter), np.uint8),
        np.empty((2, blocks), np.uint8),
        np.zeros((4, half + 2), np.int32),
        np.zeros((4, quarter + 2), np.int32),
        np.empty((RAYS, ranges), np.uint8),
        np.empty((1, len(tables.offset)), np.float32),
        np.empty(tables.offset.shape, np.float32),
    )


@njit(cache=True, nogil=True)
def note_changes(slot: int, store: Panoramas, sight: Sight) -> None:
    """Mark the ray groups, and the latents made of them, in whose sight the map has changed."""
    x, y = store.positions[slot, 0], store.positions[slot, 1]
    tile_version, size, since = sight.tile_version, sight.tile_size, store.checked[slot]
    rows, cols = tile_version.shape
    x0, y0 = sight.x0, sight.y0
    dirty, state = store.dirty[slot], store.state[slot]
    store.checked[slot] = sight.version
    # A little more than half a tile's diagonal, against rounding.
    radius = 0.7072 * size
    far = sight.max_range + radius
    top, right_end = int(np.floor((y + far - y0) / size)), int(np.floor((x + far - x0) / size))
    for row in range(max(0, int(np.floor((y - far - y0) / size))), min(rows - 1, top) + 1):
        for col in range(max(0, int(np.floor((x - far - x0) / size))), min(cols - 1, right_end) + 1):
            if tile_version[row, col] <= since:
                continue
            right, up = x0 + (col + 0.5) * size - x, y0 + (row + 0.5) * size - y
            away = np.sqrt(right * right + up * up)
            if away > far:
                continue
            half = np.arcsin(radius / away) if away > radius else np.pi
            angle = np.arctan2(up, right) - sight.first_angle
            _mark(angle, half, sight.group_angle, dirty)
    for group in range(len(dirty)):
        if dirty[group]:
            _downgrade(group, SUSPECT, state, len(dirty), sight.width)


@njit(cache=True, nogil=True)
def _mark(angle: float, half: float, group_angle: float, dirty: Any) -> None:
    """Groups that look into angle - half .. angle + half may see something new."""
    # Without a whole number of groups in a turn the ring overlaps itself: one direction, several groups.
    for turn in range(-1, 2):
        start = angle + turn * 2 * np.pi
        first = int(np.floor((start - half) / group_angle - 1e-6))
        last = int(np.floor((start + half) / group_angle + 1e-6))
        for group in range(max(first, 0), min(last, len(dirty) - 1) + 1):
            dirty[group] = True


@njit(cache=True, nogil=True)
def _downgrade(group: int, bound: int, state: Any, groups: int, width: int) -> None:
    """The latents of all headings that see this group are no better than `bound`."""
    headings = len(state)
    for heading in range(group - width + 1, group + 1):
        at = heading % headings if headings == groups else heading
        if 0 <= at < headings:
            state[at] = min(state[at], bound)


@njit(cache=True, nogil=True)
def look(slot: int, group: int, store: Panoramas, sight: Sight, work: Work) -> None:
    """Scan a dirty group of rays again; pass on what really changed."""
    rays, kept, stale = work.rays, store.seen[slot, group], store.stale[slot]
    store.dirty[slot, group] = False
    scan_into(
        sight.labels,
        sight.cells_per_metre,
        sight.x0,
        sight.y0,
        sight.cosines[group],
        sight.sines[group],
        sight.reach,
        sight.occupied,
        sight.unknown,
        sight.unknown,
        store.positions[slot, 0],
        store.positions[slot, 1],
        1.0,
        0.0,
        rays,
    )
    _, groups, blocks = stale.shape
    changed = False
    for block in range(blocks):
        differences = 0
        for ray in range(RAYS):
            for k in range(block * RAYS, block * RAYS + RAYS):
                differences += rays[ray, k] != kept[ray, k]
                kept[ray, k] = rays[ray, k]
        if differences:
            changed = True
            # The last layer's field of view is 22 x 22 cells: its own block and the adjacent ones.
            for kind in range(KINDS):
                for near in range(group - 1, group + 2):
                    for j in range(max(block - 1, 0), min(block + 2, blocks)):
                        stale[kind, near % groups, j] = True
    if changed:
        _downgrade(group, NONE, store.state[slot], groups, sight.width)
