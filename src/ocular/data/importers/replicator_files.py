"""What Replicator's BasicWriter writes, as Isaac Sim does.

distance_to_image_plane_<frame>.npy, or distance_to_camera_...   [m]; 0 or infinite where nothing was hit
semantic_segmentation_<frame>.png            colours, or ids of classes
semantic_segmentation_labels_<frame>.json    what these stand for
camera_params_<frame>.json                   pinhole and pose

Matrices are 16 numbers row by row, for row vectors: point_in_camera = point_in_world @ cameraViewTransform. A
camera looks along its -z, its y up; worlds have z up.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from ocular.data.importers.columns import read_npy
from ocular.data.importers.seeing import DepthKind
from ocular.errors import DamagedFileError, InputError
from ocular.footprint import Camera, Intrinsics

MOST_PIXELS = 2**16  # along a side of an image
MOST_ROLLED = np.deg2rad(3.0)  # of a camera about its axis, which the projection does not know
DEPTHS: dict[str, DepthKind] = {"distance_to_image_plane": "z", "distance_to_camera": "range"}
_COLOUR = re.compile(r"\(\s*(\d+),\s*(\d+),\s*(\d+),\s*(\d+)\s*\)")


class Folder:
    """The files of a folder, by kind and frame."""

    def __init__(self, path: Path) -> None:
        self.path = path
        kinds = [kind for kind in DEPTHS if self._find(kind, "npy")]
        if not kinds:
            raise InputError(
                f"{path} has no {' and no '.join(DEPTHS)} files; allowed is a folder with either"
            )
        self.depth = kinds[0]
        self.files = {
            "depth": self._find(self.depth, "npy"),
            "semantics": self._find("semantic_segmentation", "png"),
            "labels": self._find("semantic_segmentation_labels", "json"),
            "camera": self._find("camera_params", "json"),
        }

    def _find(self, name: str, ending: str) -> dict[str, Path]:
        """Frame -> file: in the folder itself, or in one folder a kind, as several cameras are written."""
        pattern = re.compile(rf"(?:.*/)?{name}_((?:\d+_)*\d+)\.{ending}")
        found: dict[str, Path] = {}
        for file in sorted([*self.path.glob(f"{name}_*.{ending}"), *self.path.glob(f"*/{name}_*.{ending}")]):
            matched = pattern.fullmatch(file.relative_to(self.path).as_posix())
            if matched and matched[1] in found:
                raise InputError(
                    f"{self.path} has both {found[matched[1]]} and {file}; allowed is one camera: name its "
                    "folder"
                )
            if matched:
                found[matched[1]] = file
        return found

    @cached_property
    def frames(self) -> list[str]:
        """All frames, in order."""
        every = {frame for files in self.files.values() for frame in files}
        return sorted(every, key=lambda frame: [int(part) for part in frame.split("_")])

    def file(self, kind: str, frame: str) -> Path:
        """Of this kind and frame."""
        return self.files[kind][frame]

    def text(self, kind: str, frame: str) -> str:
        """What is in it."""
        try:
            return self.file(kind, frame).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DamagedFileError(f"cannot read {self.file(kind, frame)}: {error}") from error


@dataclass(frozen=True, slots=True)
class Legend:
    """What the numbers of a semantic image stand for: colours as little-endian RGBA, or ids."""

    numbers: npt.NDArray[np.uint32]
    classes: tuple[str, ...]


def legend(file: Path, text: str, semantic_type: str) -> Legend:
    """From a labels file: {"(r, g, b, a)": {"class": "kerb"}} or {"3": {"class": "kerb"}}."""
    try:
        entries = json.loads(text)
        numbers = [_number(key) for key in entries]
        classes = [
            value if isinstance(value, str) else str(value[semantic_type]) for value in entries.values()
        ]
        found = Legend(np.array(numbers, np.uint32), tuple(classes))
    except (ValueError, AttributeError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise DamagedFileError(
            f"{file} cannot be read ({error!r}); allowed are entries such as "
            f'"(255, 0, 0, 255)": {{"{semantic_type}": "kerb"}}'
        ) from error
    return found


def _number(key: str) -> int:
    colour = _COLOUR.fullmatch(key.strip())
    return int.from_bytes(bytes(int(part) for part in colour.groups()), "little") if colour else int(key)


def read_semantics(file: Path) -> npt.NDArray[np.uint32] | None:
    """Numbers (height, width) of a PNG: colours as little-endian RGBA, or ids; None if it cannot be read."""
    try:
        with Image.open(file) as image:
            pixels = np.asarray(image if image.mode in ("RGBA", "L", "I;16", "I") else image.convert("RGBA"))
    except Exception:  # each codec has errors of its own, and whatever it trips over is the file's damage
        return None
    if pixels.ndim == 3:
        return np.ascontiguousarray(pixels).view(np.uint32)[..., 0]
    return pixels.astype(np.uint32)


def read_camera(file: Path, text: str, ground: float) -> Camera | str:
    """The pinhole and how it stands, to a millimetre and a ten-thousandth of a radian; or why it is none."""
    try:
        entries = json.loads(text)
        projection, view = (
            np.array(entries[name], float).reshape(4, 4)
            for name in ("cameraProjection", "cameraViewTransform")
        )
        width, height = (int(side) for side in entries["renderProductResolution"])
        scale, model = float(entries.get("metersPerSceneUnit", 1.0)), entries.get("cameraModel", "pinhole")
        pose = np.linalg.inv(view)
        if not (1 <= width <= MOST_PIXELS and 1 <= height <= MOST_PIXELS and math.isfinite(scale)):
            raise ValueError(f"{width} x {height} pixels, {scale} m a unit")
        if not (np.isfinite(projection).all() and np.isfinite(pose).all()):
            raise ValueError("matrices that are not finite")
    except (
        *(ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError),
        np.linalg.LinAlgError,
    ) as error:
        raise DamagedFileError(
            f"{file} cannot be read ({error!r}); allowed is a camera_params file"
        ) from error
    if model != "pinhole":
        return f"camera of the model {model!r}; allowed is 'pinhole'"
    right, ahead = pose[0, :3], -pose[2, :3]
    if abs(np.arcsin(np.clip(right[2], -1, 1))) > MOST_ROLLED:
        return f"camera rolled by more than {np.rad2deg(MOST_ROLLED):.0f} deg"
    with np.errstate(over="ignore"):  # no camera has an infinite focal length or height, which is said below
        lens = Intrinsics(
            width=width,
            height=height,
            fx=projection[0, 0] * width / 2,
            fy=projection[1, 1] * height / 2,
            cx=(1 - projection[2, 0]) * width / 2,
            cy=(1 + projection[2, 1]) * height / 2,
        )
        over, pitch = pose[3, 2] * scale - ground, -np.arcsin(np.clip(ahead[2], -1, 1))
    return Camera(lens, round(float(over), 3), round(float(pitch), 4))


def read_depth(file: Path) -> npt.NDArray[np.float32] | None:
    """A depth image [m]; None if it cannot be read."""
    try:
        depth = read_npy(file)
    except DamagedFileError:
        return None
    if depth.dtype.kind != "f":
        return None
    return np.asarray(depth[..., 0] if depth.ndim == 3 else depth, np.float32)
