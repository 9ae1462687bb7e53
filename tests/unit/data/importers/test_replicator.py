import json

import numpy as np
import pytest
from PIL import Image

from ocular.data.importers import Replicator, Target, import_recordings
from ocular.data.importers.replicator_files import legend, read_camera, read_semantics
from ocular.errors import DamagedFileError, InputError
from ocular.footprint import ClassTable
from ocular.records import FootprintGeometry

LABELS = ("OCCUPIED", "UNKNOWN", "ROAD")
TARGET = Target(
    "yard",
    LABELS,
    FootprintGeometry(angles=8, ranges=8, field_of_view=0.8, max_range=4.0),
    ClassTable({"road": "ROAD", "wall": "OCCUPIED"}, LABELS),
)
WIDTH, HEIGHT, FOCAL = 32, 24, 20.0
ROAD, NOTHING = (10, 20, 30, 255), (0, 0, 0, 0)
UP = 1.5  # [m]


def camera(*, pitch=0.8, yaw=0.0, roll=0.0, shift=(0.0, 0.0), scale=1.0, **others):
    """Rows of the pose are the camera's axes in the world."""
    ahead = np.array([np.cos(pitch) * np.cos(yaw), np.cos(pitch) * np.sin(yaw), -np.sin(pitch)])
    right = np.array([np.sin(yaw), -np.cos(yaw), 0.0])
    up = np.cross(right, ahead)
    right, up = np.cos(roll) * right + np.sin(roll) * up, np.cos(roll) * up - np.sin(roll) * right
    pose = np.eye(4)
    pose[:3, :3], pose[3, :3] = [right, up, -ahead], np.array([5.0, -3.0, UP]) / scale
    projection = np.zeros((4, 4))
    projection[0, 0], projection[1, 1] = 2 * FOCAL / WIDTH, 2 * FOCAL / HEIGHT
    projection[2, :4] = [*shift, 0.0, -1.0]
    return {
        "cameraModel": "pinhole",
        "cameraProjection": projection.ravel().tolist(),
        "cameraViewTransform": np.linalg.inv(pose).ravel().tolist(),
        "metersPerSceneUnit": scale,
        "renderProductResolution": [WIDTH, HEIGHT],
        **others,
    }


def ground(pitch=0.8):
    down = (np.arange(HEIGHT) + 0.5 - HEIGHT / 2) / FOCAL
    fall = np.sin(pitch) + down * np.cos(pitch)
    depth = np.where(fall > 0, UP / np.where(fall > 0, fall, 1), 0.0)
    return np.repeat(depth[:, None], WIDTH, axis=1).astype(np.float32)


def frame(folder, name, *, pixels=None, labels=None, depth=None, params=None):
    pixels = np.full((HEIGHT, WIDTH, 4), ROAD, np.uint8) if pixels is None else pixels
    labels = (
        {str(ROAD): {"class": "road"}, str(NOTHING): {"class": "BACKGROUND"}} if labels is None else labels
    )
    np.save(folder / f"distance_to_image_plane_{name}.npy", ground() if depth is None else depth)
    Image.fromarray(pixels).save(folder / f"semantic_segmentation_{name}.png")
    (folder / f"semantic_segmentation_labels_{name}.json").write_text(json.dumps(labels))
    (folder / f"camera_params_{name}.json").write_text(json.dumps(params or camera()))


HEADER = "x,y,vx,vy,ax,ay,next_x,next_y,next_vx,next_vy,frame"


def table(folder, rows, header=HEADER):
    (folder / "states.csv").write_text("\n".join([header, *rows]) + "\n")


def row(frame, x="1.0"):
    return f"{x},2,0.5,0.1,0.3,0.4,1.1,2.1,0.6,0.2,{frame}"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "yard").mkdir()
    for i in range(4):
        frame(tmp_path / "yard", f"{i:04d}")
    table(tmp_path / "yard", [row(i) for i in range(4)])
    return tmp_path / "yard"


def cells(folder, options=None):
    recording = (options or Replicator()).plan(folder, TARGET)
    transitions, dropped = recording.read(slice(0, len(recording.steps)))
    inputs = transitions.inputs
    return inputs.footprints.cells[inputs.footprint_index], dropped


def test_a_frame_of_road(folder):
    recording = Replicator().plan(folder, TARGET)
    assert recording.steps.states[0].tolist() == [1.0, 2.0, 0.5, 0.1]
    assert recording.steps.actions[0].tolist() == [0.3, 0.4]
    assert recording.steps.next_states[0].tolist() == [1.1, 2.1, 0.6, 0.2]
    assert recording.steps.headings[0] == np.arctan2(0.1, 0.5)
    seen, dropped = cells(folder)
    assert not dropped
    assert (seen == LABELS.index("ROAD")).mean() > 0.3


