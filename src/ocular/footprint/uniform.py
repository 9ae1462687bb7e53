"""Footprints that show one label all over: for logs that name the ground and have no picture of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ocular.errors import check_names, check_type
from ocular.records import OCCUPIED, UNKNOWN, FootprintGeometry, Footprints

SMALLEST = FootprintGeometry(angles=8, ranges=8)  # that can be encoded; there is nothing to resolve


def uniform_footprints(grounds: Sequence[str], geometry: FootprintGeometry = SMALLEST) -> Footprints:
    """One footprint a ground, in this order: the index into them is what a transition sees."""
    check_names("grounds", grounds)
    check_type("geometry", geometry, FootprintGeometry)
    labels = (OCCUPIED, UNKNOWN, *(name for name in grounds if name not in (OCCUPIED, UNKNOWN)))
    numbers = np.array([labels.index(name) for name in grounds], np.uint8)
    shape = (len(numbers), geometry.angles, geometry.ranges)
    return Footprints(np.broadcast_to(numbers[:, None, None], shape).copy(), labels, geometry)
