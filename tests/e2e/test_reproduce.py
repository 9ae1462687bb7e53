"""The coverage reproduction, whole but tiny: same rows whatever the workers, and after any kill."""

import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from ocular.encoding import TrainingSettings
from ocular.errors import InputError
from ocular.evaluation.rows import read_rows
from ocular.experiments.planar import PlanarSettings
from ocular.experiments.planar_coverage import CoverageSettings, reproduce_coverage
from ocular.experiments.workshop import Workshop
from ocular.worlds.collect import GridSpec

TINY = CoverageSettings(
    PlanarSettings(
        grid=GridSpec(positions=16, velocities=4, actions=2),
        training=TrainingSettings(epochs=1, most_footprints=40),
    ),
    test_grid=GridSpec(positions=8, velocities=2, actions=2),
    particles=50,
)


def run(folder: Path, workers: int, settings: CoverageSettings = TINY, maps=("H",)) -> list[Path]:
    return reproduce_coverage(settings, "main", maps, folder / "results", folder / "work", workers)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    run(folder, workers=1)
    return folder


def test_rows_are_complete_and_plausible(finished):
    rows = read_rows(finished / "results" / "planar" / "coverage.csv")
    assert {(r["method"], r["region"]) for r in rows} == {
        (method, region)
        for method in ("nocp", "splitcp", "lucca", "ocular", "ocular_same_map", "ocular_no_encode")
        for region in ("ID", "OOD")
    }
    found = {(r["method"], r["region"]): float(r["coverage"]) for r in rows}
    assert abs(found["nocp", "ID"] - 0.9) < 0.02
    assert found["nocp", "OOD"] < 0.2
    assert found["splitcp", "ID"] > 0.99
    assert found["ocular", "ID"] > 0.85


def test_two_workers_give_the_same_bytes_and_nothing_is_done_twice(finished, tmp_path):
    (csv, *_) = run(tmp_path, workers=2)
    assert csv.read_bytes() == (finished / "results" / "planar" / "coverage.csv").read_bytes()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    run(tmp_path, workers=2)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_killed_run_goes_on_to_the_same_bytes(finished, tmp_path):
    program = textwrap.dedent(
        """
        import os, sys, threading
        from pathlib import Path
        from tests.e2e.test_reproduce import run
        threading.Timer(float(sys.argv[2]), os._exit, [137]).start()
        run(Path(sys.argv[1]), workers=1)
        os._exit(0)
        """
    )
    for seconds in ("2.5", "3.5", "5", "60"):
        subprocess.run([sys.executable, "-c", program, str(tmp_path), seconds], check=False, timeout=120)
    csv = tmp_path / "results" / "planar" / "coverage.csv"
    assert csv.read_bytes() == (finished / "results" / "planar" / "coverage.csv").read_bytes()


def test_rows_of_another_configuration_are_not_mixed_in(finished):
    with pytest.raises(InputError, match="particles was 50, now 60"):
        run(finished, workers=1, settings=replace(TINY, particles=60))


def test_no_method_sees_the_map_that_it_must_not(finished):
    workshop = Workshop.under(finished / "work", TINY.calibration)
    data_for = TINY.calibration.data_for
    assert data_for("H", "ocular") == data_for("H", "ocular_no_encode") == ("S", "L", "U")
    assert workshop.calibration("H", "ocular").provenance["environments"] == ["S", "L", "U"]
    for method in ("nocp", "splitcp", "lucca", "ocular_same_map"):
        assert workshop.calibration("H", method).provenance["environments"] == ["H"]
