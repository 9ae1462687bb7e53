"""What the map shows all round a position, and its encoding: shared by every heading at that position.

Turning by one group of rays (8, the encoder's stride) shifts a footprint by exactly one position of the
encoder's last layer. So the layers are computed once per position and not per pose; only a heading's two
outermost columns, which see the padding, are its own. When the map changes, only what sees a change is computed
again. Neither alters a latent by a single bit: the same operations of `encoding.kernels` in the same order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ocular.encoding.kernels import (
    MIXED,
    Scratch,
    Tables,
    _assign_rows,
    _classify,
    _convolve,
    _convolve_labels,
    _multiply,
    _parity,
    make_scratch,
)
from ocular.footprint.scan import scan_into
from ocular.records import Floats, Labels

RAYS = 8  # in a group: the encoder's stride
NONE, SUSPECT, FRESH = 0, 1, 2  # a latent is not there, or its view may have changed, or it is current

Bools = npt.NDArray[np.bool_]
Float32s = npt.NDArray[np.float32]


class Panoramas(NamedTuple):
    """One slot for each position; ray groups and headings go round from -pi counter-clockwise."""

    seen: Labels  # (slots, groups, RAYS, ranges)
    dirty: Bools  # (slots, groups), something in sight of these rays may have changed
    hidden: Float32s  # (slots, groups, ranges / 8, 32), the encoder's last layer
    classes: Labels  # (slots, groups, ranges / 8), the label that fills the field of view, or MIXED
    stale: Bools  # (slots, groups, ranges / 8), hidden and classes are out of date
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
    cosines: Floats  # (groups * RAYS,)
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

    strip: Scratch  # for up to a whole turn and two groups
    corner: Scratch  # for the two groups at an end of a footprint
    image: Labels  # (rays of strip, ranges)
    need1: Bools  # positions of each layer that are to be computed
    need2: Bools
    need3: Bools
    columns: Bools  # (groups,)
    rays: Labels  # (RAYS, ranges)
    total: Float32s  # (padded dim,)
    added: Float32s  # (1, padded dim)


@njit(cache=True)
def make_work(tables: Tables, groups: int, ranges: int) -> Work:
    """Working memory for panoramas of this many ray groups."""
    angles = (groups + 2) * RAYS
    return Work(
        make_scratch(tables, angles, ranges),
        make_scratch(tables, 2 * RAYS, ranges),
        np.empty((angles, ranges), np.uint8),
        np.empty((angles // 2, ranges // 2), np.bool_),
        np.empty((angles // 4, ranges // 4), np.bool_),
        np.empty((angles // 8, ranges // 8), np.bool_),
        np.empty(groups, np.bool_),
        np.empty((RAYS, ranges), np.uint8),
        np.empty(tables.offset.shape, np.float32),
        np.empty((1, len(tables.offset)), np.float32),
    )


@njit(cache=True, nogil=True)
def note_changes(slot: int, store: Panoramas, sight: Sight) -> None:
    """Mark the ray groups, and the latents made of them, in whose sight the map has changed."""
    x, y = store.positions[slot]
    rows, cols = sight.tile_version.shape
    since, size = store.checked[slot], sight.tile_size
    store.checked[slot] = sight.version
    # A little more than half a tile's diagonal, against rounding.
    radius = 0.7072 * size
    far = sight.max_range + radius
    for row in range(
        max(0, int(np.floor((y - far - sight.y0) / size))),
        min(rows - 1, int(np.floor((y + far - sight.y0) / size))) + 1,
    ):
        for col in range(
            max(0, int(np.floor((x - far - sight.x0) / size))),
            min(cols - 1, int(np.floor((x + far - sight.x0) / size))) + 1,
        ):
            if sight.tile_version[row, col] <= since:
                continue
            right = sight.x0 + (col + 0.5) * size - x
            up = sight.y0 + (row + 0.5) * size - y
            away = np.sqrt(right * right + up * up)
            if away > far:
                continue
            half = np.arcsin(radius / away) if away > radius else np.pi
            _mark(slot, np.arctan2(up, right), half, store, sight)


@njit(cache=True, nogil=True)
def _mark(slot: int, angle: float, half: float, store: Panoramas, sight: Sight) -> None:
    """Groups that look into angle - half .. angle + half may see something new."""
    groups = store.dirty.shape[1]
    # Without a whole number of groups in a turn the ring overlaps itself: one direction, several groups.
    for turn in range(-1, 2):
        start = angle + turn * 2 * np.pi - sight.first_angle
        first = int(np.floor((start - half) / sight.group_angle - 1e-6))
        last = int(np.floor((start + half) / sight.group_angle + 1e-6))
        for group in range(max(first, 0), min(last, groups - 1) + 1):
            if not store.dirty[slot, group]:
                store.dirty[slot, group] = True
                _downgrade(slot, group, SUSPECT, store, sight.width)


@njit(cache=True, nogil=True)
def _downgrade(slot: int, group: int, state: int, store: Panoramas, width: int) -> None:
    """The latents of all headings that see this group are no better than `state`."""
    headings = store.state.shape[1]
    ring = headings == store.dirty.shape[1]
    for heading in range(group - width + 1, group + 1):
        if ring:
            heading %= headings
        if 0 <= heading < headings:
            store.state[slot, heading] = min(store.state[slot, heading], state)


@njit(cache=True, nogil=True)
def _look(slot: int, group: int, store: Panoramas, sight: Sight, work: Work) -> None:
    """Scan a dirty group of rays again; pass on what really changed."""
    store.dirty[slot, group] = False
    rays, kept = work.rays, store.seen[slot, group]
    first, last = group * RAYS, (group + 1) * RAYS
    scan_into(
        sight.labels,
        sight.cells_per_metre,
        sight.x0,
        sight.y0,
        sight.cosines[first:last],
        sight.sines[first:last],
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
    groups, blocks = store.stale.shape[1:]
    changed = False
    for block in range(blocks):
        differs = False
        for ray in range(RAYS):
            for k in range(block * RAYS, (block + 1) * RAYS):
                differs |= rays[ray, k] != kept[ray, k]
        if differs:
            changed = True
            # The last layer's field of view is 22 x 22 cells: its own block and the adjacent ones.
            for near in range(group - 1, group + 2):
                store.stale[slot, near % groups, max(block - 1, 0) : block + 2] = True
    if changed:
        kept[:] = rays
        _downgrade(slot, group, NONE, store, sight.width)


@njit(cache=True, nogil=True)
def _paint(needed: Any, classes: Any, finer: Any) -> None:
    """Which positions of the layer below the needed, mixed ones of this layer are made of."""
    finer[:] = False
    height, width = classes.shape
    for i in range(height):
        for j in range(width):
            if needed[i, j] and classes[i, j] == MIXED:
                finer[max(2 * i - 1, 0) : 2 * i + 3, max(2 * j - 1, 0) : 2 * j + 3] = True


@njit(cache=True, nogil=True)
def _layers(image: Any, s: Scratch, tables: Tables, work: Work) -> None:
    """All layers on an image of whole groups, below the positions that work.need3 asks for."""
    angles, known = image.shape[0], tables.known1.shape[0]
    class1, class2, class3 = s.class1[: angles // 2], s.class2[: angles // 4], s.class3[: angles // 8]
    _classify(image, class1, s.lowest, s.highest)
    _classify(class1, class2, s.lowest, s.highest)
    _classify(class2, class3, s.lowest, s.highest)
    need2, need1 = work.need2[: angles // 4], work.need1[: angles // 2]
    _paint(work.need3[: angles // 8], class3, need2)
    _paint(need2, class2, need1)
    s.rows1[angles // 2 + 1] = 0  # the padding below this image, which may be smaller than the last
    s.rows2[angles // 4 + 1] = 0
    for n in range(_assign_rows(class1, s.rows1, s.mixed, known)):
        i, j = s.mixed[n, 0], s.mixed[n, 1]
        if need1[i, j]:
            _convolve_labels(tables.first, tables.bias1, image, i, j, s.hidden)
            _multiply(s.hidden, tables.expand1, _parity(i, j), s.flat1, known + n)
    for n in range(_assign_rows(class2, s.rows2, s.mixed, known)):
        i, j = s.mixed[n, 0], s.mixed[n, 1]
        if need2[i, j]:
            _convolve(s.products1, s.rows1, tables.bias2, i, j, s.hidden)
            _multiply(s.hidden, tables.expand2, _parity(i, j), s.flat2, known + n)


@njit(cache=True, nogil=True)
def _renew_run(slot: int, first: int, count: int, store: Panoramas, tables: Tables, work: Work) -> None:
    """Renew the stale positions of the wanted columns among the inner ones of a run of groups."""
    groups, blocks = store.stale.shape[1:]
    work.need3[:count] = False
    for n in range(count):
        group = (first + n) % groups
        work.image[n * RAYS : (n + 1) * RAYS] = store.seen[slot, group]
        if 0 < n < count - 1 and work.columns[group]:
            work.need3[n] = store.stale[slot, group]
            store.stale[slot, group] = False
    s = work.strip
    _layers(work.image[: count * RAYS], s, tables, work)
    for n in range(1, count - 1):
        group = (first + n) % groups
        for j in range(blocks):
            if work.need3[n, j]:
                store.classes[slot, group, j] = s.class3[n, j]
                if s.class3[n, j] == MIXED:
                    _convolve(s.products2, s.rows2, tables.bias3, n, j, store.hidden[slot, group, j])


@njit(cache=True, nogil=True)
def _renew_columns(slot: int, store: Panoramas, tables: Tables, work: Work) -> None:
    """Renew the columns in work.columns, run by run; each run has one more group at either end."""
    groups = len(work.columns)
    start = 0
    while start < groups and (work.columns[start] or work.columns[(start + 1) % groups]):
        start += 1
    if start == groups:
        _renew_run(slot, -1, groups + 2, store, tables, work)
        return
    # Neither `start` nor the group after it is wanted: no run reaches across.
    n = start + 1
    while n < start + groups:
        if not work.columns[n % groups]:
            n += 1
            continue
        end = n + 1
        while work.columns[end % groups] or work.columns[(end + 1) % groups]:
            end += 1
        _renew_run(slot, n - 1, end - n + 2, store, tables, work)
        n = end + 1


@njit(cache=True, nogil=True)
def _add(hidden: Any, label: int, position: int, tables: Tables, work: Work) -> None:
    """Add what one position of the last layer contributes to the latent."""
    if label == MIXED:
        _multiply(hidden, tables.project, position, work.added, 0)
        for k in range(len(work.total)):
            work.total[k] += work.added[0, k]
    else:
        for k in range(len(work.total)):
            work.total[k] += tables.known3[label, position, k]


@njit(cache=True, nogil=True)
def _add_end(
    slot: int, first: int, count: int, column: int, place: int, store: Panoramas, tables: Tables, work: Work
) -> None:
    """Add an outermost column, which sees the padding, from the `count` groups at its end."""
    groups, blocks = store.stale.shape[1:]
    s = work.corner
    work.need3[:count] = False
    work.need3[column] = True
    for n in range(count):
        work.image[n * RAYS : (n + 1) * RAYS] = store.seen[slot, (first + n) % groups]
    _layers(work.image[: count * RAYS], s, tables, work)
    for j in range(blocks):
        if s.class3[column, j] == MIXED:
            _convolve(s.products2, s.rows2, tables.bias3, column, j, s.hidden)
        _add(s.hidden, s.class3[column, j], place * blocks + j, tables, work)


@njit(cache=True, nogil=True)
def _encode(slot: int, heading: int, width: int, store: Panoramas, tables: Tables, work: Work) -> None:
    """The latent of one heading, from the columns of the panorama and its own two ends."""
    groups, blocks = store.stale.shape[1:]
    work.total[:] = tables.offset
    count = min(2, width)
    _add_end(slot, heading, count, 0, 0, store, tables, work)
    for m in range(1, width - 1):
        group = (heading + m) % groups
        for j in range(blocks):
            label = store.classes[slot, group, j]
            _add(store.hidden[slot, group, j], label, m * blocks + j, tables, work)
    if width > 1:
        _add_end(slot, heading + width - 2, 2, 1, width - 1, store, tables, work)
    for k in range(store.latents.shape[2]):
        store.latents[slot, heading, k] = work.total[k]
    store.state[slot, heading] = FRESH


@njit(cache=True, nogil=True)
def renew(slot: int, wanted: Any, store: Panoramas, sight: Sight, tables: Tables, work: Work) -> None:
    """Bring the latents of the wanted headings of one slot up to date."""
    groups = store.dirty.shape[1]
    for heading in wanted:
        for n in range(sight.width):
            group = (heading + n) % groups
            if store.dirty[slot, group]:
                _look(slot, group, store, sight, work)
    work.columns[:] = False
    any_column = False
    for heading in wanted:
        if store.state[slot, heading] == SUSPECT:  # all it sees was looked at, and nothing had changed
            store.state[slot, heading] = FRESH
        elif store.state[slot, heading] == NONE:
            for n in range(1, sight.width - 1):
                group = (heading + n) % groups
                if not work.columns[group] and store.stale[slot, group].any():
                    work.columns[group] = True
                    any_column = True
    if any_column:
        _renew_columns(slot, store, tables, work)
    for heading in wanted:
        if store.state[slot, heading] == NONE:
            _encode(slot, heading, sight.width, store, tables, work)
