"""Project() in plain NumPy: slow, readable, the measure of camera.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ocular.footprint.camera import HALF, Projector
from ocular.records import OCCUPIED, UNKNOWN, Labels


def project_reference(
    projector: Projector, depth: npt.NDArray[Any], semantics: npt.NDArray[Any], classes: Sequence[str]
) -> Labels:
    """The footprint (angles, ranges) of a depth image and an image of indices into `classes`."""
    depth, semantics, label_of = projector.checked(depth, semantics, classes)
    depth, labels = depth.ravel(), label_of[semantics.ravel()]
    occupied, unknown = (projector.table.labels.index(name) for name in (OCCUPIED, UNKNOWN))
    bearing, cells_per_depth, expected, pixel_of = projector.tables
    angles, ranges = projector.geometry.angles, projector.geometry.ranges

    # Every obstacle point, dropped onto the ground; the nearest one of a bearing ends its view.
    with np.errstate(invalid="ignore"):
        away = np.where(depth > 0, depth * cells_per_depth + HALF, np.inf)
    points = (labels == occupied) & (bearing >= 0) & (away < ranges)
    first = np.full(angles, ranges)
    np.minimum.at(first, bearing[points], np.floor(away[points]).astype(int))

    # What each cell's pixel shows: ground, if its depth is near that of the plane; or an obstacle before it.
    shown = labels[pixel_of]
    on_screen = pixel_of >= 0
    with np.errstate(invalid="ignore"):
        flat = (depth >= expected[0]) & (depth <= expected[1])
    out = np.where(on_screen & flat[pixel_of] & (shown != occupied), shown, unknown).astype(np.uint8)
    hiding = on_screen & (shown == occupied)
    for a in range(angles):
        for k in np.flatnonzero(hiding[a]):
            if k < first[a] and away[pixel_of[a, k]] < first[a]:
                first[a] = int(away[pixel_of[a, k]])
        out[a, first[a] :] = unknown
        if first[a] < ranges:
            out[a, first[a]] = occupied
    return out
