"""Run every benchmark, or those named, and write their rows: python -m benchmarks [name ...]."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.camera import camera_step, observe_camera, project, project_tables_kept
from benchmarks.core import Task, apply, calibrate, footprint
from benchmarks.deployment import query
from benchmarks.importing import import_pairs
from benchmarks.planner import lucca_overhead, ocular_step, plain_mppi
from benchmarks.timing import Comparison
from ocular.evaluation.rows import Provenance, RowFile
from ocular.experiments.jobs import gibibytes
from ocular.experiments.limits import Limited

RESULTS = Path("results")
ROWS = RowFile(RESULTS / "benchmarks.csv", ("name",), ("name", "ours", "peer", "peer_name", "unit", "ratio"))


def benchmarks() -> dict[str, Callable[[], Comparison]]:
    """Name -> measurement."""
    made: list[Task] = []

    def task() -> Task:
        if not made:
            made.append(Task.make())
        return made[0]

    return {
        "calibrate": lambda: calibrate(task()),
        "apply": lambda: apply(task()),
        "footprint": lambda: footprint("footprint"),
        "footprint_whole_array": lambda: footprint("footprint_whole_array"),
        "ocular_step": lambda: ocular_step(report_limit),
        "plain_mppi_2048x9": lambda: plain_mppi(2048, 9),
        "plain_mppi_1024x50": lambda: plain_mppi(1024, 50),
        "lucca_overhead": lucca_overhead,
        "observe_camera": lambda: observe_camera(report_limit),
        "project": lambda: project(report_limit),
        "project_tables_kept": project_tables_kept,
        "camera_step": lambda: camera_step(report_limit),
        "query": lambda: query(task(), report_limit),
        "import_pairs": lambda: import_pairs(report_limit),
    }


def report_limit(name: str, wanted: str, got: float, trials: int) -> None:
    """A figure with a limit of its own, into results/stress.csv."""
    figure = Limited(name, wanted, got, trials)
    print(figure)
    figure.write(RESULTS)


def main(names: list[str]) -> None:
    """Measure, print and write."""
    available = benchmarks()
    unknown = sorted(set(names) - available.keys())
    if unknown:
        sys.exit(f"unknown benchmarks {unknown}; allowed are {list(available)}")
    with Provenance(RESULTS / "benchmarks.provenance.json", {}).start(workers=1) as record:
        done: list[str] = []
        for name in names or available:
            found = available[name]()
            print(
                f"{found.name}: {found.ours:.4g} {found.unit}; "
                f"{found.peer_name}: {found.peer:.4g} {found.unit}; ratio {found.ratio:.2f}",
                flush=True,
            )
            done.append(found.name)
            record.record(done, gibibytes({}))
            ROWS.add(
                [
                    {
                        **{"name": found.name, "ours": found.ours, "peer": found.peer},
                        **{"peer_name": found.peer_name, "unit": found.unit, "ratio": found.ratio},
                    }
                ]
            )


if __name__ == "__main__":
    main(sys.argv[1:])
