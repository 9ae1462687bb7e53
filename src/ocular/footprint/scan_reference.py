"""The footprint a robot sees from a pose in a label grid, in NumPy: slow, readable, the measure of scan.py.

Both evaluate the same expressions in the same order, so that they agree bit for bit.
"""

from __future__ import annotations

import numpy as np

from ocular.footprint.grid import LabelGrid
from ocular.records import OCCUPIED, UNKNOWN, Floats, FootprintGeometry, Labels


def scan_reference(
    grid: LabelGrid, geometry: FootprintGeometry, positions: Floats, headings: Floats
) -> Labels:
    """Footprints (n, angles, ranges): a ray ends in the first OCCUPIED cell, all behind it is UNKNOWN."""
    footprints = np.empty((len(positions), geometry.angles, geometry.ranges), np.uint8)
    for footprint, position, heading in zip(footprints, positions, headings, strict=True):
        seen = _labels_in_view(grid, geometry, position, heading)
        occupied = seen == grid.index(OCCUPIED)
        # The first occupied cell itself is not behind anything, hence the shift by one cell.
        hidden = np.zeros_like(occupied)
        hidden[:, 1:] = np.logical_or.accumulate(occupied, axis=1)[:, :-1]
        footprint[...] = np.where(hidden, grid.index(UNKNOWN), seen)
    return footprints


def _labels_in_view(
    grid: LabelGrid, geometry: FootprintGeometry, position: Floats, heading: np.float64
) -> Labels:
    """The label at every cell centre of the footprint, as if nothing hid anything."""
    per_metre = 1.0 / grid.resolution
    cos_bearings, sin_bearings = np.cos(geometry.bearings), np.sin(geometry.bearings)
    cos_heading, sin_heading = np.cos(heading), np.sin(heading)
    # Adding the angles by their cosines and sines needs no trigonometry per ray in the fast path.
    right = cos_heading * cos_bearings - sin_heading * sin_bearings  # (angles,)
    up = sin_heading * cos_bearings + cos_heading * sin_bearings
    reach = geometry.distances * per_metre  # (ranges,), in cells
    columns = (position[0] - grid.origin[0]) * per_metre + reach * right[:, None]  # (angles, ranges)
    rows = (position[1] - grid.origin[1]) * per_metre + reach * up[:, None]
    return grid.at_cells(columns, rows)
