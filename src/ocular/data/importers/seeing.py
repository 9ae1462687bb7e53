"""From a camera's images to footprints, as all importers need it: classes by name, a projector a camera."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from numba import njit

from ocular.data.importers.base import Target
from ocular.footprint import Camera, Projector
from ocular.records import Labels

HIGHEST = 2**16  # ids of classes are less than this
_PROJECTORS = 32  # kept; their tables take megabytes each

DepthKind = Literal["z", "range"]


class Seer:
    """Projects images of cameras that may change from one to the next, as one on a rocking robot does."""

    def __init__(self, target: Target) -> None:
        self._target, self._table = target, target.need_table()
        self._projectors: dict[tuple[Camera, DepthKind], Projector] = {}

    def footprint(
        self,
        camera: Camera,
        depth: npt.NDArray[np.float32],
        semantics: npt.NDArray[Any],
        classes: Sequence[str],
        kind: DepthKind = "z",
    ) -> Labels:
        """The footprint of a depth image [m] and one of indices into the classes."""
        if (camera, kind) not in self._projectors:
            if len(self._projectors) == _PROJECTORS:
                self._projectors.pop(next(iter(self._projectors)))
            self._projectors[camera, kind] = Projector(
                camera, self._target.geometry, self._table, kind, self._target.flatness
            )
        return self._projectors[camera, kind](depth, semantics, classes)


class Ids:
    """Semantic images of integers: which there are, and their images as indices into that list."""

    def __init__(self, found: Sequence[int]) -> None:
        self.found = tuple(found)
        self._index = np.zeros(HIGHEST, np.uint8 if len(self.found) <= 256 else np.uint16)
        self._index[list(self.found)] = np.arange(len(self.found))

    def index(self, ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """An image of indices into `found`."""
        return np.take(self._index, ids)


def new_marks() -> npt.NDArray[np.bool_]:
    """For mark_ids: no id was seen yet."""
    return np.zeros(HIGHEST, np.bool_)


@njit(cache=True, nogil=True)
def mark_ids(ids: Any, seen: Any) -> bool:
    """Mark each id of a flat image as seen; False, and nothing more, if one is out of bounds."""
    for number in ids:
        if number < 0 or number >= len(seen):
            return False
        seen[number] = True
    return True


@njit(cache=True, nogil=True)
def index_colours(pixels: Any, colours: Any, out: Any) -> bool:
    """The place of each pixel among these colours; False as soon as one is not there."""
    last = 0
    for p in range(len(pixels)):
        if pixels[p] != colours[last]:
            last = -1
            for k in range(len(colours)):
                if pixels[p] == colours[k]:
                    last = k
                    break
            if last < 0:
                return False
        out[p] = last
    return True
