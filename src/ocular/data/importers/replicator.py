"""Folders of NVIDIA Replicator's BasicWriter, as Isaac Sim writes them, and states and actions beside."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ocular.data.importers.base import (
    Account,
    Importer,
    Recording,
    Steps,
    Target,
    check_exists,
    identity,
    tracked,
)
from ocular.data.importers.columns import Columns, open_columns, read_csv
from ocular.data.importers.replicator_files import (
    DEPTHS,
    Folder,
    legend,
    read_camera,
    read_depth,
    read_semantics,
)
from ocular.data.importers.seeing import Seer, index_colours
from ocular.data.importers.trajectory import steps_of
from ocular.errors import InputError
from ocular.records import UNKNOWN, Indices, Labels

NOTHING = ("BACKGROUND", "UNLABELLED")  # classes of Replicator's own: UNKNOWN, unless the table names them


@dataclass(frozen=True, kw_only=True)
class Replicator(Importer):
    """Import folders that Replicator's BasicWriter wrote (Isaac Sim), with a table of states and actions.

    The table has a row for each step: the columns of the state and the action, `next_` and the state's
    columns (unless the next row of the same `run` follows), and as far as known `heading` [rad], `time` [s],
    `run` and `frame`, the number in that row's file names; without it, rows are in the order of the frames.
    """

    table: Path | None = None
    """A .csv with a header, or a .npz with states, actions ...; unless told, states.csv or states.npz."""
    state_columns: tuple[str, ...] = ("x", "y", "vx", "vy")
    """Of the .csv."""
    action_columns: tuple[str, ...] = ("ax", "ay")
    """Of the .csv."""
    dt: float | None = None
    """Time step [s]; rows of a run that are not this far apart are left out. Needed where there is `time`."""
    time_tolerance: float = 0.01
    """How much a time step may differ from that [s]."""
    semantic_type: str = "class"
    """Which kind of semantics the class table is about."""
    ground: float = 0.0
    """Height of the ground in the simulated world [m]."""

    def plan(self, path: Path, target: Target) -> Recording:
        """Look through the table, and the folder's names, labels and cameras."""
        check_exists(path)
        folder, account = Folder(path), Account()
        table = self.table or _table_of(path)
        rows = self._read(table)
        frame_of = _frames(rows.pop("frame", None), folder, len(rows["states"]), table)
        steps = steps_of(rows, self.dt, self.time_tolerance, account)
        for kind, present in folder.files.items():
            there = np.array([frame_of[row] in present for row in steps.views], dtype=bool)
            steps = account.keep(steps, there, f"no {kind} file of its frame")
        frames = {row: frame_of[row] for row in np.unique(steps.views).tolist()}
        account.note_classes(_with_nothing(target).need_table(), self._classes(folder, frames))
        settings = {**asdict(self), "table": identity(table)}
        return _Rendered(path, settings, target, steps, account, folder, frames, self)

    def _read(self, table: Path) -> dict[str, npt.NDArray[Any]]:
        check_exists(table)
        if table.suffix == ".npz":
            return _arrays(open_columns(table))
        columns = read_csv(table)
        next_columns = tuple(f"next_{name}" for name in self.state_columns)
        wanted = [*self.state_columns, *self.action_columns]
        wanted += next_columns if any(name in columns for name in next_columns) else ()
        lacking = [name for name in wanted if name not in columns]
        if lacking:
            raise InputError(f"{table} lacks {', '.join(lacking)}; it has the columns {', '.join(columns)}")

        def stack(names: tuple[str, ...]) -> npt.NDArray[Any]:
            for name in names:
                if columns[name].dtype.kind != "f":
                    raise InputError(f"{table}: the column {name} has no number; allowed are numbers")
            return np.stack([columns[name] for name in names], axis=1)

        rows = {"states": stack(self.state_columns), "actions": stack(self.action_columns)}
        if next_columns[0] in columns:
            rows["next_states"] = stack(next_columns)
        given = {"headings": "heading", "time": "time"}
        rows |= {name: stack((column,))[:, 0] for name, column in given.items() if column in columns}
        return rows | {name: columns[name] for name in ("run", "frame") if name in columns}

    def _classes(self, folder: Folder, frames: Mapping[int, str]) -> set[str]:
        found: set[str] = set()
        known: dict[str, Any] = {}  # most frames have the same text
        for frame in tracked(frames.values(), f"looking through {folder.path.name}", len(frames)):
            text = folder.text("labels", frame)
            if text not in known:
                known[text] = legend(folder.file("labels", frame), text, self.semantic_type)
                found.update(known[text].classes)
        return found