@pytest.mark.parametrize("yaw", [0.0, 2.0, -3.0])
def test_cameras_are_read_wherever_they_look(yaw):
    for pitch in (0.2, 0.8, 1.5):
        for scale in (1.0, 0.01):
            params = json.dumps(camera(pitch=pitch, yaw=yaw, scale=scale, shift=(0.1, -0.2)))
            eye = read_camera("params.json", params, ground=0.25)
            assert eye.height == pytest.approx(UP - 0.25, abs=1e-3)
            assert eye.pitch == pytest.approx(pitch, abs=1e-4)
            assert (eye.intrinsics.fx, eye.intrinsics.fy) == pytest.approx((FOCAL, FOCAL))
            # The matrix sends what is seen at the principal point straight ahead: (0, 0, -1) before it.
            projection = np.array(camera(shift=(0.1, -0.2))["cameraProjection"]).reshape(4, 4)
            x, y, _, w = np.array([0.0, 0.0, -1.0, 1.0]) @ projection
            at = (x / w + 1) / 2 * WIDTH, (1 - y / w) / 2 * HEIGHT
            assert (eye.intrinsics.cx, eye.intrinsics.cy) == pytest.approx(at)


def test_ids_and_colours_say_the_same(folder):
    half = np.arange(WIDTH) < WIDTH // 2
    colours = np.where(half[None, :, None], np.array(ROAD), np.array(NOTHING)).astype(np.uint8)
    ids = np.where(half, 3, 700).astype(np.uint16)[None].repeat(HEIGHT, axis=0)
    wide = ids.astype("<u4").view(np.uint8).reshape(HEIGHT, WIDTH, 4)
    by_id = {"3": {"class": "road"}, "700": {"class": "UNLABELLED"}}
    frame(folder, "0001", pixels=colours.repeat(HEIGHT, axis=0))
    frame(folder, "0002", pixels=ids, labels=by_id)
    frame(folder, "0003", pixels=wide, labels=by_id)
    seen, dropped = cells(folder)
    assert not dropped
    assert (seen[1] == LABELS.index("ROAD")).mean() < (seen[0] == LABELS.index("ROAD")).mean() - 0.1
    np.testing.assert_array_equal(seen[1], seen[2])
    np.testing.assert_array_equal(seen[1], seen[3])


def test_frames_that_lack_files_or_are_damaged_are_counted(folder, tmp_path):
    for name in ("0004", "0005", "0006", "0007", "0008", "0009", "0010"):
        frame(folder, name)
    (folder / "distance_to_image_plane_0001.npy").unlink()
    (folder / "camera_params_0002.json").unlink()
    png = folder / "semantic_segmentation_0004.png"
    png.write_bytes(png.read_bytes()[:60])
    npy = folder / "distance_to_image_plane_0005.npy"
    npy.write_bytes(npy.read_bytes()[:500])
    frame(folder, "0006", labels={"(1, 2, 3, 255)": {"class": "road"}})
    frame(folder, "0007", params=camera(cameraModel="fisheyePolynomial"))
    frame(folder, "0008", params=camera(roll=0.2))
    frame(folder, "0009", depth=ground()[:-1])
    table(folder, [row(i) for i in range(13)] + [row(10, x="nan"), row(10, x="")])
    recording = Replicator().plan(folder, TARGET)
    (result,) = import_recordings(tmp_path / "store", TARGET, [recording])
    assert result.dropped == {
        "no depth file of its frame": 3,
        "states not finite": 2,
        "no camera file of its frame": 1,
        "semantic image that cannot be read": 1,
        "depth image that cannot be read": 1,
        "semantic image with numbers or colours that its labels file lacks": 1,
        "camera of the model 'fisheyePolynomial'; allowed is 'pinhole'": 1,
        "camera rolled by more than 3 deg": 1,
        "images of (23, 32) and (24, 32) pixels, unlike the camera's (24, 32)": 1,
    }
    assert result.used == 3
    assert result.steps == 15


def test_classes_of_the_labels_must_be_in_the_table(folder):
    frame(folder, "0003", labels={str(ROAD): {"class": "lava"}})
    with pytest.raises(InputError, match="the class 'lava' is not in the table"):
        Replicator().plan(folder, TARGET)


