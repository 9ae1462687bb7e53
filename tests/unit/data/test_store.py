import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zarr

from ocular.data import parts as parts_module
from ocular.data import store as store_module
from ocular.data.store import TransitionStore
from ocular.errors import DamagedFileError, InputError
from ocular.records import FootprintGeometry, Footprints, Inputs, Transitions, concatenate

LABELS = ("NOMINAL", "OCCUPIED", "UNKNOWN")
GEOMETRY = FootprintGeometry(angles=6, ranges=4)


def transitions(seed: int, n: int = 40, footprints: int = 5, environments=("north", "south")) -> Transitions:
    rng = np.random.default_rng(seed)
    inputs = Inputs(
        states=rng.normal(size=(n, 4)),
        actions=rng.normal(size=(n, 2)),
        headings=rng.normal(size=n),
        footprint_index=np.arange(n) % footprints,
        footprints=Footprints(rng.integers(0, 3, (footprints, 6, 4)).astype(np.uint8), LABELS, GEOMETRY),
    )
    return Transitions(inputs, rng.normal(size=(n, 4)), rng.integers(0, len(environments), n), environments)


def assert_same(got: Transitions, want: Transitions) -> None:
    assert got.environments == want.environments
    assert got.inputs.footprints.labels == want.inputs.footprints.labels
    assert got.inputs.footprints.geometry == want.inputs.footprints.geometry
    for field in ("states", "actions", "headings", "footprint_index"):
        assert getattr(got.inputs, field).dtype == getattr(want.inputs, field).dtype
        np.testing.assert_array_equal(getattr(got.inputs, field), getattr(want.inputs, field))
    np.testing.assert_array_equal(got.inputs.footprints.cells, want.inputs.footprints.cells)
    np.testing.assert_array_equal(got.next_states, want.next_states)
    np.testing.assert_array_equal(got.environment, want.environment)


def new_store(path: Path) -> TransitionStore:
    return TransitionStore.create(path, LABELS, GEOMETRY, state_dim=4, action_dim=2)


def contents(path: Path) -> dict[str, bytes]:
    return {
        file.relative_to(path).as_posix(): file.read_bytes() for file in path.rglob("*") if file.is_file()
    }


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    store = new_store(tmp_path / "store")
    store.append("b", transitions(1))
    store.append("a", transitions(2))
    return store.path


def test_parts_come_back_exactly_and_in_order(filled):
    store = TransitionStore.open(filled)
    assert store.parts == ("b", "a")
    assert store.shared.labels == LABELS
    assert store.shared.geometry == GEOMETRY
    assert_same(store.load(["b"]), transitions(1))
    assert_same(store.load(), concatenate([transitions(1), transitions(2)]))
    assert_same(store.load(["a", "b"]), concatenate([transitions(2), transitions(1)]))


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 64 * 64 + 1])
def test_every_length_round_trips_across_chunks_and_shards(tmp_path, n):
    rng = np.random.default_rng(n)
    few = transitions(0, n=n, footprints=max(1, n))
    cells = rng.permutation(3**9)[: max(1, n), None] // 3 ** np.arange(9) % 3  # distinct images
    geometry = FootprintGeometry(angles=3, ranges=3)
    footprints = Footprints(cells.reshape(-1, 3, 3).astype(np.uint8), LABELS, geometry)
    if n == 0:
        footprints = replace(footprints, cells=footprints.cells[:0])
    few = replace(few, inputs=replace(few.inputs, footprints=footprints))
    store = TransitionStore.create(tmp_path / "store", LABELS, geometry, 4, 2)
    store.append("part", few)
    assert_same(TransitionStore.open(store.path).load(), few)


def test_rows_beyond_one_chunk_round_trip(tmp_path):
    many = transitions(3, n=20_000)
    store = new_store(tmp_path / "store")
    store.append("part", many)
    assert_same(store.load(), many)


def test_distinct_footprints_are_stored_once_and_unseen_ones_not_at_all(tmp_path):
    first = transitions(1)
    cells = first.inputs.footprints.cells
    doubled = replace(first.inputs.footprints, cells=np.concatenate([cells, cells, 2 - cells]))
    index = first.inputs.footprint_index + 5 * (np.arange(40) % 2)
    store = new_store(tmp_path / "store")
    store.append(
        "part", replace(first, inputs=replace(first.inputs, footprints=doubled, footprint_index=index))
    )
    assert_same(store.load(), first)


