"""Plain arrays: a .npz file or a directory of .npy files, see docs/import.md."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ocular.data.importers.base import Account, Importer, Recording, Steps, Target, check_exists, tracked
from ocular.data.importers.columns import Columns, Rows, open_columns
from ocular.data.importers.seeing import DepthKind, Ids, Seer, mark_ids, new_marks
from ocular.data.importers.trajectory import steps_of
from ocular.errors import InputError, check_choice
from ocular.footprint import Camera, Intrinsics
from ocular.records import Indices, Labels

_NUMBERS = {"states": 2, "actions": 2, "next_states": 2, "headings": 1, "time": 1}  # dimensions
_VIEWS = "footprints, or depth and semantics"


@dataclass(frozen=True, kw_only=True)
class Arrays(Importer):
    """Import plain arrays: a .npz file, or a directory of .npy files.

    states (n, d), actions (n, m) and next_states (n, d); or rows in the order of time, with `run` (n,) and
    `time` (n,) [s]. What was seen: footprints (k, angles, ranges) and the names of their `labels`; or depth
    (k, h, w) [m] and semantics (k, h, w), with `intrinsics` (fx, fy, cx, cy). See docs/import.md.
    """

    dt: float | None = None
    """Time step [s]; rows of a run that are not this far apart are left out. Needed where there is `time`."""
    time_tolerance: float = 0.01
    """How much a time step may differ from that [s]."""
    depth: DepthKind = "z"
    """Depth is measured along the optical axis (z), or along each pixel's ray (range)."""
    camera_height: float | None = None
    """Of the camera over the ground [m]; images need it."""
    camera_pitch: float | None = None
    """Of the camera downwards from the horizontal [deg]; images need it."""

    def plan(self, path: Path, target: Target) -> Recording:
        """Look through the arrays."""
        check_exists(path)
        columns, account = open_columns(path), Account()
        given: dict[str, npt.NDArray[Any]] = {
            name: columns.numbers(name, ndim) for name, ndim in _NUMBERS.items()
            if name in columns or name in ("states", "actions")
        }  # fmt: skip
        if "run" in columns:
            given["run"] = columns.array("run")
        steps = steps_of(given, self.dt, self.time_tolerance, account)
        if "footprints" in columns:
            views: Rows = columns.rows("footprints")
            steps = _with_views(columns, steps, views.shape[0], len(given["states"]))
            return _Ready(path, asdict(self), target, steps, account, columns, views)
        if not ("depth" in columns and "semantics" in columns):
            raise InputError(f"{path} has {', '.join(columns.names)}; allowed are {_VIEWS} among them")
        depth, semantics = columns.rows("depth"), columns.rows("semantics")
        steps = _with_views(columns, steps, depth.shape[0], len(given["states"]))
        camera = self._camera(columns, depth.shape)
        return _Imaged(
            path, asdict(self), target, steps, account, columns, (depth, semantics), camera, self.depth
        )

    def _camera(self, columns: Columns, shape: tuple[int, ...]) -> Camera:
        if self.camera_height is None or self.camera_pitch is None:
            raise InputError(
                f"camera_height is {self.camera_height}, camera_pitch {self.camera_pitch}; allowed are "
                "numbers: "
                f"{columns.path} has images"
            )
        lens = columns.numbers("intrinsics", 1)
        if lens.shape != (4,) or len(shape) != 3:
            raise InputError(
                f"{columns.path}: intrinsics of shape {lens.shape}, depth of shape {shape}; allowed are fx, "
                "fy, "
                "cx, cy, and (k, height, width)"
            )
        fx, fy, cx, cy = lens.tolist()
        return Camera(
            Intrinsics(width=shape[2], height=shape[1], fx=fx, fy=fy, cx=cx, cy=cy),
            self.camera_height,
            float(np.deg2rad(self.camera_pitch)),
        )


