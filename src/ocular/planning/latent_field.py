"""The latent of what the belief map shows at predicted poses, at the rate of a sampling planner (Sec. 4.4).

Tens of thousands of predicted poses a control step share a few hundred rounded ones, whose latents are kept
until something in their sight changes on the map. Only the rounding approximates: `exact_latents` does not.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ocular.encoding import ConvEncoder
from ocular.encoding.convolutional import STRIDE
from ocular.encoding.kernels import CHANNELS, Tables
from ocular.errors import InputError, check_finite, check_shape
from ocular.footprint import scan
from ocular.footprint.scan import rays
from ocular.planning.belief import TILE, BeliefMap
from ocular.planning.panorama import (
    FRESH,
    KINDS,
    NONE,
    Bools,
    Panoramas,
    Sight,
    Work,
    make_work,
    note_changes,
)
from ocular.planning.panorama_encoding import renew
from ocular.records import OCCUPIED, UNKNOWN, Floats

Floating = npt.NDArray[np.floating[Any]]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
EMPTY = -1  # an unused place of the hash table, or an unused slot


class Index(NamedTuple):
    """Which slot holds which rounded position: a hash table, and the slots that are free."""

    table: Int32s  # (a power of two,), slot or EMPTY
    keys: Int64s  # (slots, 2), the position in steps
    used: Int64s  # (slots,), version of the map when last asked for, EMPTY when free
    free: Int64s  # (slots,), a stack
    free_count: Int64s  # (1,)
    asked: Bools  # (slots, headings), waiting to be renewed


class LatentField:
    """Latents of rounded poses on one belief map."""

    def __init__(
        self,
        encoder: ConvEncoder,
        belief: BeliefMap,
        *,
        position_step: float = 0.02,
        heading_step: float = np.deg2rad(4.0),
        capacity: int = 256,
        threads: int = 1,
    ) -> None:
        """Round positions to `position_step` [m] and headings to whole columns of the encoder nearest
        `heading_step` [rad]; keep `capacity` positions, about 0.5 MB each for the paper's footprint."""
        if encoder.labels != belief.names:
            raise InputError(
                f"the belief map's labels are {belief.names}; allowed are the encoder's: {encoder.labels}"
            )
        if not 0 < position_step < np.inf or not 0 < heading_step < np.pi:
            raise InputError(
                f"position_step={position_step} m, heading_step={heading_step} rad; allowed are "
                "position_step > 0 and 0 < heading_step < pi"
            )
        if encoder.geometry.angles < 2 * STRIDE:
            raise InputError(
                f"a footprint of {encoder.geometry.angles} angles; allowed in a latent field are at least "
                f"{2 * STRIDE}"
            )
        if capacity < 2 or threads < 1:
            raise InputError(
                f"capacity={capacity}, threads={threads}; allowed are capacity >= 2, threads >= 1"
            )
        self.encoder = encoder
        self.belief = belief
        self.position_step = position_step
        self.renewed = 0  # latents computed so far
        geometry = encoder.geometry
        self._width = geometry.angles // STRIDE
        self._group_angle = geometry.field_of_view / self._width
        self._stride = max(1, round(heading_step / self._group_angle))  # groups from heading to heading
        turn = 2 * np.pi / self._group_angle
        closes = abs(turn - round(turn)) < 1e-9
        self._headings = round(turn) if closes else int(turn) + self._stride + 1
        self._groups = self._headings if closes else self._headings + self._width - 1
        self._cosines, self._sines = self._ray_directions()
        self._reach = rays(geometry, belief.resolution)[2]
        self._store = self._new_store(capacity)
        self._index = Index(
            table=np.full(1 << (4 * capacity - 1).bit_length(), EMPTY, np.int32),
            keys=np.zeros((capacity, 2), np.int64),
            used=np.full(capacity, EMPTY, np.int64),
            free=np.arange(capacity)[::-1].copy(),
            free_count=np.array([capacity]),
            asked=np.zeros((capacity, self._headings), np.bool_),
        )
        self._work: list[Work] = [
            make_work(encoder.tables, self._groups, geometry.ranges) for _ in range(threads)
        ]
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._version = -1
        self._sight: Sight

    @property
    def heading_step(self) -> float:
        """Headings are rounded to multiples of this [rad]."""
        return self._stride * self._group_angle

    def rounded(self, positions: Floating, headings: Floating) -> tuple[Floats, Floats]:
        """The poses that stand for these: near the centres of map cells, where a ray meets no corner."""
        half = self.belief.resolution / 2
        steps = np.round((np.asarray(positions, np.float64) - half) / self.position_step)
        step = self.heading_step
        turned = np.mod(np.asarray(headings, np.float64) + np.pi, 2 * np.pi)
        return steps * self.position_step + half, np.round(turned / step) * step - np.pi

    def exact_latents(self, positions: Floating, headings: Floating) -> Floats:
        """Latents (n, dim) of the poses as they are: the slow reference."""
        cells = scan(
            self.belief.grid(),
            self.encoder.geometry,
            np.asarray(positions, np.float64),
            np.asarray(headings, np.float64),
        )
        return self.encoder.encode(cells)

    def latents(self, positions: Floating, headings: Floating) -> Floats:
        """Latents (n, dim) of the rounded poses: those of the map as it is now."""
        n = len(positions)
        check_shape("positions", positions, (None, 2))
        check_shape("headings", headings, (n,))
        check_finite("positions", positions)
        check_finite("headings", headings)
        self._look_at_map()
        out = np.empty((n, self.encoder.dim))
        done = 0
        while done < n:
            count = self._serve(positions[done:], headings[done:], out[done:])
            done += count
            if done < n:
                _forget_half(self._index)
        return out

    def _serve(self, positions: Floating, headings: Floating, out: Floats) -> int:
        """Latents of as many poses as there is room for; their number."""
        slots, bins = np.empty(len(positions), np.int64), np.empty(len(positions), np.int64)
        grain = self.position_step, self.belief.resolution / 2, self._group_angle, self._stride
        wanted = np.empty((len(positions), 2), np.int64)
        count, missing = _find(
            positions, headings, grain, self._index, self._store, self._sight, slots, bins, wanted
        )
        wanted = wanted[:missing]
        if missing:
            self.renewed += missing
            wanted = wanted[np.argsort(wanted[:, 0], kind="stable")]
            begins = np.flatnonzero(np.diff(wanted[:, 0], prepend=-1, append=-1))
            self._renew(np.ascontiguousarray(wanted[:, 0]), np.ascontiguousarray(wanted[:, 1]), begins)
        _gather(self._store.latents, slots[:count], bins[:count], out)
        return count

    def _renew(self, slots: Int64s, headings: Int64s, begins: Int64s) -> None:
        """Bring these latents up to date; those of one slot are neighbours."""
        threads = len(self._work)
        rest = self._index, self._store, self._sight, self.encoder.tables

        def share(k: int) -> None:
            _renew_slots(slots, headings, begins, k, threads, *rest, self._work[k])

        if self._pool is None or len(begins) <= threads:
            _renew_slots(slots, headings, begins, 0, 1, *rest, self._work[0])
        else:
            list(self._pool.map(share, range(threads)))

    def _look_at_map(self) -> None:
        """Take the map's arrays as they are now; they may have been replaced."""
        belief, geometry = self.belief, self.encoder.geometry
        if belief.version == self._version:
            return
        self._version = belief.version
        unknown = belief.names.index(UNKNOWN)
        self._sight = Sight(
            labels=belief.labels,
            tile_version=belief.tile_version,
            tile_size=TILE * belief.resolution,
            version=belief.version,
            cells_per_metre=1.0 / belief.resolution,
            x0=belief.origin[0],
            y0=belief.origin[1],
            cosines=self._cosines,
            sines=self._sines,
            reach=self._reach,
            max_range=geometry.max_range,
            occupied=belief.names.index(OCCUPIED),
            unknown=unknown,
            first_angle=-np.pi - geometry.field_of_view / 2,
            group_angle=self._group_angle,
            width=self._width,
        )

    def _ray_directions(self) -> tuple[Floats, Floats]:
        """Cosine and sine of every ray of every group, in the world frame."""
        ray = self._group_angle / STRIDE
        first = -np.pi - self.encoder.geometry.field_of_view / 2
        angles = first + (np.arange(self._groups * STRIDE) + 0.5) * ray
        return np.cos(angles).reshape(-1, STRIDE), np.sin(angles).reshape(-1, STRIDE)

    def _new_store(self, slots: int) -> Panoramas:
        """Room for this many positions; memory is touched as slots come into use."""
        groups, headings = self._groups, self._headings
        ranges, blocks = self.encoder.geometry.ranges, self.encoder.geometry.ranges // STRIDE
        return Panoramas(
            seen=np.empty((slots, groups, STRIDE, ranges), np.uint8),
            dirty=np.empty((slots, groups), np.bool_),
            hidden=np.empty((slots, KINDS, groups, blocks, CHANNELS[-1]), np.float32),
            classes=np.empty((slots, KINDS, groups, blocks), np.uint8),
            stale=np.empty((slots, KINDS, groups, blocks), np.bool_),
            latents=np.empty((slots, headings, self.encoder.dim), np.float32),
            state=np.empty((slots, headings), np.uint8),
            positions=np.empty((slots, 2)),
            checked=np.empty(slots, np.int64),
        )