def test_summary_counts_without_reading(filled, monkeypatch):
    monkeypatch.setattr(zarr, "open_array", None)
    summary = TransitionStore.open(filled).summary()
    assert list(summary) == ["b", "a"]
    one = summary["b"]
    counts = np.bincount(transitions(1).environment)
    assert (one.transitions, one.footprints) == (40, 5)
    assert one.environments == {"north": counts[0], "south": counts[1]}
    assert one.files == 15 == len(contents(filled / "b")) - 1
    assert one.size == sum(
        len(data) for name, data in contents(filled / "b").items() if name != "part.sealed"
    )


def test_any_zarr_reader_can_open_it(filled):
    group = zarr.open_group(filled, mode="r")
    assert group.attrs["labels"] == list(LABELS)
    assert group.attrs["version"] == 1
    part = group["b"]
    assert part.attrs["transitions"] == 40
    np.testing.assert_array_equal(part["states"][...], transitions(1).inputs.states)


def test_the_same_input_gives_the_same_bytes(filled, tmp_path):
    again = new_store(tmp_path / "again")
    again.append("b", transitions(1))
    again.append("a", transitions(2))
    assert contents(again.path) == contents(filled)


def test_an_all_zero_part_keeps_its_chunks_on_disk(tmp_path):
    some = transitions(1)
    zero = replace(some.inputs.footprints, cells=np.zeros_like(some.inputs.footprints.cells))
    store = new_store(tmp_path / "store")
    store.append("zero", replace(some, inputs=replace(some.inputs, footprints=zero)))
    assert (store.path / "zero/footprints/c/0/0/0").stat().st_size > 0
    assert not store.load().inputs.footprints.cells.any()


def test_any_changed_byte_is_noticed_on_load(filled):
    """Each file of the store, at its ends and in between."""
    rng = np.random.default_rng(0)
    for name, whole in contents(filled).items():
        for position in {0, len(whole) - 1, *rng.integers(len(whole), size=4).tolist()}:
            changed = bytearray(whole)
            changed[position] ^= int(rng.integers(1, 256))
            (filled / name).write_bytes(changed)
            with pytest.raises(DamagedFileError) as caught:
                TransitionStore.open(filled).load()
            assert Path(name).name in str(caught.value)
            assert "allowed" in str(caught.value)
        (filled / name).write_bytes(whole)
    TransitionStore.open(filled).load()


