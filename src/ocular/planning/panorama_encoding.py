"""Encode the panorama of one position, and from its columns the footprint of any heading, bit for bit.

The operations, and their order, are those of `ocular.encoding.kernels.encode_one`; what differs is that
layers are computed for stretches of the panorama, below stale positions only, and that the columns at the
ends of a footprint are computed beside the inner ones, whose neighbours they share.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from ocular.encoding.kernels import (
    KEYS,
    MIXED,
    Tables,
    _assign_rows,
    _classify,
    _convolve,
    _convolve_labels,
    _multiply,
    _parity,
    key_of,
)
from ocular.planning.panorama import (
    FIRST,
    FRESH,
    INNER,
    KINDS,
    LAST,
    NONE,
    RAYS,
    Panoramas,
    Sight,
    Work,
    look,
)


@njit(cache=True, nogil=True)
def renew(
    slots: Any,  # (n,), ascending
    headings: Any,  # (n,)
    begins: Any,  # where each slot's headings begin, and n
    first: int,
    every: int,
    store: Panoramas,
    sight: Sight,
    tables: Tables,
    work: Work,
) -> None:
    """Bring latents up to date; one thread's share of the slots is the first and `every` so many after it."""
    width, groups = sight.width, store.dirty.shape[1]
    for k in range(first, len(begins) - 1, every):
        slot, wanted = slots[begins[k]], headings[begins[k] : begins[k + 1]]
        dirty, state = store.dirty[slot], store.state[slot]
        for heading in wanted:
            for n in range(width):
                group = (heading + n) % groups
                if dirty[group]:
                    look(slot, group, store, sight, work)
        if _want_columns(wanted, width, state, store.stale[slot], work.wanted, work.marked):
            _renew_marked(slot, store, tables, work)
        for heading in wanted:
            if state[heading] == NONE:
                _encode(slot, heading, width, store, tables, work)
            # Of those suspected only, all that they see was looked at, and nothing had changed.
            state[heading] = FRESH


@njit(cache=True, nogil=True)
def _want_columns(headings: Any, width: int, state: Any, stale: Any, wanted: Any, marked: Any) -> bool:
    """Find the columns to be renewed, and mark the groups that they see; whether there are any."""
    wanted[:] = False
    marked[:] = False
    _, groups, blocks = stale.shape
    found = False
    for heading in headings:
        if state[heading] != NONE:
            continue
        for m in range(width):
            group = (heading + m) % groups
            kind = FIRST if m == 0 else LAST if m == width - 1 else INNER
            if wanted[kind, group]:
                continue
            for j in range(blocks):
                wanted[kind, group] |= stale[kind, group, j]
            if wanted[kind, group]:
                found = True
                for near in range(group - (kind != FIRST), group + (kind != LAST) + 1):
                    marked[near % groups] = True
    return found


@njit(cache=True, nogil=True)
def _renew_marked(slot: int, store: Panoramas, tables: Tables, work: Work) -> None:
    """Renew the wanted columns, one stretch of marked groups after the other."""
    marked = work.marked
    groups = len(marked)
    begin = 0
    while begin < groups and marked[begin]:
        begin += 1
    whole = begin == groups
    n = begin + 1
    while n < begin + groups:
        end = n
        while not whole and marked[end % groups]:
            end += 1
        if whole:  # the turn has no end: a group more at either side makes all columns inner ones
            n, end = -1, groups + 1
        if end > n:
            _renew_stretch(slot, n, end - n, store, tables, work)
        n = 2 * groups if whole else end + 1


