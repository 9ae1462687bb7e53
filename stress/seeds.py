"""Small valid files that fuzzing starts from, made as tests make theirs: a few steps, tiny images."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image
from rosbags.rosbag2 import StoragePlugin
from tests.support.bags import write_bag
from tests.support.logs import Logs, events_of, write_arrays, write_replicator

from ocular.calibrators import save
from ocular.calibrators.ocular import ocular
from ocular.dynamics.linear import double_integrator
from ocular.encoding.untrained import untrained
from ocular.footprint import Camera, ClassTable, Intrinsics
from ocular.partition import TreeSettings
from ocular.records import FootprintGeometry, Footprints, Inputs, Transitions

GEOMETRY = FootprintGeometry(angles=8, ranges=8, field_of_view=2.0, max_range=2.0)
CLASSES = ("kerb", "road", "ice")
LABELS = ("OCCUPIED", "UNKNOWN", "NOMINAL", "LOW_FRICTION")
LABEL_OF = {"kerb": "OCCUPIED", "road": "NOMINAL", "ice": "LOW_FRICTION", "1": "NOMINAL", "2": "OCCUPIED"}
TABLE = ClassTable(LABEL_OF, LABELS, missing="unknown")
CAMERA = Camera(Intrinsics(width=8, height=6, fx=5.0, fy=5.0, cx=4.0, cy=3.0), height=0.6, pitch=0.5)
SEPARATOR = b"\xf0FILE\xf0"
ABSENT = b"-"


def join(pieces: list[bytes]) -> bytes:
    """Several files in one input; a piece that grows or shrinks leaves the others as they are."""
    return SEPARATOR.join(pieces)


def split(data: bytes) -> list[bytes]:
    """The inverse of join."""
    return data.split(SEPARATOR)


def folder_pieces(folder: Path, names: tuple[str, ...]) -> list[bytes]:
    """The contents of these files, in their order."""
    return [(folder / name).read_bytes() if (folder / name).exists() else ABSENT for name in names]


def small_logs(steps: int = 6) -> Logs:
    """Images in which something of every class is near."""
    rng = np.random.default_rng(0)
    states = rng.uniform(0.5, 1.5, (steps, 4))
    size = (steps, CAMERA.intrinsics.height, CAMERA.intrinsics.width)
    inputs = Inputs(
        states=states,
        actions=rng.uniform(-0.9, 0.9, (steps, 2)),
        headings=rng.uniform(-3.0, 3.0, steps),
        footprint_index=np.arange(steps),
        footprints=Footprints(rng.integers(0, 4, (steps, 8, 8), np.uint8), LABELS, GEOMETRY),
    )
    here = np.zeros(steps, np.int64)
    world: Any = SimpleNamespace(camera=CAMERA)
    return Logs(
        world=world,
        steps=Transitions(inputs, states + 0.01 * rng.standard_normal((steps, 4)), here, ("here",)),
        depths=rng.uniform(0.3, 3.0, size).astype(np.float32),
        semantics=rng.integers(0, len(CLASSES), size).astype(np.uint8),
        classes=CLASSES,
    )


def ready_arrays() -> dict[str, np.ndarray[Any, Any]]:
    """Footprints that need no projection, in two runs."""
    inputs = small_logs().steps.inputs
    return {
        "states": inputs.states,
        "actions": inputs.actions,
        "footprints": inputs.footprints.cells,
        "labels": np.array(LABELS),
        "footprint_index": inputs.footprint_index,
        "run": np.repeat([0, 1], 3),
        "time": np.tile([0.0, 0.2, 0.4], 2),
    }


def array_seeds(names: tuple[str, ...]) -> Iterator[bytes]:
    """A folder and a .npz of each kind: footprints in runs, and images."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for kind in ("ready", "images"):
            home = folder / kind
            home.mkdir()
            if kind == "ready":
                arrays = ready_arrays()
                np.savez(folder / "ready.npz", **arrays)
            else:
                with np.load(write_arrays(folder / "images.npz", small_logs(2), compressed=True)) as file:
                    arrays = dict(file)
            for name, array in arrays.items():
                np.save(home / f"{name}.npy", array)
            pieces = folder_pieces(home, names)
            yield join([b"folder", *pieces])
            yield join([b"npz", *pieces])
            yield (folder / f"{kind}.npz").read_bytes()


