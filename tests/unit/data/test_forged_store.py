"""A store whose every checksum is right, and whose content lies."""

import json

import numpy as np
import pytest
from tests.unit.data.test_store import new_store, transitions

from ocular.data.store import TransitionStore
from ocular.errors import DamagedFileError
from stress.edits import forge, open_sealed
from stress.store_edits import refresh_files, refresh_index


@pytest.fixture
def store(tmp_path):
    new = new_store(tmp_path / "store")
    new.append("first", transitions(1))
    new.append("second", transitions(2))
    return new.path


def edit_description(array, **changes):
    description = json.loads((array / "zarr.json").read_text())
    (array / "zarr.json").write_text(json.dumps(description | changes))


def edit_manifest(file, **changes):
    document, arrays = open_sealed(file)
    assert not arrays
    document["manifest"] |= changes
    forge(file, json.dumps(document).encode(), b"\x02\0\0\0\0\0\0\0{}")


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [10**15, 4]},
        {"shape": [39, 4]},
        {"data_type": "float32"},
        {"codecs": [{"name": "numcodecs.zlib"}]},
        {"codecs": []},
        {"storage_transformers": [{"name": "other"}]},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10**12, 4]}}},
    ],
)
def test_arrays_that_are_not_what_the_seal_counts_are_refused_unread(store, changes, monkeypatch):
    edit_description(store / "first/states", **changes)
    refresh_files(store / "first")
    refresh_index(store)
    opened = TransitionStore.open(store)
    monkeypatch.setattr("zarr.open_array", None)
    with pytest.raises(DamagedFileError, match=r"allowed is what fits the seal|describes no stored array"):
        opened.load(["first"])


def test_a_petabyte_is_refused_though_seal_and_description_agree(store):
    n = 10**15
    names = ("states", "actions", "next_states", "headings", "environment", "footprint_index")
    for name in names:
        shape = json.loads((store / "first" / name / "zarr.json").read_text())["shape"]
        edit_description(store / "first" / name, shape=[n, *shape[1:]])
    refresh_files(store / "first")
    edit_manifest(store / "first/part.sealed", transitions=n, environments=[["north", n]])
    refresh_index(store)
    with pytest.raises(DamagedFileError, match="first"):
        TransitionStore.open(store).load(["first"])


@pytest.mark.parametrize("at", [0, 4, 12])
def test_a_chunk_that_is_missing_or_unpacks_to_more_is_refused(store, at):
    file = store / "first/headings/c/0"
    data = bytearray(file.read_bytes())
    if at:  # in the chunk's own header, how much it unpacks to, and its length
        data[at : at + 4] = (2**31 - 16).to_bytes(4, "little")
    else:  # marked as not there, which zarr reads as zeros
        data[-20:-4] = b"\xff" * 16
    file.write_bytes(data)
    refresh_files(store / "first")
    refresh_index(store)
    with pytest.raises(DamagedFileError, match="chunks that unpack to"):
        TransitionStore.open(store).load(["first"])


@pytest.mark.parametrize(
    "changes",
    [
        {"transitions": 41},
        {"transitions": "40"},
        {"footprints": 41},
        {"environments": [["north", 20], ["north", 20]]},
        {"environments": [["north", -1], ["south", 41]]},
        {"name": "second"},
        {"files": []},
        {"files": 3},
        {"more": 1},
    ],
)
def test_counts_that_do_not_add_up_are_refused(store, changes):
    edit_manifest(store / "first/part.sealed", **changes)
    refresh_index(store)
    with pytest.raises(DamagedFileError):
        TransitionStore.open(store).load()


def test_transitions_of_other_environments_than_the_seal_says_are_refused(store):
    document, _ = open_sealed(store / "first/part.sealed")
    (north, n), (south, m) = document["manifest"]["environments"]
    edit_manifest(store / "first/part.sealed", environments=[[north, n - 1], [south, m + 1]])
    refresh_index(store)
    with pytest.raises(DamagedFileError, match="holds"):
        TransitionStore.open(store).load()


@pytest.mark.parametrize("name", ["../store/first", "/etc", "", "first"])
def test_parts_lie_within_the_store_and_are_distinct(store, name):
    document, _ = open_sealed(store / "index.sealed")
    (first, seal), second = document["manifest"]["parts"]
    edit_manifest(store / "index.sealed", parts=[[first, seal], second, [name, seal]])
    with pytest.raises(DamagedFileError, match="distinct names of folders within"):
        TransitionStore.open(store)


def test_the_index_and_the_root_tell_the_same(store):
    document, _ = open_sealed(store / "index.sealed")
    shared = document["manifest"]["shared"]
    edit_manifest(store / "index.sealed", shared={**shared, "state_dim": 5})
    with pytest.raises(DamagedFileError, match="the same in both"):
        TransitionStore.open(store)


def test_a_device_in_place_of_a_file_is_not_read(store):
    file = store / "first/headings/c/0"
    file.unlink()
    file.symlink_to("/dev/zero")
    document, _ = open_sealed(store / "first/part.sealed")
    files = [
        [name, file.lstat().st_size if name == "headings/c/0" else size, digest]
        for name, size, digest in document["manifest"]["files"]
    ]
    edit_manifest(store / "first/part.sealed", files=files)
    refresh_index(store)
    with pytest.raises(DamagedFileError, match="a pipe or a device"):
        TransitionStore.open(store).load(["first"])


def test_what_is_left_alone_comes_back(store):
    refresh_files(store / "first")
    refresh_index(store)
    loaded = TransitionStore.open(store).load(["first"])
    assert np.array_equal(loaded.next_states, transitions(1).next_states)