@njit(cache=True, nogil=True)
def _renew_stretch(slot: int, first: int, count: int, store: Panoramas, tables: Tables, work: Work) -> None:
    """Renew the stale positions of the wanted columns in a stretch of groups."""
    stale, hidden, classes = store.stale[slot], store.hidden[slot], store.classes[slot]
    seen, image, need, need3, s = store.seen[slot], work.image, work.need, work.need3, work.scratch
    _, groups, blocks = stale.shape
    for n in range(count):
        group = (first + n) % groups
        for ray in range(RAYS):
            for k in range(blocks * RAYS):
                image[n * RAYS + ray, k] = seen[group, ray, k]
        for j in range(blocks):
            need3[n, j] = False
        for kind in range(KINDS):
            complete = (n > 0 or kind == FIRST) and (n < count - 1 or kind == LAST)
            for j in range(blocks):
                need[kind, n, j] = complete and work.wanted[kind, group] and stale[kind, group, j]
                need3[n, j] |= need[kind, n, j]
                stale[kind, group, j] &= not need[kind, n, j]
    _layers(image[: count * RAYS], tables, work)
    for n in range(count):
        group = (first + n) % groups
        for j in range(blocks):
            if need[INNER, n, j]:
                classes[INNER, group, j] = s.class3[n, j]
                if s.class3[n, j] == MIXED:
                    _convolve(s.products2, s.rows2, tables.bias3, n, j, hidden[INNER, group, j])
        for kind in range(FIRST, LAST + 1):
            some = False
            for j in range(blocks):
                some |= need[kind, n, j]
            if some:
                _end_column(
                    image[: count * RAYS], n, kind, hidden[kind, group], classes[kind, group], tables, work
                )


@njit(cache=True, nogil=True)
def _paint(needed: Any, classes: Any, finer: Any) -> None:
    """Which positions of the layer below the needed, mixed ones of this layer are made of."""
    finer[:] = False
    height, width = classes.shape
    bottom, right = finer.shape
    for i in range(height):
        for j in range(width):
            if needed[i, j] and classes[i, j] == MIXED:
                for y in range(max(2 * i - 1, 0), min(2 * i + 3, bottom)):
                    for x in range(max(2 * j - 1, 0), min(2 * j + 3, right)):
                        finer[y, x] = True


