"""From depth and semantic images to the footprint: Project() of the paper's section 4.1.

The robot frame has its origin on the ground under the robot: x ahead, y left, z up. The ground is the plane
z = 0. The camera stands over the origin and looks ahead, tilted down by `pitch`.

A pixel of a ground label shows the ground where its ray meets the plane; each cell of the footprint takes the
label of the pixel that its centre falls on, so that no cell stays empty for want of pixels. An OCCUPIED pixel
is a point in space, dropped onto the plane: along each bearing the nearest one ends the view.

Where flat ground ends. A ground pixel counts only if its depth is within `tolerance` of the depth that the
plane would have there. Ground that rises by dz meets the ray sooner, by the share dz / height of its depth:
up to `tolerance` it is taken for flat, and its labels land that much too far away; beyond, it is UNKNOWN.
Obstacles are placed by their measured depth, so that a slope hardly shifts them. Whatever hangs over the
ground, however high, counts as standing on it.

camera_reference.py says the same in NumPy; the two agree bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from numba import njit

from ocular.errors import (
    InputError,
    check_array,
    check_choice,
    check_names,
    check_number,
    check_shape,
    check_type,
    check_whole,
)
from ocular.footprint.classes import ClassTable
from ocular.records import OCCUPIED, UNKNOWN, Floats, FootprintGeometry, Labels, for_kernels

Float32s = npt.NDArray[np.float32]
Int32s = npt.NDArray[np.int32]
HALF = np.float32(0.5)  # [cells]; a point is in the first cell whose centre it does not lie behind
FOCAL_LENGTHS = 1e-3, 1e9  # [pixels]; beyond, tangents leave single precision
NARROWEST = 1e-6  # [rad], field of view of a camera
HIGHEST = 1e6  # [m]
MOST_PIXELS = 2**16  # along a side of an image
NOWHERE = -1  # the pixel of a cell that no pixel shows, the bearing of a pixel outside the field of view


@dataclass(frozen=True, slots=True)
class Intrinsics:
    """A pinhole: image size, focal lengths and principal point [pixels]; pixel (0, 0) is the top left one."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float

    def __post_init__(self) -> None:
        for name in ("width", "height"):
            check_whole(name, getattr(self, name), most=MOST_PIXELS)
        for name in ("fx", "fy", "cx", "cy"):
            check_number(name, getattr(self, name))
        low, high = FOCAL_LENGTHS
        if self.width < 1 or self.height < 1 or not (low <= self.fx <= high and low <= self.fy <= high):
            raise InputError(
                f"{self}; allowed are at least 1 x 1 pixels and focal lengths from {low:g} to {high:g} pixels"
            )
        if not (0 <= self.cx <= self.width and 0 <= self.cy <= self.height):
            raise InputError(
                f"the principal point ({self.cx}, {self.cy}) does not fit an image of {self.width} x "
                f"{self.height} pixels; allowed is a point inside of it"
            )

    @classmethod
    def of_field_of_view(cls, width: int, height: int, horizontal: float, vertical: float) -> Intrinsics:
        """The centred pinhole with these full angles of view [rad]."""
        for name, value in {"width": width, "height": height}.items():
            check_whole(name, value)
        for name, angle in {"horizontal": horizontal, "vertical": vertical}.items():
            check_number(name, angle)
        if not (NARROWEST < horizontal < np.pi and NARROWEST < vertical < np.pi):
            raise InputError(
                f"a field of view of {horizontal} x {vertical} rad; allowed is more than {NARROWEST:g} and "
                "less than pi"
            )
        return cls(
            width=width,
            height=height,
            fx=width / (2 * np.tan(horizontal / 2)),
            fy=height / (2 * np.tan(vertical / 2)),
            cx=width / 2,
            cy=height / 2,
        )


@dataclass(frozen=True)
class Camera:
    """A pinhole over the robot; below ground, or looking at the sky, it sees nothing that a robot can use."""

    intrinsics: Intrinsics
    height: float  # over the ground [m]
    pitch: float  # downwards from the horizontal [rad]

    def __post_init__(self) -> None:
        check_type("intrinsics", self.intrinsics, Intrinsics)
        check_number("height", self.height)
        check_number("pitch", self.pitch)
        if not (abs(self.height) <= HIGHEST and abs(self.pitch) <= np.pi / 2):
            raise InputError(
                f"a camera at height {self.height} m, pitch {self.pitch} rad; allowed are at most "
                f"{HIGHEST:g} m up or down, and a pitch from -pi/2 to pi/2"
            )

    @cached_property
    def rays(self) -> Floats:
        """What each pixel's centre looks along, (height, width, 3) in the robot frame, 1 along the axis."""
        k = self.intrinsics
        down = ((np.arange(k.height) + 0.5 - k.cy) / k.fy)[:, None]
        right = ((np.arange(k.width) + 0.5 - k.cx) / k.fx)[None, :]
        cosine, sine = np.cos(self.pitch), np.sin(self.pitch)
        parts = (cosine - down * sine, -right, -sine - down * cosine)
        return np.stack([np.broadcast_to(part, (k.height, k.width)) for part in parts], axis=-1)

    def pixels_of(self, x: Floats, y: Floats) -> Int32s:
        """The pixel, counted row by row, that shows each point of the ground; NOWHERE outside the image."""
        k = self.intrinsics
        cosine, sine = np.cos(self.pitch), np.sin(self.pitch)
        ahead = x * cosine + self.height * sine
        seen = (ahead > 0) & (self.height > 0)
        ahead = np.where(seen, ahead, 1.0)
        column = np.floor(k.cx - k.fx * y / ahead)
        row = np.floor(k.cy + k.fy * (self.height * cosine - x * sine) / ahead)
        seen &= (column >= 0) & (column < k.width) & (row >= 0) & (row < k.height)
        return np.where(seen, row * k.width + column, NOWHERE).astype(np.int32)