def bag_seeds(version: int, names: tuple[str, ...] = ()) -> Iterator[bytes]:
    """A bag of two steps: the file of ROS 1, or the files of ROS 2 in both storages."""
    with tempfile.TemporaryDirectory() as scratch:
        if version == 1:
            yield write_bag(
                Path(scratch) / "a.bag", events_of(small_logs(2), millimetres=True), 1
            ).read_bytes()
            return
        for storage in (StoragePlugin.SQLITE3, StoragePlugin.MCAP):
            folder = write_bag(Path(scratch) / storage.name, events_of(small_logs(2)), 2, storage=storage)
            for file in folder.iterdir():
                if file.suffix != ".yaml":
                    file.rename(folder / f"bag{file.suffix}")
            about = folder / "metadata.yaml"
            about.write_text(about.read_text().replace(f"{storage.name}.", "bag."))
            yield join(folder_pieces(folder, names))


def replicator_seeds(names: tuple[str, ...]) -> Iterator[bytes]:
    """A folder of two frames, with colours and with ids."""
    with tempfile.TemporaryDirectory() as scratch:
        for colours in (False, True):
            folder = write_replicator(Path(scratch) / str(colours), small_logs(2), colours=colours)
            yield join(folder_pieces(folder, names))


def sealed_seeds(parts: Callable[[bytes], list[bytes]]) -> Iterator[bytes]:
    """A calibration: the file, and what is in it."""
    rng = np.random.default_rng(0)
    many = small_logs(60).steps
    model = double_integrator(0.2, floor=1e-6)
    transitions = Transitions(
        many.inputs, model.step(rng, many.inputs.states, many.inputs.actions), many.environment, ("here",)
    )
    calibrator = ocular(untrained, tree=TreeSettings(max_depth=2, min_leaf=8))
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "a.ocular"
        save(calibrator.fit(transitions, model, 1e-3 * np.eye(4), seed=0), file)
        yield file.read_bytes()
        yield join([b"forged", *parts(file.read_bytes())])


MAP = """
size = [1.0, 1.0]
resolution = 0.1
start = [0.2, 0.2]
subgoals = [[0.8, 0.2]]
[[free]]
x = [0.1, 0.9]
y = [0.1, 0.9]
[[slippery]]
x = [0.5, 1.0]
y = [0.0, 1.0]
"""
PICTURE_MAP = """
image = "map.png"
resolution = 0.1
[legend]
"#000000" = "OCCUPIED"
"#ffffff" = "NOMINAL"
"""
MODELS = (
    """kind = "differential_drive"
dt = 0.5
wheel_radius = 0.3
baseline = 1.08
Q = [1e-3, 1e-3, 4e-3]
state_cov = 1e-4
""",
    """kind = "linear"
A = [[1.0, 0.1], [0.0, 1.0]]
B = [[0.0], [0.1]]
Q = 0.01
state_cov = [[1.0, 0.0], [0.0, 1.0]]
""",
    """kind = "double_integrator"
dt = 0.05
slip = 1.3
noise = 0.1
floor = 1e-6
""",
    """kind = "unicycle"
dt = 0.1
Q = [1e-3, 1e-3, 1e-3]
G = [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
""",
)
TABLES = '"kerb" = "OCCUPIED"\nroad = "NOMINAL"\n'


def toml_seeds() -> Iterator[bytes]:
    """Maps, models and a class table: which, and what is in the files."""
    picture, pixels = BytesIO(), np.full((6, 6, 3), 255, np.uint8)
    pixels[0] = 0
    Image.fromarray(pixels).save(picture, "png")
    yield join([b"map", MAP.encode()])
    yield join([b"map", PICTURE_MAP.encode(), picture.getvalue()])
    yield from (join([b"model", text.encode()]) for text in MODELS)
    yield join([b"classes", TABLES.encode()])
