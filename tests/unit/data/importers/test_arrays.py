import zipfile

import numpy as np
import pytest

from ocular.data.importers import Arrays, Target, import_recordings
from ocular.data.importers.columns import open_columns
from ocular.data.store import TransitionStore
from ocular.errors import DamagedFileError, InputError
from ocular.footprint import ClassTable, Intrinsics, Projector
from ocular.footprint.camera import Camera
from ocular.records import FootprintGeometry

LABELS = ("OCCUPIED", "UNKNOWN", "GRASS")
GEOMETRY = FootprintGeometry(angles=6, ranges=4, field_of_view=1.0, max_range=3.0)
TARGET = Target("yard", LABELS, GEOMETRY)


def columns(rng, n=12, **others):
    given = {
        "states": rng.normal(size=(n, 4)),
        "actions": rng.normal(size=(n, 2)),
        "next_states": rng.normal(size=(n, 4)),
        "footprints": rng.integers(0, 3, (n, 6, 4), dtype=np.uint8),
        "labels": np.array(["GRASS", "UNKNOWN", "OCCUPIED"]),
        **others,
    }
    return {name: values for name, values in given.items() if values is not None}


def saved(tmp_path, given, *, kind="npz"):
    if kind == "npz":
        np.savez(tmp_path / "logs.npz", **given)
        return tmp_path / "logs.npz"
    (tmp_path / "logs").mkdir()
    for name, values in given.items():
        np.save(tmp_path / "logs" / f"{name}.npy", values)
    return tmp_path / "logs"


def whole(recording):
    return recording.read(slice(0, len(recording.steps)))[0]


@pytest.mark.parametrize("kind", ["npz", "folder"])
def test_rows_and_labels_by_name(rng, tmp_path, kind):
    given = columns(rng)
    recording = Arrays().plan(saved(tmp_path, given, kind=kind), TARGET)
    found = whole(recording)
    np.testing.assert_array_equal(found.inputs.states, given["states"])
    np.testing.assert_array_equal(found.next_states, given["next_states"])
    np.testing.assert_array_equal(
        found.inputs.headings, np.arctan2(given["states"][:, 3], given["states"][:, 2])
    )
    cells = found.inputs.footprints.cells[found.inputs.footprint_index]
    np.testing.assert_array_equal(cells, np.array([2, 1, 0])[given["footprints"]])


def test_a_trajectory_gives_next_states_within_runs(rng, tmp_path):
    run = np.array(["a"] * 4 + ["b"] * 8)
    time = np.concatenate([np.arange(4), 100 + np.arange(8)]) * 0.1
    time[9:] += 0.5
    given = columns(rng, next_states=None, run=run, time=time)
    given["states"][:2, 2:] = 0.0  # at rest before anything is known of the heading
    given["states"][6, 2:] = 0.0  # at rest, but it moved before
    recording = Arrays(dt=0.1).plan(saved(tmp_path, given), TARGET)
    assert recording.account.dropped == {
        "next row not 0.1 s later, to 0.01 s": 1,
        "where the robot looked is not known (at rest, or not finite)": 2,
    }
    rows = recording.steps.views
    assert rows.tolist() == [2, 4, 5, 6, 7, 9, 10]
    np.testing.assert_array_equal(recording.steps.next_states, given["states"][rows + 1])
    assert recording.steps.headings[3] == np.arctan2(given["states"][5, 3], given["states"][5, 2])
    with pytest.raises(InputError, match="there are times, but no time step"):
        Arrays().plan(tmp_path / "logs.npz", TARGET)


def test_rows_that_are_not_finite_are_counted(rng, tmp_path):
    given = columns(rng)
    given["states"][1, 0] = np.nan
    given["actions"][[2, 3], 1] = np.inf
    given["next_states"][[1, 4], 3] = -np.inf
    given["footprints"][7] = 9
    recording = Arrays().plan(saved(tmp_path, given), TARGET)
    (result,) = import_recordings(tmp_path / "store", TARGET, [recording])
    assert result.dropped == {
        "states not finite": 1,
        "actions not finite": 2,
        "next states not finite": 1,
        "footprint with numbers that have no label": 1,
    }
    assert result.steps == 12 == result.used + 5


