"""One of every file that this software reads: how to make it, and what it says once it was read and used."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ocular.calibrators import METHODS, Calibration, NoCP, load, save
from ocular.calibrators.base import LocalCalibrator
from ocular.calibrators.levels import Levels
from ocular.conformal import Region
from ocular.data import TransitionStore
from ocular.deployment.export import READER, check_export, export
from ocular.deployment.ocular_reader import Reader
from ocular.dynamics import double_integrator
from ocular.dynamics.model_file import load_robot
from ocular.dynamics.unicycle import unicycle
from ocular.encoding.untrained import untrained
from ocular.evaluation.coverage import CaseResults
from ocular.evaluation.episodes import EpisodeResult, Outcome
from ocular.evaluation.recordings import TrajectoryFile, read_cases, write_cases
from ocular.evaluation.rows import Provenance, RowFile
from ocular.footprint.classes import load_classes
from ocular.monitor import novelty
from ocular.partition import TreeSettings
from ocular.records import Floats, FootprintGeometry, Footprints, Inputs, Transitions
from ocular.worlds.map_file import load_map
from stress.edits import Place
from stress.store_edits import resealed_store

LABELS = ("OCCUPIED", "UNKNOWN", "NOMINAL")
GEOMETRY = FootprintGeometry(angles=16, ranges=8, field_of_view=2.0, max_range=0.5)
MODEL = double_integrator(0.05, floor=1e-6)


class UnsoundError(Exception):
    """What was read gives an answer that is none."""


@dataclass(frozen=True)
class Kind:
    """A file or folder, and how it is read: `read` raises, or returns everything that it says."""

    make: Callable[[Path], None]
    read: Callable[[Path], Any]
    is_sealed: bool = True  # a changed byte must be noticed
    reseal: Callable[[Path, np.random.Generator], tuple[str, bool]] | None = None  # see `edits.resealed`
    skip: tuple[Place, ...] = ()  # what the manifest says for humans only


def digest(value: Any) -> str:
    """One text for everything that a value holds."""
    told = sha256()
    for piece in _pieces(value):
        told.update(piece)
    return told.hexdigest()


def _pieces(value: Any) -> Iterator[bytes]:
    if isinstance(value, np.ndarray):
        yield f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes()
    elif is_dataclass(value):
        for field in fields(value):
            if not callable(getattr(value, field.name)) or is_dataclass(getattr(value, field.name)):
                yield from _pieces([field.name, getattr(value, field.name)])
    elif isinstance(value, dict):
        yield from _pieces([*value.items()])
    elif isinstance(value, list | tuple):
        yield f"{type(value).__name__}{len(value)}".encode()
        for item in value:
            yield from _pieces(item)
    else:
        yield repr(value).encode()


def logs(seed: int, n: int = 700) -> Transitions:
    """Random drives over random ground."""
    rng = np.random.default_rng(seed)
    states, actions = rng.uniform(-1.8, 1.8, (n, 4)), rng.uniform(-0.9, 0.9, (n, 2))
    cells = rng.integers(0, len(LABELS), (40, GEOMETRY.angles, GEOMETRY.ranges), dtype=np.uint8)
    seen = Footprints(cells, LABELS, GEOMETRY)
    headings = np.arctan2(states[:, 3], states[:, 2])
    inputs = Inputs(states, actions, headings, rng.integers(0, 40, n), seen)
    after = MODEL.step(rng, states, actions) + rng.normal(size=(n, 4)) * 0.01
    return Transitions(inputs, after, rng.integers(0, 2, n), ("north", "south"))


def calibration(method: str) -> Calibration:
    """Fitted by this method; with levels, as logs on a grid of speeds have them, if it looks at speeds."""
    calibrator = METHODS[method].make(untrained)
    if isinstance(calibrator, LocalCalibrator):
        calibrator = replace(calibrator, tree=TreeSettings(max_depth=4, min_leaf=40))
    fitted = calibrator.fit(logs(0), MODEL, 2e-5 * np.eye(4), seed=0)
    leveled = None if fitted.features is None else fitted.features.leveled
    return fitted if leveled is None else replace(fitted, levels=Levels(leveled, np.array([0.5, 1.0, 2.0])))


def another_model() -> Calibration:
    """Of a robot that steers."""
    few = logs(0, 50)
    poses = replace(few.inputs, states=few.inputs.states[:, :3])
    steps = replace(few, inputs=poses, next_states=poses.states)
    return NoCP().fit(steps, unicycle(0.1, 0.01 * np.eye(3)), 1e-4 * np.eye(3), seed=0)


def ask(known: Calibration) -> list[Floats]:
    """Scales and regions of a few steps, at two alphas."""
    rng, n, encoder = np.random.default_rng(1), 20, known.encoder
    geometry, labels = (encoder.geometry, encoder.labels) if encoder else (GEOMETRY, LABELS)
    cells = rng.integers(0, len(labels), (3, geometry.angles, geometry.ranges), dtype=np.uint8)
    states = rng.normal(size=(n, known.model.state_dim))
    actions = rng.normal(size=(n, known.model.action_dim))
    inputs = Inputs(
        states, actions, rng.normal(size=n), rng.integers(0, 3, n), Footprints(cells, labels, geometry)
    )
    answers = []
    for alpha in (0.05, 0.5):
        region: Region = known.region(inputs, alpha)
        lengths, directions = region.semi_axes()
        inside = region.contains(region.prediction.mean)
        if not inside.all():
            raise UnsoundError("a region does not hold its own centre")
        answers += [known.scale(inputs, alpha), region.threshold, lengths, directions, region.volume()]
    for answer in answers:
        if np.isnan(answer).any():
            raise UnsoundError("an answer is not a number")
    return answers


def _calibration(make: Callable[[], Calibration]) -> Kind:
    def read(path: Path) -> Any:
        known = load(path)
        return known, ask(known)

    return Kind(lambda path: save(make(), path), read, skip=(("provenance", "ocular"),))


def _novelty() -> Kind:
    def read(path: Path) -> Any:
        known = novelty.load(path)
        cells = np.random.default_rng(1).integers(
            0, len(known.labels), (3, known.geometry.angles, known.geometry.ranges), dtype=np.uint8
        )
        answers = known.p_values(cells)
        if not ((answers > 0) & (answers <= 1)).all():
            raise UnsoundError(f"p-values are {answers}")
        return known, answers

    seen = logs(0).inputs.footprints
    return Kind(lambda path: novelty.save(novelty.Novelty.fit(seen, 0), path), read)


def _trajectories() -> Kind:
    def make(path: Path) -> None:
        rng = np.random.default_rng(0)
        outcomes: tuple[Outcome, ...] = ("success", "collision")
        for episode, outcome in enumerate(outcomes):
            never = np.zeros(5, bool)
            states, actions, ones = rng.normal(size=(6, 4)), rng.normal(size=(5, 2)), np.ones(5)
            drive = EpisodeResult(outcome, 0, states, ones, actions, ones, ones, never, never, never)
            TrajectoryFile(path).add(episode, drive)

    return Kind(make, lambda path: TrajectoryFile(path).read())


def _cases() -> Kind:
    def make(path: Path) -> None:
        rng, inputs = np.random.default_rng(0), logs(0, 30).inputs
        results = {name: CaseResults(rng.random(30), rng.random(30)) for name in ("nocp", "ocular")}
        write_cases(path, inputs, rng.random(30) < 0.5, results)

    return Kind(make, read_cases)


def _store() -> Kind:
    def make(path: Path) -> None:
        store = TransitionStore.create(path, LABELS, GEOMETRY, state_dim=4, action_dim=2)
        for seed, name in enumerate(("first", "second")):
            store.append(name, logs(seed, 60))

    def read(path: Path) -> Any:
        store = TransitionStore.open(path)
        return store.shared, store.summary(), store.load()

    return Kind(make, read, reseal=resealed_store)


def _export() -> Kind:
    def make(path: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            export(calibration("ocular"), path, 0.1)

    def read(path: Path) -> Any:
        check_export(path)
        reader, some = Reader(path), logs(1, 5).inputs
        seen = some.footprints.cells[some.footprint_index]
        rows = reader.rows(some.states, some.actions, some.headings, seen)
        return reader.about, reader.arrays, reader.xi(rows), (path / READER.name).read_bytes()

    return Kind(make, read, reseal=None)


def _text(name: str, content: str, read: Callable[[Path], Any]) -> Kind:
    """A file that people write: it carries no seal, so that what it says is what holds."""
    return Kind(lambda path: (path.mkdir(), (path / name).write_text(content))[0], read, is_sealed=False)


def _map() -> Kind:
    def make(path: Path) -> None:
        path.mkdir()
        pixels = np.full((8, 12, 3), 255, np.uint8)
        pixels[0] = 0
        Image.fromarray(pixels).save(path / "hall.png")
        legend = '[legend]\n"#ffffff" = "NOMINAL"\n"#000000" = "OCCUPIED"\n'
        (path / "hall.toml").write_text(f'image = "hall.png"\nresolution = 0.1\nstart = [0.3, 0.3]\n{legend}')

    return Kind(make, lambda path: load_map(path / "hall.toml"), is_sealed=False)


def _rows() -> Kind:
    def files(path: Path) -> tuple[RowFile, Provenance]:
        return RowFile(path / "rows.csv", ("name",), ("name", "got")), Provenance(
            path / "p.json", {"seed": 1}
        )

    def make(path: Path) -> None:
        rows, provenance = files(path)
        with provenance.start(workers=1) as record:
            record.record(["row 1"], 0.1)
            rows.add([{"name": f"row {k}", "got": k / 7} for k in range(9)])

    def read(path: Path) -> Any:
        rows, provenance = files(path)
        return rows.read(), json.dumps(provenance.read())

    return Kind(make, read, is_sealed=False)


_RECTANGLES = """size = [1.0, 1.0]
resolution = 0.1
start = [0.3, 0.3]
subgoals = [[0.4, 0.4]]
[[free]]
x = [0.1, 0.9]
y = [0.1, 0.9]
[[slippery]]
x = [0.5, 0.9]
y = [0.1, 0.9]
"""
_ROBOT = """kind = "differential_drive"
dt = 0.5
wheel_radius = 0.3
baseline = 1.08
Q = [1e-3, 1e-3, 4e-3]
state_cov = [[1e-4, 0, 0], [0, 1e-4, 0], [0, 0, 1e-4]]
"""
_LINEAR = """kind = "linear"
A = [[1, 0.1], [0, 1]]
B = [[0], [0.1]]
Q = 1e-3
"""


def _robot(path: Path) -> Any:
    robot = load_robot(path / "robot.toml")
    return robot.model, robot.state_cov


KINDS: dict[str, Callable[[], Kind]] = {
    **{f"calibration {name}": partial(_calibration, partial(calibration, name)) for name in METHODS},
    "calibration of another model": partial(_calibration, another_model),
    "novelty test": _novelty,
    "trajectories": _trajectories,
    "test cases": _cases,
    "store": _store,
    "store, again": _store,
    "export": _export,
    "rectangles": lambda: _text("map.toml", _RECTANGLES, lambda path: load_map(path / "map.toml")),
    "image": _map,
    "robot": lambda: _text("robot.toml", _ROBOT, _robot),
    "linear robot": lambda: _text("robot.toml", _LINEAR, _robot),
    "classes": lambda: _text("c.toml", 'kerb = "OCCUPIED"\n', lambda path: load_classes(path / "c.toml")),
    "rows": _rows,
}