def test_missing_cut_and_grown_files_are_noticed_on_open(filled):
    for name, whole in contents(filled).items():
        for damaged in (whole[:-1], whole[: len(whole) // 2], b"", whole + b"\0"):
            (filled / name).write_bytes(damaged)
            with pytest.raises(DamagedFileError, match=Path(name).name):
                TransitionStore.open(filled)
        (filled / name).unlink()
        if name != "zarr.json":
            with pytest.raises(DamagedFileError, match=Path(name).name):
                TransitionStore.open(filled)
        (filled / name).write_bytes(whole)
    TransitionStore.open(filled)


def test_extra_files_missing_and_exchanged_parts_are_noticed_on_open(filled, tmp_path):
    extra = filled / "a/states/c/7"
    extra.write_bytes(b"")
    with pytest.raises(DamagedFileError, match="an extra file states/c/7"):
        TransitionStore.open(filled)
    extra.unlink()
    (filled / "a").rename(tmp_path / "aside")
    with pytest.raises(DamagedFileError, match=r"store/a has no part.sealed"):
        TransitionStore.open(filled)
    shutil.copytree(filled / "b", filled / "a")
    with pytest.raises(DamagedFileError, match=r"store/a/part.sealed has the checksum"):
        TransitionStore.open(filled)


def test_a_file_that_vanishes_after_open_is_not_read_as_zeros(filled):
    store = TransitionStore.open(filled)
    (filled / "a/footprints/c/0/0/0").unlink()
    with pytest.raises(DamagedFileError, match=r"cannot read .*a/footprints/c/0/0/0: No such file"):
        store.load()
    assert len(store.load(["b"])) == 40


def test_newer_versions_are_refused(tmp_path, monkeypatch):
    for module in (store_module, parts_module):
        monkeypatch.setattr(module, "VERSION", 2)
    store = new_store(tmp_path / "store")
    store.append("part", transitions(1))
    monkeypatch.setattr(parts_module, "VERSION", 1)
    with pytest.raises(DamagedFileError, match="transition store part of version 2; allowed is at most 1"):
        TransitionStore.open(store.path)
    monkeypatch.setattr(store_module, "VERSION", 1)
    with pytest.raises(DamagedFileError, match="transition store of version 2; allowed is at most 1"):
        TransitionStore.open(store.path)


@pytest.mark.parametrize(
    "name", ["", ".hidden", "..", "a/b", "../a", "a b", "ä", "a\n", "zarr.json", "index.sealed", "x" * 101]
)
def test_unsafe_part_names_are_refused(filled, name):
    before = contents(filled)
    with pytest.raises(InputError, match="the part is named"):
        TransitionStore.open(filled).append(name, transitions(1))
    assert contents(filled) == before


def test_a_name_is_taken_once(filled):
    before = contents(filled)
    with pytest.raises(InputError, match="has a part 'a' already"):
        TransitionStore.open(filled).append("a", transitions(3))
    assert contents(filled) == before


def test_what_does_not_fit_the_store_is_refused(filled):
    some = transitions(1)
    inputs, footprints = some.inputs, some.inputs.footprints
    three = replace(
        some, inputs=replace(inputs, states=inputs.states[:, :3]), next_states=some.next_states[:, :3]
    )
    near = replace(footprints, geometry=replace(GEOMETRY, max_range=1.0))
    other = replace(footprints, labels=("ICE", "OCCUPIED", "UNKNOWN"))
    store = TransitionStore.open(filled)
    for bad, message in (
        (three, "state_dim 3; allowed is the store's: 4"),
        (replace(some, inputs=replace(inputs, actions=inputs.actions[:, :1])), "action_dim 1"),
        (replace(some, inputs=replace(inputs, footprints=near)), "geometry"),
        (replace(some, inputs=replace(inputs, footprints=other)), "labels .*ICE.*; allowed is the store's"),
        (replace(some, environments=("x", "x")), "distinct names"),
    ):
        with pytest.raises(InputError, match=message):
            store.append("new", bad)
    assert TransitionStore.open(filled).parts == ("b", "a")


def test_loading_what_is_not_there_is_refused(filled, tmp_path):
    with pytest.raises(InputError, match="part is 'c'; allowed are 'b', 'a'"):
        TransitionStore.open(filled).load(["c"])
    with pytest.raises(InputError, match="no parts to load"):
        new_store(tmp_path / "empty").load()
    with pytest.raises(InputError, match=r"holds no zarr.json"):
        TransitionStore.open(tmp_path / "absent")


def test_create_never_overwrites(filled, tmp_path):
    (tmp_path / "file").write_text("mine")
    for path, message in (
        (filled, "it exists"),
        (tmp_path / "file", "it exists"),
        (tmp_path / "absent" / "store", "is no directory"),
        (Path("/proc/store"), "cannot create /proc/store"),
    ):
        with pytest.raises(InputError, match=message):
            new_store(path)
    with pytest.raises(InputError, match="state_dim is 0"):
        TransitionStore.create(tmp_path / "new", LABELS, GEOMETRY, 0, 2)
    (tmp_path / "empty").mkdir()
    assert new_store(tmp_path / "empty").parts == ()


def test_a_second_writer_is_told(filled, monkeypatch):
    """The second one comes while the first is in the middle of its part."""
    first, second = TransitionStore.open(filled), TransitionStore.open(filled)
    write_part, seen = store_module.write_part, []

    def interrupted(*arguments):
        with pytest.raises(InputError, match="another writer is appending") as caught:
            second.append("d", transitions(4))
        seen.append(caught)
        write_part(*arguments)

    monkeypatch.setattr(store_module, "write_part", interrupted)
    first.append("c", transitions(3))
    monkeypatch.undo()
    assert len(seen) == 1
    second.append("d", transitions(4))  # it was opened before "c" came, and keeps it
    assert TransitionStore.open(filled).parts == second.parts == ("b", "a", "c", "d")


def test_a_foreign_directory_of_the_same_name_is_left_alone(filled):
    (filled / "c").mkdir()
    (filled / "c" / "mine").write_text("precious")
    with pytest.raises(InputError, match=r"cannot append the part 'c'.*not empty"):
        TransitionStore.open(filled).append("c", transitions(3))
    assert (filled / "c" / "mine").read_text() == "precious"


KILLED = """
import os, sys
import test_store
from ocular.data.store import TransitionStore
function, calls_left = sys.argv[2], int(sys.argv[3])
real = getattr(os, function)
def die(*arguments, **keywords):
    global calls_left
    if calls_left == 0:
        os._exit(9)
    calls_left -= 1
    return real(*arguments, **keywords)
store = TransitionStore.open(sys.argv[1])
setattr(os, function, die)
store.append("c", test_store.transitions(3))
"""


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        ("fsync", 0),
        ("fsync", 20),
        ("replace", 0),
        ("replace", 8),
        ("replace", 16),
        ("rename", 0),
        ("replace", -1),
    ],
)
def test_a_kill_leaves_the_old_store_and_the_next_append_cleans_up(filled, monkeypatch, function, calls):
    if calls < 0:  # the very last replacement, that of the index: count them in a run that lives
        counted, real = [], os.replace
        copy = shutil.copytree(filled, filled.with_name("copy"))
        monkeypatch.setattr(os, "replace", lambda *a, **k: (counted.append(a), real(*a, **k))[1])
        TransitionStore.open(copy).append("c", transitions(3))
        monkeypatch.undo()
        calls = len(counted) - 1
    before = contents(filled)
    command = [sys.executable, "-c", KILLED, filled, function, str(calls)]
    assert subprocess.run(command, cwd=Path(__file__).parent, check=False).returncode == 9
    after = contents(filled)
    assert before.items() <= after.items()
    assert after != before  # it died in the middle, with something on disk
    store = TransitionStore.open(filled)
    assert store.parts == ("b", "a")
    assert_same(store.load(), concatenate([transitions(1), transitions(2)]))

    store.append("d", transitions(4))
    assert_same(store.load(["d"]), transitions(4))
    assert {entry.name for entry in filled.iterdir()} == {"zarr.json", "index.sealed", "a", "b", "d"}
    store.append("c", transitions(3))
    assert store.parts == ("b", "a", "d", "c")