def _with_views(columns: Columns, steps: Steps, views: int, rows: int) -> Steps:
    """The steps with the index of their view, where there is one; otherwise each row has its own."""
    if "footprint_index" in columns:
        index = columns.array("footprint_index")
        if index.dtype.kind not in "iu" or index.shape != (rows,):
            raise InputError(
                f"footprint_index is {index.dtype} of shape {index.shape}; allowed are {rows} integers"
            )
        if rows and (int(index.min()) < 0 or int(index.max()) >= views):
            raise InputError(
                f"footprint_index runs from {index.min()} to {index.max()}; allowed are 0 to {views - 1}"
            )
        return Steps(
            steps.states,
            steps.actions,
            steps.next_states,
            steps.headings,
            index.astype(np.int64)[steps.views],
        )
    if views != rows:
        raise InputError(
            f"{columns.path} has {views} views for {rows} states; allowed are as many, or a footprint_index"
        )
    return steps


class _Ready(Recording):
    """Footprints that need no projection; their labels are told by name."""

    def __init__(
        self,
        path: Path,
        settings: dict[str, Any],
        target: Target,
        steps: Steps,
        account: Account,
        columns: Columns,
        footprints: Rows,
    ) -> None:
        super().__init__(path, settings, target, steps, account)
        self._footprints, wanted = footprints, target.geometry
        if footprints.dtype.kind not in "iu" or footprints.shape[1:] != (wanted.angles, wanted.ranges):
            raise InputError(
                f"{path}: footprints are {footprints.dtype} of shape {footprints.shape}; allowed are "
                "integers of "
                f"shape (any, {wanted.angles}, {wanted.ranges})"
            )
        self._names = [str(name) for name in columns.array("labels").ravel()]
        for name in self._names:
            check_choice(f"a label of {path}", name, target.labels)

    def look(self, views: Indices) -> list[Labels | str]:
        """Renumber them."""
        number = np.array([self.target.labels.index(name) for name in self._names], np.uint8)
        found: list[Labels | str] = []
        for cells in self._footprints.read(views.tolist()):
            if int(cells.min()) < 0 or int(cells.max()) >= len(number):
                found.append("footprint with numbers that have no label")
            else:
                found.append(number[cells])
        return found


class _Imaged(Recording):
    """Depth and semantic images of one camera."""

    def __init__(
        self,
        path: Path,
        settings: dict[str, Any],
        target: Target,
        steps: Steps,
        account: Account,
        columns: Columns,
        images: tuple[Rows, Rows],
        camera: Camera,
        kind: DepthKind,
    ) -> None:
        super().__init__(path, settings, target, steps, account)
        (self._depth, self._semantics), self._camera, self._kind = images, camera, kind
        if self._depth.shape != self._semantics.shape or self._depth.dtype.kind != "f":
            raise InputError(
                f"{path}: depth is {self._depth.dtype} of shape {self._depth.shape}, semantics of shape "
                f"{self._semantics.shape}; allowed are floating-point depths [m] and one shape"
            )
        if self._semantics.dtype.kind not in "iu":
            raise InputError(f"{path}: semantics are {self._semantics.dtype}; allowed are integers")
        self._ids = Ids(self._mark(np.unique(steps.views)))
        names = columns.array("classes").ravel() if "classes" in columns else None
        if names is not None and self._ids.found and self._ids.found[-1] >= len(names):
            raise InputError(
                f"{path}: semantics hold {self._ids.found[-1]}; allowed are 0 to {len(names) - 1}, its "
                "classes"
            )
        self._classes = [str(i if names is None else names[i]) for i in self._ids.found]
        account.note_classes(target.need_table(), self._classes)
        self._seer = Seer(target)

    def _mark(self, views: Indices) -> list[int]:
        seen = new_marks()
        images = tracked(
            self._semantics.read(views.tolist()), f"looking through {self.path.name}", len(views)
        )
        for view, image in zip(views, images, strict=True):
            if not mark_ids(np.ascontiguousarray(image).ravel(), seen):
                raise InputError(
                    f"{self.path}: row {view} of semantics holds a number out of bounds; allowed are 0 to "
                    f"{len(seen) - 1}"
                )
        return np.flatnonzero(seen).tolist()

    def look(self, views: Indices) -> list[Labels | str]:
        """Project them."""
        return [
            self._seer.footprint(self._camera, depth, self._ids.index(ids), self._classes, self._kind)
            for depth, ids in zip(
                self._depth.read(views.tolist()), self._semantics.read(views.tolist()), strict=True
            )
        ]