def test_poses_have_headings_and_other_states_need_them(rng, tmp_path):
    given = columns(rng, states=rng.normal(size=(12, 3)), next_states=rng.normal(size=(12, 3)))
    recording = Arrays().plan(saved(tmp_path, given), TARGET)
    np.testing.assert_array_equal(recording.steps.headings, given["states"][:, 2])
    given = columns(rng, states=rng.normal(size=(12, 5)), next_states=rng.normal(size=(12, 5)))
    with pytest.raises(InputError, match="states have 5 entries and there are no headings"):
        Arrays().plan(saved(tmp_path, given), TARGET)
    headings = rng.normal(size=12)
    recording = Arrays().plan(saved(tmp_path, {**given, "headings": headings}), TARGET)
    np.testing.assert_array_equal(recording.steps.headings, headings)


@pytest.mark.parametrize("compress", [False, True])
def test_images_are_read_row_by_row_and_projected(rng, tmp_path, compress):
    eye = Camera(Intrinsics.of_field_of_view(30, 20, 1.0, 1.2), height=0.8, pitch=0.6)
    table = ClassTable({"grass": "GRASS", "wall": "OCCUPIED"}, LABELS)
    depth = rng.uniform(0.5, 3, (5, 20, 30)).astype(np.float32)
    semantics = rng.integers(0, 2, (5, 20, 30), dtype=np.int32)
    lens = eye.intrinsics
    given = columns(
        rng,
        footprints=None,
        labels=None,
        depth=depth,
        semantics=semantics,
        classes=np.array(["grass", "wall"]),
        intrinsics=np.array([lens.fx, lens.fy, lens.cx, lens.cy]),
        footprint_index=np.arange(12) % 5,
    )
    (np.savez_compressed if compress else np.savez)(tmp_path / "logs.npz", **given)
    target = Target("yard", LABELS, GEOMETRY, table)
    options = Arrays(depth="range", camera_height=0.8, camera_pitch=float(np.rad2deg(0.6)))
    found = whole(options.plan(tmp_path / "logs.npz", target))
    projector = Projector(eye, GEOMETRY, table, "range")
    want = np.stack([projector(depth[i % 5], semantics[i % 5], ("grass", "wall")) for i in range(12)])
    assert (want != LABELS.index("UNKNOWN")).any()
    np.testing.assert_array_equal(found.inputs.footprints.cells[found.inputs.footprint_index], want)
    with pytest.raises(InputError, match="there is no class table"):
        options.plan(tmp_path / "logs.npz", TARGET)
    with pytest.raises(InputError, match="camera_height is None"):
        Arrays().plan(tmp_path / "logs.npz", target)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"actions": np.ones((11, 2))}, "actions has 11 rows; allowed are 12"),
        ({"actions": None}, "lacks 'actions'; it has states"),
        ({"states": np.array(["a"])}, "states is <U1 of shape"),
        ({"labels": np.array(["GRASS", "ICE"])}, "is 'ICE'; allowed are 'OCCUPIED'"),
        ({"labels": None}, "lacks 'labels'"),
        ({"footprints": np.zeros((12, 6, 5), np.uint8)}, r"allowed are integers of shape \(any, 6, 4\)"),
        ({"footprints": np.zeros((11, 6, 4), np.uint8)}, "11 views for 12 states"),
        ({"footprints": None}, "allowed are footprints, or depth and semantics"),
        ({"footprint_index": np.full(12, 12)}, "runs from 12 to 12; allowed are 0 to 11"),
        ({"footprint_index": np.ones(12)}, "footprint_index is float64"),
    ],
)
def test_bad_arrays_are_refused(rng, tmp_path, change, complaint):
    with pytest.raises(InputError, match=complaint):
        Arrays().plan(saved(tmp_path, columns(rng, **change)), TARGET)


