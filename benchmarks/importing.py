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
from tests.support.bags import TOPICS, write_bag
from tests.support.logs import DT, events_of, record, write_arrays, write_classes, write_replicator

from benchmarks.timing import Comparison
from ocular.data.importers import Arrays, Bag, Importer, Replicator, Target, import_recordings
from ocular.footprint import Camera, Intrinsics, Projector, load_classes, project_reference
from ocular.worlds.junction import CAMERA, CLASSES, GEOMETRY

PAIRS = 100
ROUNDS = 5
VGA = Camera(
    Intrinsics.of_field_of_view(640, 480, np.deg2rad(62.0), np.deg2rad(94.0)), CAMERA.height, CAMERA.pitch
)


def import_pairs(report: Callable[[str, str, float, int], None]) -> Comparison:
    """Processor time of importing a ROS 2 bag, against that with Project() in NumPy; and of other formats."""
    with _logs() as (sources, folder, target_of):

        def run(name: str) -> float:
            importer, path, classes = sources[name]
            target = target_of(classes)
            with tempfile.TemporaryDirectory(dir=folder) as fresh:
                start = time.process_time()
                import_recordings(Path(fresh) / "store", target, [importer.plan(path, target)])
                return 1e3 * (time.process_time() - start) / PAIRS

        def with_numpy() -> float:
            with patch.object(Projector, "__call__", project_reference):
                return run("bag")

        spent: dict[str, list[float]] = {"bag": [], "numpy": [], "arrays": [], "replicator": []}
        for turn in range(1 + ROUNDS):
            for name, times in spent.items():
                took = with_numpy() if name == "numpy" else run(name)
                if turn:  # the first one compiles
                    times.append(took)
    took = {name: median(times) for name, times in spent.items()}
    for name in sources:
        report(f"import_pairs_per_second_and_core_{name}", ">=200", 1e3 / took[name], ROUNDS * PAIRS)
    return Comparison(
        "import_pairs", took["bag"], took["numpy"], "Project() in NumPy", "ms of processor time"
    )


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
