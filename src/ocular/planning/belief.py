"""The robot's map of the ground, built from what it has seen: section 4.4 of the paper.

Every footprint votes for the labels of the cells that it shows; a cell bears the label with most votes. The
planner reads labels and obstacle distances from the arrays that the votes change: no copy per control step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from ocular.errors import InputError, check_array, check_finite, check_number, check_shape, check_type
from ocular.footprint import LabelGrid
from ocular.planning.distance import Float32s, Int16s, update_distances
from ocular.records import (
    FARTHEST,
    NEAREST,
    OCCUPIED,
    UNKNOWN,
    Floats,
    FootprintGeometry,
    Labels,
    check_labels,
    for_kernels,
)

MOST_VOTES = np.uint32(2**32 - 1)  # a robot that stands still for a week gives a cell as many
MOST_CELLS = 2**26
TILE = 8  # cells along a side of the tiles whose last change is remembered


class BeliefMap:
    """Labels by majority of votes on a square grid that grows with what the robot sees; elsewhere is UNKNOWN.

    Ties go to OCCUPIED, else to the first of the labels in `names`. The arrays are replaced when the map
    grows: read them anew after each update. A cell takes 7 bytes and 4 for each label; cells are kept for the
    whole rectangle around what was seen.
    """

    labels: Labels  # (rows, cols), row 0 is the lowest y
    obstacle_distance: Float32s  # (rows, cols) [m], to the nearest OCCUPIED cell centre, at most distance_cap
    tile_version: npt.NDArray[
        np.int64
    ]  # (rows / TILE, cols / TILE), version at which a label last changed in the tile

    def __init__(
        self,
        names: tuple[str, ...],
        resolution: float = 0.01,
        *,
        extent: tuple[float, float, float, float] | None = None,
        distance_cap: float = 1.0,
    ) -> None:
        """`extent` (x0, y0, x1, y1) [m] reserves room: a map of known size need not grow while driving."""
        check_labels(names)
        check_number("map resolution", resolution)
        check_number("distance_cap", distance_cap)
        resolution, distance_cap = float(resolution), float(distance_cap)
        if not NEAREST <= resolution <= FARTHEST:
            raise InputError(f"map resolution is {resolution} m; allowed is a positive number >= {NEAREST:g}")
        if not resolution <= distance_cap <= 16_000 * resolution:
            raise InputError(
                f"distance_cap is {distance_cap} m; allowed is {resolution} m to {16_000 * resolution} m "
                "at this resolution"
            )
        self.names = names
        self.resolution = resolution
        self.version = 0  # rises by one with each update
        self._reach = round(distance_cap / resolution)
        self._occupied = names.index(OCCUPIED)
        self._unknown = names.index(UNKNOWN)
        self._first_tile = np.zeros(
            2, np.int64
        )  # x, y of the lower-left tile, in tiles from the point (0, 0)
        self._allocate((1, 1))
        if extent is not None:
            check_type("map extent", extent, (tuple, list))
            for value in extent:
                check_number("map extent", value)
            if len(extent) != 4:
                raise InputError(f"map extent is {extent}; allowed is (x0, y0, x1, y1)")
            corners = np.reshape(np.asarray(extent, float), (2, 2))
            check_finite("map extent", corners, FARTHEST)
            if not (corners[0] < corners[1]).all():
                raise InputError(f"map extent is {extent}; allowed is (x0, y0, x1, y1) with x0 < x1, y0 < y1")
            self._first_tile = self._tiles_of(corners[0])
            self._allocate(tuple((self._tiles_of(corners[1]) + 1 - self._first_tile)[::-1]))

    @property
    def origin(self) -> tuple[float, float]:
        """Lower-left corner of the map [m]."""
        x, y = self._first_tile * (TILE * self.resolution)
        return float(x), float(y)

    @property
    def distance_cap(self) -> float:
        """Obstacle distances are exact below this, and this beyond [m]."""
        return self._reach * self.resolution

    def grid(self) -> LabelGrid:
        """The map as labelled cells, sharing the map's memory until it grows."""
        return LabelGrid(self.labels, self.names, self.resolution, self.origin, UNKNOWN)

    def forget(self) -> None:
        """Back to all UNKNOWN, in the same memory."""
        self.version += 1
        self.labels.fill(self._unknown)
        self._votes.fill(0)
        self.tile_version.fill(self.version)
        self.obstacle_distance.fill(self.distance_cap)
        self._column_distance.fill(self._reach + 1)

    def update(self, cells: Labels, geometry: FootprintGeometry, position: Floats, heading: float) -> None:
        """Count one footprint's votes: each cell that it knows, at the point of its centre."""
        check_type("geometry", geometry, FootprintGeometry)
        check_array("footprint cells", cells)
        check_array("position", position)
        check_number("heading", heading)
        check_shape("footprint cells", cells, (geometry.angles, geometry.ranges))
        check_shape("position", position, (2,))
        check_finite("pose", np.array([*position, heading]), FARTHEST)
        if cells.dtype != np.uint8 or cells.max() >= len(self.names):
            raise InputError(
                f"footprint cells are {cells.dtype} up to {cells.max()}; allowed are uint8 up to "
                f"{len(self.names) - 1}, the last of {self.names}"
            )
        directions = np.stack([np.cos(heading + geometry.bearings), np.sin(heading + geometry.bearings)])
        self._make_room(position, position[:, None] + geometry.max_range * directions)
        self.version += 1
        # First and last row, first and last column of the cells that became or ceased to be obstacles.
        changed = np.array([self.labels.shape[0], -1, self.labels.shape[1], -1])
        _vote(
            for_kernels(cells),
            directions,
            geometry.distances / self.resolution,
            (position - self.origin) / self.resolution,
            self._votes,
            self.labels,
            self.tile_version,
            self.version,
            self._occupied,
            self._unknown,
            changed,
        )
        if changed[0] <= changed[1]:
            row0, row1, col0, col1 = changed.tolist()
            self._renew_distances((row0, row1, col0, col1))

    def _renew_distances(self, changed: tuple[int, int, int, int]) -> None:
        update_distances(
            self.labels,
            self._occupied,
            self._column_distance,
            self.obstacle_distance,
            self.resolution,
            self._reach,
            changed,
        )

    def _tiles_of(self, points: Floats) -> npt.NDArray[np.int64]:
        return np.floor(points / (TILE * self.resolution)).astype(np.int64)

    def _allocate(self, tiles: tuple[int, ...]) -> None:
        rows, cols = int(tiles[0]) * TILE, int(tiles[1]) * TILE
        if rows * cols > MOST_CELLS:
            raise InputError(
                f"a map of {rows:,} x {cols:,} cells of {self.resolution} m; allowed are {MOST_CELLS:,}"
            )
        self.labels = np.full((rows, cols), self._unknown, np.uint8)
        self._votes: npt.NDArray[np.uint32] = np.zeros((rows, cols, len(self.names)), np.uint32)
        self.tile_version = np.zeros(tiles, np.int64)
        self.obstacle_distance = np.full((rows, cols), self.distance_cap, np.float32)
        self._column_distance: Int16s = np.full((rows, cols), self._reach + 1, np.int16)

    def _make_room(self, position: Floats, ray_ends: Floats) -> None:
        """Grow until the triangle fan of the rays fits: at least by half the size, to keep it rare."""
        low = self._tiles_of(np.minimum(position, ray_ends.min(axis=1)))
        high = self._tiles_of(np.maximum(position, ray_ends.max(axis=1)))
        size = np.array(self.tile_version.shape[::-1])
        before = np.maximum(self._first_tile - low, 0)
        after = np.maximum(high - self._first_tile - size + 1, 0)
        if not before.any() and not after.any():
            return
        before[before > 0] = np.maximum(before, size // 2)[before > 0]
        after[after > 0] = np.maximum(after, size // 2)[after > 0]
        kept = self.labels, self._votes, self.tile_version
        self._allocate(tuple((size + before + after)[::-1]))
        self._first_tile = self._first_tile - before
        x, y = before * TILE
        rows, cols = kept[0].shape
        self.labels[y : y + rows, x : x + cols] = kept[0]
        self._votes[y : y + rows, x : x + cols] = kept[1]
        x, y = before
        self.tile_version[y : y + rows // TILE, x : x + cols // TILE] = kept[2]
        self._renew_distances((0, self.labels.shape[0] - 1, 0, self.labels.shape[1] - 1))


@njit(cache=True, nogil=True)
def _vote(
    cells: Labels,  # (angles, ranges)
    directions: Floats,  # (2, angles), unit vectors of the rays
    reach: Floats,  # (ranges,) [cells]
    start: Floats,  # (2,) the robot [cells from the map's corner]
    votes: Any,  # (rows, cols, labels)
    labels: Labels,
    tile_version: Any,
    version: int,
    occupied: int,
    unknown: int,
    changed: Any,  # (4,)
) -> None:
    angles, ranges = cells.shape
    for a in range(angles):
        for k in range(ranges):
            seen = cells[a, k]
            if seen == unknown:
                continue
            col = np.int64(start[0] + reach[k] * directions[0, a])
            row = np.int64(start[1] + reach[k] * directions[1, a])
            if votes[row, col, seen] == MOST_VOTES:
                for label in range(votes.shape[2]):
                    votes[row, col, label] //= np.uint32(2)
            votes[row, col, seen] += 1
            held = labels[row, col]
            if seen == held:
                continue
            lead = np.int64(votes[row, col, seen]) - np.int64(votes[row, col, held])
            # Ties go to OCCUPIED, then by the order of names: who voted first does not matter.
            if lead < 0 or (lead == 0 and (held == occupied or (seen != occupied and held < seen))):
                continue
            labels[row, col] = seen
            tile_version[row // TILE, col // TILE] = version
            if seen == occupied or held == occupied:
                changed[0], changed[1] = min(changed[0], row), max(changed[1], row)
                changed[2], changed[3] = min(changed[2], col), max(changed[3], col)
