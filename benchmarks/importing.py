"""Import of 640 x 480 image pairs: read, matched, projected and stored, from every format."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np

from benchmarks.timing import Comparison, compare
from ocular.data.importers import Arrays, Bag, Importer, Replicator, Target, import_recordings
from ocular.footprint import Camera, Intrinsics, Projector, load_classes, project_reference
from ocular.worlds.junction import CAMERA, CLASSES, GEOMETRY
from tests.support.bags import TOPICS, write_bag
from tests.support.logs import DT, events_of, record, write_arrays, write_classes, write_replicator

PAIRS = 100
ROUNDS = 5
VGA = Camera(
    Intrinsics.of_field_of_view(640, 480, np.deg2rad(62.0), np.deg2rad(94.0)), CAMERA.height, CAMERA.pitch
)


def import_pairs(report: Callable[[str, str, float, int], None]) -> Comparison:
    """A whole import of a ROS 2 bag, against the same with Project() in plain NumPy; then the other formats."""
    with _logs() as (sources, folder, target_of):

        def run(name: str) -> None:
            importer, path, classes = sources[name]
            target = target_of(classes)
            with tempfile.TemporaryDirectory(dir=folder) as fresh:
                import_recordings(Path(fresh) / "store", target, [importer.plan(path, target)])

        def with_numpy() -> None:
            with patch.object(Projector, "__call__", project_reference):
                run("bag")

        found = compare(
            "import_pairs",
            lambda: run("bag"),
            with_numpy,
            "Project() in NumPy",
            unit="ms",
            per=1e-3 * PAIRS,
            rounds=ROUNDS,
        )
        report("import_pairs_per_second_bag", ">=200", 1e3 / found.ours, ROUNDS * PAIRS)
        for name in ("arrays", "replicator"):
            report(f"import_pairs_per_second_{name}", ">=200", PAIRS / _seconds(run, name), ROUNDS * PAIRS)
    return found


def _seconds(run: Callable[[str], None], name: str) -> float:
    run(name)
    spent = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run(name)
        spent.append(time.perf_counter() - start)
    return median(spent)


@contextmanager
def _logs() -> Iterator[tuple[dict[str, tuple[Importer, Path, Path]], Path, Callable[[Path], Target]]]:
    """Recordings of a road by format, in a folder that vanishes."""
    with tempfile.TemporaryDirectory() as name:
        folder, logs = Path(name), record("icyMain", PAIRS, VGA)
        topics = {f"{r}_topic": TOPICS[r] for r in ("odometry", "command", "depth", "label", "camera")}
        by_name = write_classes(folder / "classes.toml")
        by_number = write_classes(folder / "numbers.toml", by_number=logs.classes)
        standing = {"camera_height": VGA.height, "camera_pitch": float(np.rad2deg(VGA.pitch))}
        sources = {
            "bag": (
                Bag(**topics, dt=DT, tolerance=DT / 2),
                write_bag(folder / "bag", events_of(logs), 2),
                by_number,
            ),
            "arrays": (Arrays(**standing), write_arrays(folder / "road.npz", logs), by_name),
            "replicator": (Replicator(), write_replicator(folder / "road", logs), by_name),
        }

        def target(classes: Path) -> Target:
            return Target("road", CLASSES.labels, GEOMETRY, load_classes(classes, CLASSES.labels))

        yield sources, folder, target
