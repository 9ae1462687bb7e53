"""What is fuzzed: every parser of files that come from elsewhere, each a function of bytes.

A target writes the bytes to where such a file would be, and reads it as the library does. It says whether
the file was taken, or refused by a documented error; whatever else comes out is a finding, warnings included.
Most inputs are several files. Where a format keeps checksums, they are also made right again: a fuzzer would
not get beyond them.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.bags import TOPICS

from ocular.calibrators import load
from ocular.data.importers import Arrays, Bag, Importer, Replicator, Target, list_topics
from ocular.dynamics.model_file import load_robot
from ocular.errors import CalibrationWarning, InputError, OcularError
from ocular.footprint import load_classes
from ocular.worlds import load_map
from stress import seeds
from stress.seeds import ABSENT, split

MOST_ROWS = 64  # read of what was planned: damage further on is no other damage
COLUMNS = (
    *("states", "actions", "next_states", "headings", "run", "time", "footprints", "labels"),
    *("footprint_index", "depth", "semantics", "classes", "intrinsics"),
)
ARRAY_FILES = tuple(f"{name}.npy" for name in COLUMNS)
BAG_FILES = ("metadata.yaml", "bag.db3", "bag.mcap")
FRAME_FILES = tuple(
    f"{kind}_{frame:04d}.{ending}"
    for frame in range(2)
    for kind, ending in (
        *(("distance_to_image_plane", "npy"), ("semantic_segmentation", "png")),
        *(("semantic_segmentation_labels", "json"), ("camera_params", "json")),
    )
)
REPLICATOR_FILES = ("states.csv", *FRAME_FILES)
SEALED_MEMBERS = ("manifest.json", "arrays.safetensors")
INTO = Target("here", seeds.TABLE.labels, seeds.GEOMETRY, seeds.TABLE)
ARRAYS = Arrays(dt=0.2, camera_height=0.6, camera_pitch=28.0)
BAG = Bag(
    **{f"{role}_topic": TOPICS[role] for role in ("odometry", "command", "depth", "label", "camera")},
    dt=0.2,
    tolerance=0.1,
)


@dataclass(frozen=True)
class Fuzzed:
    """A parser, and valid files that it takes."""

    parse: Callable[[bytes, Path], None]  # in a folder of its own, which is empty
    seeds: Callable[[], Iterator[bytes]]

    def takes(self, data: bytes, folder: Path) -> bool:
        """Whether these bytes are taken; False for a documented error, and all else is let out."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", CalibrationWarning)
            try:
                self.parse(data, folder)
            except OcularError:
                return False
        return True


def _write(folder: Path, names: Sequence[str], pieces: Sequence[bytes]) -> Path:
    """The files that are there."""
    for name, piece in zip(names, pieces, strict=False):
        if piece != ABSENT:
            (folder / name).write_bytes(piece)
    return folder


def _import(importer: Importer, path: Path) -> None:
    """All that an import does before it writes."""
    recording = importer.plan(path, INTO)
    if not len(recording.steps):  # said before anything is read
        raise InputError(f"nothing can be used of {path}")
    recording.read(slice(0, min(MOST_ROWS, len(recording.steps))))


def _arrays(data: bytes, folder: Path) -> None:
    kind, *pieces = split(data)
    archive = folder / "logs.npz"
    if kind == b"folder":
        _import(ARRAYS, _write(folder, ARRAY_FILES, pieces))
        return
    if kind == b"npz":
        present = [(n, p) for n, p in zip(ARRAY_FILES, pieces, strict=False) if p != ABSENT]
        archive.write_bytes(_zip(present))
    else:
        archive.write_bytes(data)
    _import(ARRAYS, archive)


def _bag_1(data: bytes, folder: Path) -> None:
    bag = folder / "logs.bag"
    bag.write_bytes(data)
    list_topics(bag)
    _import(BAG, bag)


def _bag_2(data: bytes, folder: Path) -> None:
    _write(folder, BAG_FILES, split(data))
    list_topics(folder)
    _import(BAG, folder)


def _replicator(data: bytes, folder: Path) -> None:
    _import(Replicator(), _write(folder, REPLICATOR_FILES, split(data)))


def _sealed(data: bytes, folder: Path) -> None:
    kind, *pieces = split(data)
    if kind == b"forged":  # the seal is right, the content may lie
        length = len(b"ocular sealed sha256 ") + 64
        body = _zip(list(zip(SEALED_MEMBERS, pieces, strict=False)), comment=bytes(length))[:-length]
        data = body + b"ocular sealed sha256 " + hashlib.sha256(body).hexdigest().encode()
    (folder / "robot.ocular").write_bytes(data)
    load(folder / "robot.ocular")


def _members(data: bytes) -> list[bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [archive.read(name) for name in SEALED_MEMBERS]


def _zip(members: Sequence[tuple[str, bytes]], comment: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content)
        archive.comment = comment
    return buffer.getvalue()


def _toml(data: bytes, folder: Path) -> None:
    kind, *pieces = split(data)
    _write(folder, ("file.toml", "map.png"), pieces or [data])
    read: dict[bytes, Callable[[Path], object]] = {b"model": load_robot, b"classes": load_classes}
    read.get(kind, load_map)(folder / "file.toml")


TARGETS = {
    "importer_arrays": Fuzzed(_arrays, lambda: seeds.array_seeds(ARRAY_FILES)),
    "importer_bag_ros1": Fuzzed(_bag_1, lambda: seeds.bag_seeds(1)),
    "importer_bag_ros2": Fuzzed(_bag_2, lambda: seeds.bag_seeds(2, BAG_FILES)),
    "importer_replicator": Fuzzed(_replicator, lambda: seeds.replicator_seeds(REPLICATOR_FILES)),
    "sealed_file": Fuzzed(_sealed, lambda: seeds.sealed_seeds(_members)),
    "toml_file": Fuzzed(_toml, seeds.toml_seeds),
}