def test_runs_follow_each_other_where_no_next_state_is_given(folder):
    header = "time,run,x,y,vx,vy,ax,ay"
    table(folder, [f"{t},{run},1,2,0.5,0.1,0,0" for t, run in ((0, 1), (0.2, 1), (0.9, 1), (1.1, 2))], header)
    recording = Replicator(dt=0.2).plan(folder, TARGET)
    assert recording.steps.views.tolist() == [0]
    assert recording.account.dropped == {"next row not 0.2 s later, to 0.01 s": 1}


def test_other_layouts_of_folders(folder, tmp_path):
    """Several cameras: a folder each, in it a folder a kind. Sequences: two numbers a frame."""
    split = tmp_path / "split"
    for file in sorted(folder.glob("*_*.*")):
        kind = file.stem.rpartition("_")[0].replace("_labels", "")
        (split / kind).mkdir(parents=True, exist_ok=True)
        name = file.name.replace("_000", "_1_000")
        (split / kind / name).write_bytes(file.read_bytes())
    table(split, [row(f"1_000{i}") for i in range(4)])
    np.testing.assert_array_equal(cells(split)[0], cells(folder)[0])
    np.savez(
        tmp_path / "states.npz", states=np.ones((4, 3)), actions=np.ones((4, 2)), next_states=np.ones((4, 3))
    )
    recording = Replicator(table=tmp_path / "states.npz").plan(split, TARGET)
    assert recording.steps.states.shape == (4, 3)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda f: (f / "states.csv").unlink(), "neither states.csv nor states.npz"),
        (lambda f: table(f, ["1,2,3"], "x,y,vx"), "lacks vy, ax, ay; it has the columns x, y, vx"),
        (lambda f: table(f, ["1,2"]), "line 2, has 2 entries; allowed are 11"),
        (lambda f: table(f, []), "has 1 lines"),
        (lambda f: table(f, [row(0, x="a")]), "the column x has no number"),
        (lambda f: table(f, [row(0)[:-2]], "x,y,vx,vy,ax,ay,next_x,next_y,next_vx,next_vy"), "1 rows for 4"),
        (lambda f: table(f, [row("a") for _ in range(4)], HEADER + ",heading"), "line 2, has 11"),
        (
            lambda f: table(f, [row(i) + ",x" for i in range(4)], HEADER + ",heading"),
            "column heading has",
        ),
        (lambda f: [p.unlink() for p in f.glob("distance*")], "has no distance_to_image_plane and no"),
        (lambda f: (f / "semantic_segmentation_labels_0000.json").write_text("[]"), "cannot be read"),
    ],
)
def test_bad_folders_are_refused(folder, spoil, complaint):
    spoil(folder)
    with pytest.raises((InputError, DamagedFileError), match=complaint):
        Replicator().plan(folder, TARGET)


def test_bad_files_say_so(tmp_path):
    with pytest.raises(DamagedFileError, match=r"labels\.json cannot be read"):
        legend(tmp_path / "labels.json", '{"(1, 2)": {"class": "road"}}', "class")
    with pytest.raises(DamagedFileError, match='"terrain": "kerb"'):
        legend(tmp_path / "labels.json", '{"3": {"class": "road"}}', "terrain")
    for number in ("-1", str(2**32)):
        with pytest.raises(DamagedFileError, match="cannot be read"):
            legend(tmp_path / "labels.json", json.dumps({number: {"class": "road"}}), "class")
    with pytest.raises(DamagedFileError, match="cannot be read"):
        legend(tmp_path / "labels.json", "[" * 100_000, "class")
    with pytest.raises(DamagedFileError, match="cameraProjection"):
        read_camera(tmp_path / "p.json", "{}", 0.0)
    for spoilt, complaint in (
        ({"renderProductResolution": [10**400, 24]}, "cannot be read"),
        ({"metersPerSceneUnit": 1e999}, "cannot be read"),
        ({"cameraProjection": [1e999] * 16}, "cannot be read"),
        ({"cameraProjection": [1e308] * 16}, "focal lengths from"),
        ({"metersPerSceneUnit": 1e308}, "allowed are at most"),
    ):
        with pytest.raises((InputError, DamagedFileError), match=complaint):
            read_camera(tmp_path / "p.json", json.dumps(camera(**spoilt)), 0.0)
    assert read_semantics(tmp_path / "absent.png") is None


def test_a_frame_that_is_no_number_has_no_files(folder):
    table(folder, [row(frame) for frame in ("inf", "nan", "1", "1e300")])
    recording = Replicator().plan(folder, TARGET)
    assert recording.steps.views.tolist() == [2]
