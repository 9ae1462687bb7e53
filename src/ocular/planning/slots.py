"""Which slot of the panoramas holds which rounded position: a hash table that forgets what is old."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ocular.planning.panorama import FRESH, NONE, Bools, Panoramas, Sight, note_changes

Int64s = npt.NDArray[np.int64]
EMPTY = -1  # an unused place of the hash table, or an unused slot


class Index(NamedTuple):
    """Which slot holds which rounded position: a hash table, and the slots that are free."""

    table: npt.NDArray[np.int32]  # (a power of two,), slot or EMPTY
    keys: Int64s  # (slots, 2), the position in steps
    used: Int64s  # (slots,), version of the map when last asked for, EMPTY when free
    free: Int64s  # (slots,), a stack
    free_count: Int64s  # (1,)
    asked: Bools  # (slots, headings), waiting to be renewed


class Grain(NamedTuple):
    """How poses are rounded."""

    step: float  # [m]
    offset: float  # [m], of the lattice of positions from the point (0, 0)
    group_angle: float  # [rad]
    stride: int  # groups from one heading to the next


def new_index(slots: int, headings: int) -> Index:
    """All slots free."""
    return Index(
        table=np.full(1 << (4 * slots - 1).bit_length(), EMPTY, np.int32),
        keys=np.zeros((slots, 2), np.int64),
        used=np.full(slots, EMPTY, np.int64),
        free=np.arange(slots)[::-1].copy(),
        free_count=np.array([slots]),
        asked=np.zeros((slots, headings), np.bool_),
    )


@njit(cache=True, nogil=True)
def _place_of(table: Any, keys: Any, x: int, y: int) -> Any:
    """Where the hash table holds this position, or the free place where it belongs."""
    mask = len(table) - 1
    place = (x * 73_856_093 ^ y * 19_349_663) & mask
    while table[place] != EMPTY:
        slot = table[place]
        if keys[slot, 0] == x and keys[slot, 1] == y:
            break
        place = (place + 1) & mask
    return place


@njit(cache=True, nogil=True)
def forget_half(index: Index) -> None:
    """Make room: give up the half of the positions that were not asked for lately."""
    oldest = np.argsort(index.used)[: (len(index.used) + 1) // 2]
    for slot in oldest:
        index.used[slot] = EMPTY
        index.free[index.free_count[0]] = slot
        index.free_count[0] += 1
    index.table[:] = EMPTY
    for slot in range(len(index.used)):
        if index.used[slot] != EMPTY:
            place = _place_of(index.table, index.keys, index.keys[slot, 0], index.keys[slot, 1])
            index.table[place] = slot


@njit(cache=True, nogil=True)
def _open_slot(index: Index, store: Panoramas, x: int, y: int, position_x: float, position_y: float) -> Any:
    """A slot where nothing is known yet, or EMPTY when all are taken."""
    if not index.free_count[0]:
        return EMPTY
    index.free_count[0] -= 1
    slot = index.free[index.free_count[0]]
    index.keys[slot, 0], index.keys[slot, 1] = x, y
    store.positions[slot, 0], store.positions[slot, 1] = position_x, position_y
    store.state[slot] = NONE
    store.dirty[slot] = True
    store.stale[slot] = True
    return slot


@njit(cache=True, nogil=True)
def find(
    positions: Any,  # (n, 2)
    headings: Any,  # (n,)
    grain: Grain,
    index: Index,
    store: Panoramas,
    sight: Sight,
    slots: Int64s,
    bins: Int64s,
    wanted: Int64s,
) -> tuple[int, int]:
    """Slot and heading of each pose, up to the first that finds no room; and the latents to be renewed."""
    step, offset, stride, turn = grain.step, grain.offset, grain.stride, 2 * np.pi
    table, keys, used, asked = index.table, index.keys, index.used, index.asked
    checked, state = store.checked, store.state
    missing, version = 0, sight.version
    for i in range(len(positions)):
        x = int(np.floor((positions[i, 0] - offset) / step + 0.5))
        y = int(np.floor((positions[i, 1] - offset) / step + 0.5))
        place = _place_of(table, keys, x, y)
        slot = int(table[place])
        if slot == EMPTY:
            slot = _open_slot(index, store, x, y, x * step + offset, y * step + offset)
            if slot == EMPTY:
                return i, missing
            table[place] = slot
            checked[slot] = version
        elif checked[slot] != version:
            note_changes(slot, store, sight)
        used[slot] = version
        turns = headings[i] / turn + 0.5  # from -pi
        column = (turns - np.floor(turns)) * turn / (grain.group_angle * stride)
        heading = int(np.floor(column + 0.5)) * stride % state.shape[1]
        slots[i], bins[i] = slot, heading
        if state[slot, heading] < FRESH and not asked[slot, heading]:
            asked[slot, heading] = True
            wanted[missing, 0], wanted[missing, 1] = slot, heading
            missing += 1
    return len(positions), missing
