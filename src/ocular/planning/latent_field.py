"""The latent of what the belief map shows at predicted poses, at the rate of a sampling planner (Sec. 4.4).

Tens of thousands of predicted poses a control step share a few hundred rounded ones, whose latents are kept
until something in their sight changes on the map. Only the rounding approximates: `exact_latents` does not.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from ocular.encoding import ConvEncoder
from ocular.encoding.convolutional import STRIDE
from ocular.encoding.kernels import CHANNELS
from ocular.errors import InputError, check_finite, check_shape
from ocular.footprint import scan
from ocular.footprint.scan import rays
from ocular.planning.belief import TILE, BeliefMap
from ocular.planning.panorama import (
    KINDS,
    Panoramas,
    Sight,
    Work,
    make_work,
)
from ocular.planning.panorama_encoding import renew
from ocular.planning.slots import Grain, Int64s, find, forget_half, new_index
from ocular.records import OCCUPIED, UNKNOWN, Floats

Floating = npt.NDArray[np.floating[Any]]


class LatentField:
    """Latents of rounded poses on one belief map."""

    def __init__(
        self,
        encoder: ConvEncoder,
        belief: BeliefMap,
        *,
        position_step: float = 0.025,
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
        self._index = new_index(capacity, self._headings)
        self._grain = Grain(position_step, belief.resolution / 2, self._group_angle, self._stride)
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
        steps = np.floor((np.asarray(positions, np.float64) - half) / self.position_step + 0.5)
        turns = np.asarray(headings, np.float64) / (2 * np.pi) + 0.5  # from -pi
        columns = np.floor((turns - np.floor(turns)) * (2 * np.pi) / self.heading_step + 0.5)
        return steps * self.position_step + half, columns * self.heading_step - np.pi

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
                forget_half(self._index)
        return out

    def _serve(self, positions: Floating, headings: Floating, out: Floats) -> int:
        """Latents of as many poses as there is room for; their number."""
        slots, bins = np.empty(len(positions), np.int64), np.empty(len(positions), np.int64)
        wanted = np.empty((len(positions), 2), np.int64)
        count, missing = find(
            positions, headings, self._grain, self._index, self._store, self._sight, slots, bins, wanted
        )
        wanted = wanted[:missing]
        if missing:
            self.renewed += missing
            by_slot = wanted[np.argsort(wanted[:, 0], kind="stable")].T.copy()
            self._renew(by_slot[0], by_slot[1])
            self._index.asked[by_slot[0], by_slot[1]] = False
        _gather(self._store.latents, slots[:count], bins[:count], out)
        return count

    def _renew(self, slots: Int64s, headings: Int64s) -> None:
        """Bring these latents up to date; those of one slot are neighbours."""
        threads = len(self._work)
        begins = np.flatnonzero(np.diff(slots, prepend=-1, append=-1))

        def share(k: int, threads: int = threads) -> None:
            shared = self._store, self._sight, self.encoder.tables
            renew(slots, headings, begins, k, threads, *shared, self._work[k])

        if self._pool is None or len(begins) <= threads:
            share(0, 1)
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
def _gather(latents: Any, slots: Int64s, bins: Int64s, out: Floats) -> None:
    for i in range(len(slots)):
        for k in range(out.shape[1]):
            out[i, k] = latents[slots[i], bins[i], k]