def test_a_kill_after_the_index_is_replaced_leaves_the_new_store(filled, monkeypatch):
    """The commit is the replaced index: nothing that follows it is needed."""

    def die(*_):
        raise KeyboardInterrupt

    store = TransitionStore.open(filled)
    write_index = store_module._write_index
    monkeypatch.setattr(store_module, "_write_index", lambda *a: (write_index(*a), die()))
    with pytest.raises(KeyboardInterrupt):
        store.append("c", transitions(3))
    assert TransitionStore.open(filled).parts == ("b", "a", "c")
    assert_same(TransitionStore.open(filled).load(["c"]), transitions(3))


def test_a_kill_while_a_leftover_part_is_removed_loses_no_name(filled, monkeypatch):
    """Its seal may be the first to go."""
    store = TransitionStore.open(filled)
    monkeypatch.setattr(store_module, "_write_index", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.append("c", transitions(3))
    monkeypatch.undo()
    assert (filled / "c" / "part.sealed").exists()
    monkeypatch.setattr(shutil, "rmtree", lambda path: ((path / "part.sealed").unlink(), interrupt()))
    with pytest.raises(KeyboardInterrupt):
        store.append("c", transitions(3))
    monkeypatch.undo()
    store.append("c", transitions(3))
    assert_same(TransitionStore.open(filled).load(["c"]), transitions(3))
    assert {entry.name for entry in filled.iterdir()} == {"zarr.json", "index.sealed", "a", "b", "c"}


def interrupt(*_):
    raise KeyboardInterrupt
