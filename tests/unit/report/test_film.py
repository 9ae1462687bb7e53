"""Films keep what happened, whatever is drawn of it later; videos and recordings hold every step."""

import importlib.util
import subprocess
from dataclasses import replace

import imageio_ffmpeg
import numpy as np
import pytest

from ocular.calibrators import NoCP, SplitCP
from ocular.errors import InputError
from ocular.experiments.camera import CAMERA
from ocular.experiments.filming import filmed
from ocular.experiments.planning import drive
from ocular.footprint import LabelGrid
from ocular.planning.mppi import PlannerSettings
from ocular.records import FootprintGeometry
from ocular.report import recording
from ocular.report.film import Film, outline
from ocular.report.ground import label_colours
from ocular.report.video import HOLD, Stage, count_frames, write_video
from ocular.seeds import stream
from ocular.worlds.collect import GridSpec, collect_transitions
from ocular.worlds.junction import open_junction
from ocular.worlds.map_file import load_map
from ocular.worlds.planar import PlanarWorld

QUICK = replace(PlannerSettings(), samples=64)
STEPS = 5


@pytest.fixture(scope="module")
def truth():
    return PlanarWorld(load_map("H"))


@pytest.fixture(scope="module")
def calibrations(truth):
    logs = collect_transitions(truth, GridSpec(8, 4, 2), stream(0))
    return [c.fit(logs, truth.nominal, truth.state_cov, seed=0) for c in (NoCP(), SplitCP())]


@pytest.fixture(scope="module")
def films(truth, calibrations):
    return [filmed(truth, c, 3, planner=QUICK, most_steps=STEPS) for c in calibrations]


@pytest.fixture(scope="module")
def road():
    """Two control steps in the camera world."""
    world = open_junction("icySide")
    logs = collect_transitions(world, GridSpec(6, 2, 2), stream(0))
    calibration = NoCP().fit(logs, world.nominal, world.state_cov, seed=0)
    planner = replace(CAMERA.planner, samples=64)
    return world, filmed(world, calibration, 3, planner=planner, most_steps=2, site=CAMERA)


def test_watching_changes_nothing(truth, calibrations, films):
    for calibration, film in zip(calibrations, films, strict=True):
        unwatched = drive(truth, calibration, 3, planner=QUICK, most_steps=STEPS)
        assert film.ended().states.tobytes() == unwatched.states.tobytes()
        assert [shot.state.tolist() for shot in film.shots] == unwatched.states[:-1].tolist()


def test_shots_keep_their_own_moment(films):
    first, *_, last = films[0].shots
    assert np.count_nonzero(first.believed.labels != 1) < np.count_nonzero(last.believed.labels != 1)
    assert first.paths.shape[1:] == (QUICK.horizon + 1, 2)
    np.testing.assert_allclose(first.paths[:, 0], np.tile(first.way[0], (len(first.paths), 1)))
    assert np.isfinite(first.paths).all()
    # The zero action, from rest, goes nowhere.
    np.testing.assert_allclose(first.paths[0, -1], first.paths[0, 0], atol=0.02)
    assert len(films[1].shots[0].ellipses) == QUICK.horizon


def test_outline_reaches_to_the_last_known_cell():
    geometry = FootprintGeometry(angles=4, ranges=10, field_of_view=np.pi / 2, max_range=1.0)
    cells = np.full((4, 10), 1, np.uint8)  # all unknown
    cells[1, :6] = 0
    rim = outline(cells, ("OCCUPIED", "UNKNOWN"), geometry, np.array([2.0, 3.0]), 0.3)
    far = np.hypot(*(rim - (2.0, 3.0)).T)
    np.testing.assert_allclose(far, [0, 0, 0.6, 0, 0, 0], atol=1e-12)


def test_pictures_change_only_where_something_moves(films, truth):
    stage = Stage(films, truth.map.grid, truth.dt)
    first, again, later = stage.draw(0), stage.draw(0), stage.draw(4)
    np.testing.assert_array_equal(first, again)
    assert (first != later).any()
    end = stage.draw(STEPS)
    assert (end != later).any()
    assert first.shape[0] % 2 == first.shape[1] % 2 == 0


