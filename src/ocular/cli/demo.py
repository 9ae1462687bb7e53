"""`ocular demo`: the point of it all in a few minutes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Demo:
    """Coverage of six methods on one map, a drive with OCULAR beside one without, a report and a video.

    Trains for less long and tests on fewer particles than `ocular reproduce`, so its numbers are coarser.
    """

    map: str = "H"
    """A packaged map (S, L, H, U). OCULAR calibrates on the other three."""
    output: Path = Path("out/demo")
    """Folder of everything that is made."""
    workers: int = 2
    """Processes; the rows do not depend on it."""
    json: bool = False
    """Print tables and files as one JSON object."""

    def run(self) -> None:
        """Make rows, report and video, and print where they are."""
        from ocular.cli.output import print_results
        from ocular.errors import check_choice
        from ocular.evaluation.rows import read_rows
        from ocular.experiments.demo import make_rows, make_video
        from ocular.experiments.planar import MAPS
        from ocular.report import coverage_table, planning_tables
        from ocular.report.page import page
        from ocular.report.results import Results
        from ocular.sealed import atomic_write_bytes

        check_choice("--map", self.map, MAPS)
        results, report, video = (self.output / name for name in ("results", "report.html", "drive.mp4"))
        made = make_rows(self.map, results, self.output / "work", self.workers)
        make_video(video, self.map, made.films)
        atomic_write_bytes(report, page(Results.of(results)).encode())
        rows = [row for row in read_rows(made.coverage) if row["map"] == self.map]
        drives = [row for row in read_rows(made.planning) if row["map"] == self.map]
        success, _, steps, *_ = planning_tables(drives, "planar")
        tables = [coverage_table(rows, "planar", metric) for metric in ("coverage", "volume")]
        files = {"rows": [results], "report": [report], "video": [video]}
        print_results([*tables, success, steps], files, as_json=self.json)
