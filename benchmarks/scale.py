"""What a transition costs at each stage of a calibration by parts: what docs/scale.md reckons with.

Processor seconds of one core, so that other work on the machine matters little: python -m benchmarks.scale
writes results/scale.csv.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ocular.calibrators import Calibration
from ocular.calibrators.features import features
from ocular.data import TransitionStore
from ocular.encoding import untrained
from ocular.evaluation.rows import Provenance, RowFile
from ocular.experiments.camera import CameraSettings
from ocular.experiments.jobs import gibibytes
from ocular.experiments.planar import PlanarSettings
from ocular.experiments.workshop import CalibrationSettings
from ocular.partition import TreePartition, TreeSettings
from ocular.seeds import stream
from ocular.worlds.collect import CALIBRATION_GRID, GridSpec, collect_transitions

RESULTS = Path("results")
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


@dataclass(frozen=True, slots=True)
class Cost:
    """What one thing costs, at one stage."""

    logs: str
    stage: str
    cost: float
    unit: str  # bytes, or µs
    per: str
    count: int  # how many it was measured on


def per_transition(what: str, settings: CalibrationSettings, map_name: str, grid: GridSpec) -> Iterator[Cost]:
    """Bytes on disk, and microseconds of each stage."""
    truth = settings.world(map_name)
    logs = collect_transitions(truth, grid, stream(0, "scale"))
    n, m = len(logs), len(logs.inputs.footprints)
    with tempfile.TemporaryDirectory() as folder:
        footprints = logs.inputs.footprints
        store = TransitionStore.create(Path(folder, "store"), footprints.labels, footprints.geometry, 4, 2)
        store.append("part", logs)
        total = {True: 0, False: 0}
        for file in Path(folder, "store", "part").rglob("*"):
            total["footprints" in file.parts] += file.stat().st_size if file.is_file() else 0
        yield Cost(what, "store footprints", total[True] / m, "bytes", "footprint", m)
        yield Cost(what, "store the rest", total[False] / n, "bytes", "transition", n)
        yield spent(what, "read a part", seconds(store.load), m, "footprint")
    encoder = untrained(footprints, seed=0)
    blank = Calibration("splitcp", truth.nominal, truth.state_cov)
    body = features("body")
    sums = seconds(lambda: [sha256(cells.tobytes()) for cells in footprints.cells])
    yield spent(what, "checksums", sums, m, "footprint")
    yield spent(what, "encode", seconds(lambda: encoder.encode(footprints.cells)), m, "footprint")
    yield spent(what, "score", seconds(lambda: blank.score(logs)), n, "transition")
    yield spent(what, "features", seconds(lambda: body(logs.inputs)), n, "transition")


def spent(logs: str, stage: str, time_spent: float, count: int, per: str) -> Cost:
    """Seconds for many as microseconds for one."""
    return Cost(logs, stage, 1e6 * time_spent / count, "µs", per, count)


def trees() -> Iterator[Cost]:
    """How growing and applying a tree goes up with the number of transitions."""
    rng = np.random.default_rng(0)
    for n in TREE_SIZES:
        rows = rng.standard_normal((n, 9))
        targets = np.abs(rows[:, 0] * rows[:, 3]) + rng.standard_normal(n) ** 2
        start = time.process_time()
        tree = TreePartition.fit(rows, targets, TreeSettings(), seed=0)
        yield spent(f"{n} rows", "grow a tree", time.process_time() - start, n, "row")
        applied = seconds(lambda tree=tree, rows=rows: tree.apply(rows))
        yield spent(f"{n} rows", "apply a tree", applied, n, "row")


def main() -> None:
    """Measure, print and write."""
    rows = RowFile(RESULTS / "scale.csv", ("logs", "stage"), tuple(field.name for field in fields(Cost)))
    noisy = CameraSettings(camera_noise=0.05)
    done: list[str] = []
    with Provenance(RESULTS / "scale.provenance.json", {}).start(workers=1) as record:
        for cost in chain(
            per_transition("planar", PlanarSettings(), "S", CALIBRATION_GRID),
            per_transition("camera", CameraSettings(), "icySide", GridSpec(8, 4, 4)),
            per_transition("camera with 5 % noise", noisy, "icySide", GridSpec(8, 4, 4)),
            trees(),
        ):
            print(f"{cost.logs}: {cost.stage}: {cost.cost:.3g} {cost.unit} a {cost.per}", flush=True)
            done.append(f"{cost.logs}: {cost.stage}")
            record.record(done, gibibytes({}))
            rows.add([asdict(cost)])


if __name__ == "__main__":
    main()
