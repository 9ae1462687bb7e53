"""What one thread works in: the memory of the encoder, and the obstacles of a footprint as a map."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ocular.encoding import ConvEncoder
from ocular.planning.belief import BeliefMap
from ocular.planning.ellipse import Obstacles, obstacles_of
from ocular.records import OCCUPIED, UNKNOWN, Floats, Labels

_ORIGIN = np.zeros(2)


class Workspace:
    """Made once a thread, for footprints of this encoder's kind."""

    def __init__(self, encoder: ConvEncoder) -> None:
        geometry = self._geometry = encoder.geometry
        self.scratch = encoder.make_scratch()
        self._occupied, self._unknown = (np.uint8(encoder.labels.index(name)) for name in (OCCUPIED, UNKNOWN))
        self._directions = np.stack([np.cos(geometry.bearings), np.sin(geometry.bearings)])
        self._distances = geometry.distances
        # So coarse that neighbouring obstacle cells of a footprint leave no gap, up to its far end.
        width = geometry.max_range * geometry.field_of_view / geometry.angles
        self._resolution = max(geometry.max_range / geometry.ranges, width)
        ends = geometry.max_range * self._directions
        low = np.minimum(ends.min(axis=1), -self._resolution)
        high = np.maximum(ends.max(axis=1), self._resolution)
        cap = max(geometry.max_range / 4, self._resolution)
        self._belief = BeliefMap(encoder.labels, self._resolution, extent=(*low, *high), distance_cap=cap)

    def obstacles(self, cells: Labels, mean: Floats, cov: Floats, threshold: float) -> Obstacles | None:
        """A map of this footprint's obstacles, the robot at its origin and looking along x.

        Nothing where all of them are further from the way to `mean` than the region and a cell could reach:
        that settles most queries without a map.
        """
        margin = 1.5 * self._resolution  # the diagonal of a cell, and slack
        if not _comes_near(
            cells, self._occupied, self._directions, self._distances, mean, cov, threshold, margin
        ):
            return None
        self._belief.forget()
        # Free ground has no vote: where cells of several bearings fall together, one obstacle is enough.
        voting = np.where(cells == self._occupied, self._occupied, self._unknown)
        self._belief.update(voting, self._geometry, _ORIGIN, 0.0)
        return obstacles_of(self._belief)


@njit(cache=True, nogil=True)
def _comes_near(
    cells: Any,
    occupied: Any,
    directions: Any,  # (2, angles)
    distances: Any,  # (ranges,), ascending
    mean: Any,
    cov: Any,
    threshold: float,
    margin: float,
) -> bool:
    """Whether the centre of some occupied cell is nearer to the way than the region reaches, and a margin."""
    x, y = mean[0], mean[1]
    bulge = np.hypot(0.5 * (cov[0, 0] - cov[1, 1]), cov[0, 1])
    reach = np.sqrt(threshold * (0.5 * (cov[0, 0] + cov[1, 1]) + bulge)) + margin
    length = np.hypot(x, y)
    near = min(np.searchsorted(distances, length + reach) + 1, len(distances))
    for a in range(cells.shape[0]):
        for k in range(near):
            if cells[a, k] == occupied:
                u, v = distances[k] * directions[0, a], distances[k] * directions[1, a]
                share = 0.0
                if length > 0.0:
                    share = min(max((u * x + v * y) / (length * length), 0.0), 1.0)
                if not np.hypot(u - share * x, v - share * y) > reach:
                    return True
    return False
