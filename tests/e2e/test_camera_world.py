"""The camera world from the command line, and its coverage reproduction, whole but tiny."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ocular.encoding import TrainingSettings
from ocular.evaluation.rows import read_rows
from ocular.experiments.camera import CameraSettings
from ocular.experiments.coverage import CoverageSettings, reproduce_coverage
from ocular.footprint import Projector
from ocular.worlds.collect import GridSpec, InnerGridSpec
from ocular.worlds.junction import CAMERA, CLASSES, GEOMETRY, open_junction

TINY = CoverageSettings(
    CameraSettings(
        grid=GridSpec(positions=16, velocities=2, actions=4),
        training=TrainingSettings(epochs=1, most_footprints=40),
    ),
    # The paper's velocities: the model's error on snow depends on them, and so does NoCP's coverage.
    test_grid=InnerGridSpec(positions=8, velocities=6, actions=2, max_speed=1.0, inset=2.0),
    particles=50,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("camera")


@pytest.fixture(scope="module")
def command(folder):
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = [str(Path(sys.executable).parent / "ocular"), *arguments]
        return subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=120, check=False)

    return run


def succeeds(done) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def calibration(command) -> str:
    grid = ("--positions", "8", "--velocities", "2", "--actions", "2")
    logged = succeeds(command("collect", "--world", "camera", "--map", "icySide", "--store", "logs", *grid))
    assert logged.startswith("icySide: ")
    succeeds(command("calibrate", "logs", "-o", "road.ocular", "--method", "splitcp", "--model", "camera"))
    return "road.ocular"


def test_drive_and_look_at_what_was_seen(command, calibration, folder):
    where = ("--world", "camera", "--map", "icySide", "--calibration", calibration)
    assert "of 2 subgoals" in succeeds(command("drive", *where, "--most-steps", "3", "--save", "seen"))
    seen = folder / "seen" / "seed-0"
    assert len(list(seen.glob("*.png"))) == 3 * 5
    story = json.loads((seen / "sightings.json").read_text())
    step = story["steps"][2]
    # The pictures are the very images: projected again, they give the footprint that was saved.
    depth = np.asarray(Image.open(seen / "0002-depth.png")).astype(float) / 1000
    semantics = np.asarray(Image.open(seen / "0002-semantics.png"))
    cells = Projector(CAMERA, GEOMETRY, CLASSES)(depth, semantics, story["classes"])
    saved = np.asarray(Image.open(seen / "0002-footprint.png"))[::-1]
    assert (cells == saved).mean() > 0.995  # depth is saved in whole millimetres
    world = open_junction("icySide")
    looked = world.observe(np.array([step["position"]]), np.array([step["heading"]]))[0]
    np.testing.assert_array_equal(looked, saved)
    rgb = np.asarray(Image.open(seen / "0002-rgb.png"))
    assert rgb.shape == (240, 240, 3)
    assert rgb.std() > 10
    belief = np.asarray(Image.open(seen / "0002-map.png"))
    assert (belief != story["labels"].index("UNKNOWN")).sum() > 500


def test_a_scene_is_written_changed_and_driven(command, folder):
    assert "solids; python -m mujoco.viewer" in succeeds(command("scene", "icyMain", "-o", "mine.xml"))
    path = folder / "mine.xml"
    barrel = '<geom name="cone/99" type="box" size="0.3 0.3 0.5" pos="31 40 0.5"/>'
    path.write_text(path.read_text().replace("</worldbody>", barrel + "</worldbody>"))
    assert not open_junction(path).is_free(np.array([31.0, 40.0]))
    assert open_junction("icyMain").is_free(np.array([31.0, 40.0]))


def test_bad_requests_are_one_line(command, calibration):
    for arguments, complaint in {
        ("scene", "icyNowhere", "-o", "x.xml"): "road is 'icyNowhere'; allowed are 'icyMain'",
        ("collect", "--world", "camera", "--map", "S", "--store", "x"): "there is no road 'S'",
        ("reproduce", "camera", "--map", "S"): "--map is 'S'; allowed are 'icyMain'",
        ("drive", "--map", "S", "--calibration", calibration, "--save", "x"): "in the world 'planar'",
    }.items():
        failed = command(*arguments)
        assert failed.returncode == 1
        assert complaint in failed.stderr
        assert "Traceback" not in failed.stderr


def test_the_coverage_tables_of_one_road(tmp_path):
    made = reproduce_coverage(TINY, "main", ("icySide",), tmp_path / "results", tmp_path / "work", workers=1)
    found = {(r["method"], r["region"]): float(r["coverage"]) for r in read_rows(made[0])}
    assert len(found) == 12
    assert found["nocp", "ID"] == pytest.approx(0.9, abs=0.02)
    assert found["nocp", "OOD"] == pytest.approx(0.567, abs=0.06)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    reproduce_coverage(TINY, "main", ("icySide",), tmp_path / "results", tmp_path / "work", workers=1)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before