def test_a_video_has_every_step_and_plays(films, truth, tmp_path):
    path = tmp_path / "made" / "drive.mp4"
    seen = []
    write_video(path, films, truth.map.grid, truth.dt, seen.append)
    assert len(seen) == count_frames(films) == STEPS + HOLD
    assert [p.name for p in path.parent.iterdir()] == ["drive.mp4"]
    program = imageio_ffmpeg.get_ffmpeg_exe()
    done = subprocess.run(
        [program, "-v", "error", "-i", path, "-f", "framecrc", "-"], capture_output=True, check=True
    )
    pictures = [line for line in done.stdout.decode().splitlines() if not line.startswith("#")]
    assert len(pictures) == STEPS + HOLD


def test_what_cannot_be_filmed_is_refused(truth, calibrations, tmp_path):
    empty = Film("nocp", calibrations[0].model, truth.geometry, 1.0)
    with pytest.raises(InputError, match=r"films of \[0\] control steps"):
        write_video(tmp_path / "v.mp4", [empty], truth.map.grid, truth.dt)
    with pytest.raises(InputError, match="the drive is not over"):
        empty.ended()
    assert list(tmp_path.iterdir()) == []


def test_a_camera_shows_what_the_world_shows(road):
    film = road[1]
    assert len(film.shots) == 2
    for shot in film.shots:
        images = shot.sight.pictures(film.geometry.max_range)
        assert {image.shape for image in images.values()} == {(240, 240, 3)}
        rgb, depth, semantics = images.values()
        assert rgb.std() > 10
        assert depth[-1].mean() > 150  # the ground at the robot's feet is near
        assert depth[0].mean() < 60
        seen = {tuple(colour) for colour in semantics.reshape(-1, 3)}
        assert seen <= {tuple(colour) for colour in label_colours(shot.sight.names)}
        assert len(seen) >= 3


def test_videos_of_the_camera_world_show_its_images(road):
    world, film = road
    stage = Stage([film], world.map.grid, world.dt)
    first, second = stage.draw(0), stage.draw(1)
    rows = slice(int(0.67 * first.shape[0]), int(0.82 * first.shape[0]))
    assert (first[rows] != second[rows]).any()  # the images move with the robot
    assert len(np.unique(first[rows].reshape(-1, 3), axis=0)) > 50
    np.testing.assert_array_equal(stage.draw(2)[rows], second[rows])  # the last ones stay


@pytest.mark.skipif(importlib.util.find_spec("rerun") is None, reason="rerun-sdk, an extra, is not installed")
@pytest.mark.parametrize("where", ["map", "road"])
def test_a_recording_holds_every_step(films, truth, road, where, tmp_path):
    path = tmp_path / "drive.rrd"
    world, film = (truth, films[1]) if where == "map" else road
    told = []
    recording.write_recording(path, film, world.map.grid, world.dt, told.append)
    assert len(told) == len(film.shots)
    assert path.read_bytes()[:3] == b"RRF"
    assert path.stat().st_size > 10_000
    assert [p.name for p in tmp_path.iterdir()] == ["drive.rrd"]


def test_a_belief_is_shown_in_the_frame_of_a_later_one():
    def grid(labels, origin):
        return LabelGrid(np.array(labels, np.uint8), ("OCCUPIED", "UNKNOWN"), 0.5, origin, outside="UNKNOWN")

    shown = recording._within(grid([[0, 1]], (1.0, 2.0)), grid(np.ones((3, 4)), (0.5, 1.5)))
    np.testing.assert_array_equal(shown.labels, [[1, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1, 1]])
    assert shown.origin == (0.5, 1.5)


@pytest.mark.skipif(importlib.util.find_spec("rerun") is not None, reason="rerun-sdk is installed")
def test_a_recording_without_the_extra_says_what_to_install(films, truth, tmp_path):
    with pytest.raises(InputError, match=r"allowed is: pip install 'ocular\[rerun\]'"):
        recording.write_recording(tmp_path / "drive.rrd", films[0], truth.map.grid, truth.dt)


def test_rims_of_regions_lie_on_the_ellipse():
    rim = recording._rim((1.0, 2.0, 0.5, 0.2, 0.3)) - (1.0, 2.0)
    inverse = np.linalg.inv(np.array([[0.5, 0.2], [0.2, 0.3]]))
    np.testing.assert_allclose(np.einsum("ni,ij,nj->n", rim, inverse, rim), 1.0)