@njit(cache=True, nogil=True)
def _place(index: Index, x: int, y: int) -> Any:
    """Where the hash table holds this position, or the free place where it belongs."""
    mask = len(index.table) - 1
    place = (x * 73_856_093 ^ y * 19_349_663) & mask
    while index.table[place] != EMPTY:
        slot = index.table[place]
        if index.keys[slot, 0] == x and index.keys[slot, 1] == y:
            break
        place = (place + 1) & mask
    return place


@njit(cache=True, nogil=True)
def _forget_half(index: Index) -> None:
    """Make room: give up the half of the positions that were not asked for lately."""
    oldest = np.argsort(index.used)[: (len(index.used) + 1) // 2]
    for slot in oldest:
        index.used[slot] = EMPTY
        index.free[index.free_count[0]] = slot
        index.free_count[0] += 1
    index.table[:] = EMPTY
    for slot in range(len(index.used)):
        if index.used[slot] != EMPTY:
            index.table[_place(index, index.keys[slot, 0], index.keys[slot, 1])] = slot


@njit(cache=True, nogil=True)
def _open_slot(index: Index, store: Panoramas, x: int, y: int, position_x: float, position_y: float) -> int:
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
def _find(
    positions: Any,  # (n, 2)
    headings: Any,  # (n,)
    grain: tuple[
        float, float, float, int
    ],  # position step, its offset, angle of a group, groups a heading step
    index: Index,
    store: Panoramas,
    sight: Sight,
    slots: Int64s,
    bins: Int64s,
    wanted: Int64s,
) -> tuple[int, int]:
    """Slot and heading of each pose, up to the first that finds no room; and the latents to be renewed."""
    step, offset, group_angle, stride = grain
    missing = 0
    for i in range(len(positions)):
        x = int(np.round((positions[i, 0] - offset) / step))
        y = int(np.round((positions[i, 1] - offset) / step))
        place = _place(index, x, y)
        slot = index.table[place]
        if slot == EMPTY:
            slot = _open_slot(index, store, x, y, x * step + offset, y * step + offset)
            if slot == EMPTY:
                return i, missing
            index.table[place] = slot
            store.checked[slot] = sight.version
        elif store.checked[slot] != sight.version:
            note_changes(slot, store, sight)
        index.used[slot] = sight.version
        turned = (headings[i] + np.pi) % (2 * np.pi)
        heading = int(np.round(turned / (group_angle * stride))) * stride % store.state.shape[1]
        slots[i], bins[i] = slot, heading
        if store.state[slot, heading] < FRESH and not index.asked[slot, heading]:
            index.asked[slot, heading] = True
            wanted[missing, 0], wanted[missing, 1] = slot, heading
            missing += 1
    return len(positions), missing


@njit(cache=True, nogil=True)
def _renew_slots(
    slots: Int64s,  # (n,), ascending
    headings: Int64s,  # (n,)
    begins: Int64s,  # where each slot's headings begin, and n
    first: int,
    every: int,
    index: Index,
    store: Panoramas,
    sight: Sight,
    tables: Tables,
    work: Work,
) -> None:
    """One thread's share of the slots: the first and every so many after it."""
    for k in range(first, len(begins) - 1, every):
        slot, wanted = slots[begins[k]], headings[begins[k] : begins[k + 1]]
        renew(slot, wanted, store, sight, tables, work)
        for heading in wanted:
            index.asked[slot, heading] = False


@njit(cache=True, nogil=True)
def _gather(latents: Any, slots: Int64s, bins: Int64s, out: Floats) -> None:
    for i in range(len(slots)):
        for k in range(out.shape[1]):
            out[i, k] = latents[slots[i], bins[i], k]