@njit(cache=True, nogil=True)
def _layers(image: Any, tables: Tables, work: Work) -> None:
    """The first two layers on an image of whole groups, below the positions that work.need3 asks for."""
    s = work.scratch
    angles, known = image.shape[0], tables.known1.shape[0]
    class1, class2, class3 = s.class1[: angles // 2], s.class2[: angles // 4], s.class3[: angles // 8]
    _classify(image, class1, s.lowest, s.highest)
    _classify(class1, class2, s.lowest, s.highest)
    _classify(class2, class3, s.lowest, s.highest)
    need2, need1 = work.need2[: angles // 4], work.need1[: angles // 2]
    _paint(work.need3, class3, need2)
    _paint(need2, class2, need1)
    mixed, rows1, rows2, hidden = s.mixed, s.rows1, s.rows2, s.hidden
    # The padding below this image, which may be smaller than the last.
    for j in range(rows1.shape[1]):
        rows1[angles // 2 + 1, j] = 0
    for j in range(rows2.shape[1]):
        rows2[angles // 4 + 1, j] = 0
    products1, flat1, flat2 = s.products1, s.flat1, s.flat2
    expand1, expand2 = tables.expand1, tables.expand2
    first, bias1, bias2 = tables.first, tables.bias1, tables.bias2
    for n in range(_assign_rows(class1, rows1, mixed, known)):
        i, j = mixed[n, 0], mixed[n, 1]
        if need1[i, j]:
            _convolve_labels(first, bias1, image, i, j, hidden)
            _multiply(hidden, expand1, _parity(i, j), flat1, known + n)
    for n in range(_assign_rows(class2, rows2, mixed, known)):
        i, j = mixed[n, 0], mixed[n, 1]
        if need2[i, j]:
            _convolve(products1, rows1, bias2, i, j, hidden)
            _multiply(hidden, expand2, _parity(i, j), flat2, known + n)


@njit(cache=True, nogil=True)
def _copy_rows(source: Any, first: int, target: Any) -> None:
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[i, j] = source[first + i, j]


@njit(cache=True, nogil=True)
def _replace_row(target: Any, at: int, source: Any, row: int) -> None:
    for j in range(target.shape[1]):
        target[at, j] = source[row, j]


@njit(cache=True, nogil=True)
def _end_classes(image: Any, n: int, at: int, work: Work) -> None:
    """Classes around an end column in rows 0 to 3 of class1 and class2, its own in row `at` (0 or 3)."""
    s, own = work.scratch, at // 3
    begin = RAYS * n + 4 * own
    _classify(image[begin : begin + 4], work.end1, s.lowest, s.highest)
    _copy_rows(s.class1, 4 * n, work.class1)
    _replace_row(work.class1, at, work.end1, own)
    _classify(work.class1, work.end2, s.lowest, s.highest)
    _copy_rows(s.class2, 2 * n - 2 * own, work.class2)
    _replace_row(work.class2, at, work.end2, own)
    _classify(work.class2, work.end3, s.lowest, s.highest)


@njit(cache=True, nogil=True)
def _end_column(image: Any, n: int, kind: int, hidden: Any, classes: Any, tables: Tables, work: Work) -> None:
    """A column of the last layer where the footprint begins or ends, and padding lies beyond."""
    s, last = work.scratch, kind == LAST
    at, key = (3, 3) if last else (0, 0)
    _end_classes(image, n, at, work)
    # Of the four rows of a field of view the first (last) is padding, the next to it the end column's own.
    own, here = (2, 4 * n + 3) if last else (1, 4 * n)
    base = s.products1.shape[0] - work.class1.shape[1]
    part = image[: RAYS * (n + 1)] if last else image[RAYS * n :]
    _copy_rows(s.rows1, here - own + 1, work.rows1)
    for j in range(work.rows1.shape[1]):
        work.rows1[at, j] = 0
    for j in range(work.class1.shape[1]):
        label = work.class1[at, j]
        if label != MIXED:
            work.rows1[own, j + 1] = label * KEYS * KEYS + 1 + key * KEYS + key_of(j, work.class1.shape[1])
        elif work.need1[here, j]:
            work.rows1[own, j + 1] = base + j
            _convolve_labels(tables.first, tables.bias1, part, here if last else 0, j, s.hidden)
            _multiply(s.hidden, tables.expand1, _parity(here, j), s.flat1, base + j)
    _end_layers(n, kind, own, key, hidden, classes, tables, work)


@njit(cache=True, nogil=True)
def _end_layers(
    n: int, kind: int, own: int, key: int, hidden: Any, classes: Any, tables: Tables, work: Work
) -> None:
    """The second and third layer of an end column, given its first."""
    s, at = work.scratch, 3 * (own - 1)
    here = 2 * n + own - 1
    base = s.products2.shape[0] - work.class2.shape[1]
    _copy_rows(s.rows2, 2 * n, work.rows2)
    for j in range(work.rows2.shape[1]):
        work.rows2[at, j] = 0
    for j in range(work.class2.shape[1]):
        label = work.class2[at, j]
        if label != MIXED:
            work.rows2[own, j + 1] = label * KEYS * KEYS + 1 + key * KEYS + key_of(j, work.class2.shape[1])
        elif work.need2[here, j]:
            work.rows2[own, j + 1] = base + j
            _convolve(s.products1, work.rows1, tables.bias2, 0, j, s.hidden)
            _multiply(s.hidden, tables.expand2, _parity(here, j), s.flat2, base + j)
    for j in range(len(classes)):
        if work.need[kind, n, j]:
            classes[j] = work.end3[own - 1, j]
            if classes[j] == MIXED:
                _convolve(s.products2, work.rows2, tables.bias3, 0, j, hidden[j])


@njit(cache=True, nogil=True)
def _encode(slot: int, heading: int, width: int, store: Panoramas, tables: Tables, work: Work) -> None:
    """The latent of one heading from its columns."""
    hidden, classes, latents = store.hidden[slot], store.classes[slot], store.latents
    project, known3, added, total = tables.project, tables.known3, work.added, work.total
    _, groups, blocks = classes.shape
    dim = len(total)
    for k in range(dim):
        total[k] = tables.offset[k]
    for m in range(width):
        group = (heading + m) % groups
        kind = FIRST if m == 0 else LAST if m == width - 1 else INNER
        for j in range(blocks):
            position, label = m * blocks + j, classes[kind, group, j]
            if label == MIXED:
                _multiply(hidden[kind, group, j], project, position, added, 0)
                for k in range(dim):
                    total[k] += added[0, k]
            else:
                for k in range(dim):
                    total[k] += known3[label, position, k]
    for k in range(latents.shape[2]):
        latents[slot, heading, k] = total[k]
