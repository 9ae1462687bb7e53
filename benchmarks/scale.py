"""What a transition costs at each stage of a calibration by parts: what docs/scale.md reckons with.

Processor seconds of one core, so that other work on the machine matters little: python -m benchmarks.scale
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ocular.calibrators import Calibration
from ocular.calibrators.features import features
from ocular.data import TransitionStore
from ocular.encoding import untrained
from ocular.experiments.camera import CameraSettings
from ocular.experiments.planar import PlanarSettings
from ocular.experiments.workshop import CalibrationSettings
from ocular.partition import TreePartition, TreeSettings
from ocular.seeds import stream
from ocular.worlds.collect import CALIBRATION_GRID, GridSpec, collect_transitions

TREE_SIZES = (100_000, 400_000, 1_600_000)


def seconds(work: Callable[[], Any], times: int = 3) -> float:
    """Processor seconds, the least of a few trials; the first one compiles."""
    work()
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def per_transition(what: str, settings: CalibrationSettings, map_name: str, grid: GridSpec) -> None:
    """Bytes on disk, and microseconds of each stage."""
    truth = settings.world(map_name)
    logs = collect_transitions(truth, grid, stream(0, "scale"))
    n, m = len(logs), len(logs.inputs.footprints)
    print(f"{what}: {n:,} transitions, {m:,} distinct footprints")
    with tempfile.TemporaryDirectory() as folder:
        footprints = logs.inputs.footprints
        store = TransitionStore.create(Path(folder, "store"), footprints.labels, footprints.geometry, 4, 2)
        store.append("part", logs)
        total = {True: 0, False: 0}
        for file in Path(folder, "store", "part").rglob("*"):
            total["footprints" in file.parts] += file.stat().st_size if file.is_file() else 0
        print(f"  on disk     {total[True] / m:8.1f} bytes a footprint")
        print(f"              {total[False] / n:8.1f} bytes a transition")
        tell("load", seconds(store.load), m, "footprint")
    encoder = untrained(footprints, seed=0)
    blank = Calibration("splitcp", truth.nominal, truth.state_cov)
    body = features("body")
    tell(
        "checksums", seconds(lambda: [sha256(cells.tobytes()) for cells in footprints.cells]), m, "footprint"
    )
    tell("encode", seconds(lambda: encoder.encode(footprints.cells)), m, "footprint")
    tell("score", seconds(lambda: blank.score(logs)), n, "transition")
    tell("features", seconds(lambda: body(logs.inputs)), n, "transition")


def tell(stage: str, spent: float, count: int, what: str) -> None:
    """One line."""
    print(f"  {stage:10}  {1e6 * spent / count:8.2f} us a {what}", flush=True)


def trees() -> None:
    """How growing and applying a tree goes up with the number of transitions."""
    rng = np.random.default_rng(0)
    for n in TREE_SIZES:
        rows = rng.standard_normal((n, 9))
        targets = np.abs(rows[:, 0] * rows[:, 3]) + rng.standard_normal(n) ** 2
        start = time.process_time()
        tree = TreePartition.fit(rows, targets, TreeSettings(), seed=0)
        tell(f"tree {n:,}", time.process_time() - start, n, "row")
        tell("apply", seconds(lambda tree=tree, rows=rows: tree.apply(rows)), n, "row")


if __name__ == "__main__":
    per_transition("planar", PlanarSettings(), "S", CALIBRATION_GRID)
    per_transition("camera", CameraSettings(), "icySide", GridSpec(8, 4, 4))
    per_transition("camera, 5 % noise", CameraSettings(camera_noise=0.05), "icySide", GridSpec(8, 4, 4))
    trees()