def _table_of(path: Path) -> Path:
    for name in ("states.csv", "states.npz"):
        if (path / name).is_file():
            return path / name
    raise InputError(
        f"{path} has neither states.csv nor states.npz; allowed is one of them, or a table elsewhere"
    )


def _arrays(columns: Columns) -> dict[str, npt.NDArray[Any]]:
    dimensions = {"states": 2, "actions": 2, "next_states": 2, "headings": 1, "time": 1, "frame": 1}
    needed = ("states", "actions")
    rows = {
        name: columns.numbers(name, ndim)
        for name, ndim in dimensions.items()
        if name in columns or name in needed
    }
    return rows | ({"run": columns.array("run")} if "run" in columns else {})


def _frames(numbers: npt.NDArray[Any] | None, folder: Folder, rows: int, table: Path) -> list[str]:
    """The frame of each row, as it is in the files' names."""
    if numbers is None:
        if len(folder.frames) != rows:
            raise InputError(
                f"{table} has {rows} rows for {len(folder.frames)} frames; allowed are as many, or a column "
                "`frame`"
            )
        return folder.frames
    by_number = {tuple(int(part) for part in frame.split("_")): frame for frame in folder.frames}
    return [by_number.get(_frame_number(number), str(number)) for number in numbers.tolist()]


def _frame_number(number: float | str) -> tuple[int, ...]:
    if isinstance(number, str):  # of a sequence: "2_0013"
        return tuple(int(part) for part in number.split("_") if part.isdigit())
    return (int(number),) if math.isfinite(number) else ()


def _with_nothing(target: Target) -> Target:
    """The target with a table that knows Replicator's own classes, too."""
    table = target.need_table()
    return replace(
        target, table=replace(table, label_of={**dict.fromkeys(NOTHING, UNKNOWN), **table.label_of})
    )


class _Rendered(Recording):
    """A folder of frames."""

    def __init__(
        self,
        path: Path,
        settings: dict[str, Any],
        target: Target,
        steps: Steps,
        account: Account,
        folder: Folder,
        frames: Mapping[int, str],
        options: Replicator,
    ) -> None:
        super().__init__(path, settings, target, steps, account)
        self._folder, self._frames, self._options = folder, frames, options
        self._seer = Seer(_with_nothing(target))

    def look(self, views: Indices) -> list[Labels | str]:
        """Read and project the frame of each of these rows."""
        return [self._look(self._frames[view]) for view in views.tolist()]

    def _look(self, frame: str) -> Labels | str:
        folder = self._folder
        camera = read_camera(folder.file("camera", frame), folder.text("camera", frame), self._options.ground)
        if isinstance(camera, str):
            return camera
        depth = read_depth(folder.file("depth", frame))
        numbers = read_semantics(folder.file("semantics", frame))
        if depth is None or numbers is None:
            return f"{'depth' if depth is None else 'semantic'} image that cannot be read"
        size = (camera.intrinsics.height, camera.intrinsics.width)
        if depth.shape != size or numbers.shape != size:
            return f"images of {depth.shape} and {numbers.shape} pixels, unlike the camera's {size}"
        key = legend(folder.file("labels", frame), folder.text("labels", frame), self._options.semantic_type)
        index = np.empty(numbers.size, np.uint16)
        if not len(key.numbers) or not index_colours(numbers.ravel(), key.numbers, index):
            return "semantic image with numbers or colours that its labels file lacks"
        return self._seer.footprint(camera, depth, index.reshape(size), key.classes, DEPTHS[folder.depth])