@dataclass(frozen=True)
class Projector:
    """Project() for one camera, one class table and one footprint geometry; its tables are made once."""

    camera: Camera
    geometry: FootprintGeometry
    table: ClassTable
    depth: Literal["z", "range"] = "z"  # along the optical axis, or along the ray
    tolerance: float = 0.25  # of a ground pixel's depth, relative

    def __post_init__(self) -> None:
        check_type("camera", self.camera, Camera)
        check_type("geometry", self.geometry, FootprintGeometry)
        check_type("table", self.table, ClassTable)
        check_number("tolerance", self.tolerance)
        check_choice("depth", self.depth, ("z", "range"))
        if not 0 < self.tolerance < 1:
            raise InputError(f"tolerance is {self.tolerance}; allowed is a number between 0 and 1")

    def __call__(
        self, depth: npt.NDArray[Any], semantics: npt.NDArray[Any], classes: Sequence[str]
    ) -> Labels:
        """The footprint (angles, ranges) of a depth image [m] and an image of indices into `classes`.

        A pixel without a positive, finite depth has seen nothing.
        """
        depth, semantics, label_of = self.checked(depth, semantics, classes)
        out = np.empty((self.geometry.angles, self.geometry.ranges), np.uint8)
        names = self.table.labels
        occupied, unknown = names.index(OCCUPIED), names.index(UNKNOWN)
        _project(depth.ravel(), semantics.ravel(), label_of, self.tables, occupied, unknown, out)
        return out

    def checked(
        self, depth: npt.NDArray[Any], semantics: npt.NDArray[Any], classes: Sequence[str]
    ) -> tuple[Float32s, npt.NDArray[Any], Labels]:
        """The images as the kernel wants them, and the label of each class."""
        size = self.camera.intrinsics.height, self.camera.intrinsics.width
        check_shape("the depth image of these intrinsics", depth, size)
        check_shape("the semantic image of these intrinsics", semantics, size)
        check_names("classes", classes)
        check_array("the semantic image", semantics, "iu")
        if depth.dtype.kind != "f":
            raise InputError(f"the depth image is {depth.dtype}; allowed are floating-point numbers [m]")
        semantics = for_kernels(semantics)
        low, high = _extent(semantics.ravel())
        if low < 0 or high >= len(classes):
            raise InputError(
                f"the semantic image holds {low} to {high}; allowed are 0 to {len(classes) - 1}, "
                f"the classes {', '.join(classes)}"
            )
        with np.errstate(over="ignore"):  # what is too far for single precision is infinitely far: not seen
            return for_kernels(np.asarray(depth, np.float32)), semantics, self.table.numbers(classes)

    @cached_property
    def tables(self) -> tuple[Int32s, Float32s, Float32s, Int32s]:
        """Bearing, cells per metre of depth and expected depth of each pixel, and the pixel of each cell."""
        geometry, rays = self.geometry, self.camera.rays.reshape(-1, 3)
        per_depth = np.linalg.norm(rays, axis=1) if self.depth == "range" else np.ones(len(rays))
        step = geometry.max_range / geometry.ranges
        cells_per_depth = np.hypot(rays[:, 0], rays[:, 1]) / per_depth / step
        turned = np.arctan2(rays[:, 1], rays[:, 0]) / geometry.field_of_view + 0.5
        # A camera below ground sees no obstacle either, so that its footprint is all UNKNOWN.
        inside = (turned >= 0) & (turned < 1) & (self.camera.height > 0)
        bearing = np.where(inside, np.floor(turned * geometry.angles), NOWHERE).astype(np.int32)
        with np.errstate(divide="ignore"):
            expected = np.where(rays[:, 2] < 0, -self.camera.height / rays[:, 2], np.nan) * per_depth
        bounds = np.stack([(1 - self.tolerance) * expected, (1 + self.tolerance) * expected])
        reach, bearings = geometry.distances, geometry.bearings[:, None]
        cells = self.camera.pixels_of(reach * np.cos(bearings), reach * np.sin(bearings))
        return bearing, cells_per_depth.astype(np.float32), bounds.astype(np.float32), cells


@njit(cache=True, nogil=True)
def _extent(numbers: Any) -> tuple[int, int]:
    low = high = int(numbers[0])
    for number in numbers:
        low, high = min(low, int(number)), max(high, int(number))
    return low, high


@njit(cache=True, nogil=True)
def _project(
    depth: Any, semantics: Any, label_of: Any, tables: Any, occupied: int, unknown: int, out: Any
) -> None:
    bearing, cells_per_depth, bounds, pixel_of = tables
    angles, ranges = out.shape
    first = np.full(angles, ranges, np.int32)  # where each bearing's view ends
    for p in range(len(depth)):
        if label_of[semantics[p]] == occupied and bearing[p] >= 0 and depth[p] > 0:
            away = depth[p] * cells_per_depth[p] + HALF
            if away < first[bearing[p]]:
                first[bearing[p]] = np.int32(away)
    for a in range(angles):
        end = first[a]
        k = 0
        while k < end:
            p = pixel_of[a, k]
            label = label_of[semantics[p]] if p >= 0 else unknown
            out[a, k] = unknown
            if label == occupied:
                # The obstacle that hides this cell; one of another bearing by less than a pixel.
                away = depth[p] * cells_per_depth[p] + HALF
                if depth[p] > 0 and away < end:
                    end = np.int32(away)
            elif p >= 0 and depth[p] >= bounds[0, p] and depth[p] <= bounds[1, p]:
                out[a, k] = label
            k += 1
        for k in range(end, ranges):
            out[a, k] = unknown
        if end < ranges:
            out[a, end] = occupied