def test_files_that_are_cut_short_or_hold_code_are_refused(rng, tmp_path):
    path = saved(tmp_path, columns(rng))
    data = path.read_bytes()
    for length in (len(data) - 30, len(data) // 2, 10, 0):
        path.write_bytes(data[:length])
        with pytest.raises(DamagedFileError, match=r"logs.npz.*; allowed is a whole file"):
            Arrays().plan(path, TARGET)
    np.savez(tmp_path / "code.npz", **columns(rng), run=np.array([{}] * 12))
    with pytest.raises(DamagedFileError, match="allow_pickle"):
        Arrays().plan(tmp_path / "code.npz", TARGET)
    with pytest.raises(InputError, match="there is no"):
        Arrays().plan(tmp_path / "absent.npz", TARGET)
    with pytest.raises(InputError, match=r"is neither a .npz file"):
        open_columns(tmp_path / "logs.csv")
    folder = saved(tmp_path, columns(rng), kind="folder")
    whole_file = (folder / "footprints.npy").read_bytes()
    (folder / "footprints.npy").write_bytes(whole_file[:-1])
    with pytest.raises(DamagedFileError, match="cannot read footprints"):
        Arrays().plan(folder, TARGET)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"'shape': (12, 4), }", b"'shape': (12, 4,   "),  # a header that does not end
        (b"'shape': (12, 4), }" + 9 * b" ", b"'shape': (9999999999999, 4)}"),  # more than any memory holds
        (b"'<f8'", b"'<f9'"),
    ],
)
@pytest.mark.parametrize("kind", ["npz", "folder"])
def test_headers_that_are_none_or_claim_too_much_are_refused(rng, tmp_path, before, after, kind):
    folder = saved(tmp_path, columns(rng), kind="folder")
    file = folder / "states.npy"
    assert before in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(before, after))
    if kind == "npz":
        with zipfile.ZipFile(tmp_path / "logs.npz", "w") as archive:
            for each in folder.iterdir():
                archive.write(each, each.name)
    with pytest.raises(DamagedFileError, match=r"cannot read states of .*; allowed is a whole file"):
        Arrays().plan(tmp_path / "logs.npz" if kind == "npz" else folder, TARGET)


def test_numbers_at_the_ends_of_their_range_are_read(rng, tmp_path):
    states = rng.normal(size=(12, 4))
    states[0, 2:] = 1.7e308
    time = np.array([*range(10), -1.7e308, 1.7e308])
    given = columns(rng, states=states, next_states=None, time=time)
    assert len(Arrays(dt=1.0).plan(saved(tmp_path, given), TARGET).steps) == 9
    nothing = {name: values[:0] for name, values in columns(rng).items() if name != "labels"}
    none = Arrays().plan(saved(tmp_path, columns(rng, **nothing)), TARGET)
    assert len(none.steps) == 0


def test_no_more_than_a_part_is_read_at_a_time(rng, tmp_path, monkeypatch):
    monkeypatch.setattr("ocular.data.importers.writing.PART_ROWS", 5)
    given = columns(rng)
    recording = Arrays().plan(saved(tmp_path, given), TARGET)
    read, lengths = recording.read, []

    def counted(rows):
        lengths.append(rows.stop - rows.start)
        return read(rows)

    recording.read = counted
    (result,) = import_recordings(tmp_path / "store", TARGET, [recording])
    assert lengths == [5, 5, 2]
    store = TransitionStore.open(tmp_path / "store")
    assert len(store.parts) == 3
    np.testing.assert_array_equal(store.load().inputs.states, given["states"])
    assert result.used == 12


def test_a_part_of_which_nothing_is_used_is_not_tried_again(rng, tmp_path, monkeypatch):
    monkeypatch.setattr("ocular.data.importers.writing.PART_ROWS", 4)
    given = columns(rng)
    given["footprints"][4:8] = 9
    path = saved(tmp_path, given)
    (first,) = import_recordings(tmp_path / "store", TARGET, [Arrays().plan(path, TARGET)])
    (again,) = import_recordings(tmp_path / "store", TARGET, [Arrays().plan(path, TARGET)])
    assert (first.used, first.resumed, again.used, again.resumed) == (8, 0, 8, 12)
    assert first.dropped == again.dropped == {"footprint with numbers that have no label": 4}
    assert len(TransitionStore.open(tmp_path / "store").parts) == 2
