import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ocular.errors import DamagedFileError, InputError
from ocular.sealed import atomic_write_bytes, read_sealed, write_sealed

MARKER = b"ocular sealed sha256 "
DTYPES = ["float64", "float32", "int64", "int32", "uint8", "bool"]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
some_arrays = st.dictionaries(
    st.text(min_size=1, max_size=8).filter(lambda name: name != "__metadata__" and name.isprintable()),
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    ),
    max_size=4,
)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small"
    arrays = {"q": np.array([1.5, np.inf]), "cells": np.arange(3, dtype=np.uint8)}
    write_sealed(path, kind="calibration", version=3, manifest={"alpha": 0.1}, arrays=arrays)
    return path


def read(path: Path):
    return read_sealed(path, kind="calibration", version=3)


def forge(path: Path, text: bytes, data: bytes, compression: int = zipfile.ZIP_STORED, names=None) -> None:
    """A file whose seal is right and whose content may lie."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in zip(names or ("manifest.json", "arrays.safetensors"), (text, data), strict=True):
            archive.writestr(name, content)
        archive.comment = bytes(len(MARKER) + 64)
    body = buffer.getvalue()[: -len(MARKER) - 64]
    path.write_bytes(body + MARKER + hashlib.sha256(body).hexdigest().encode())


def document(**changes) -> bytes:
    fields = {
        "sealed": 1,
        "kind": "calibration",
        "version": 3,
        "manifest": {},
        "arrays": {"q": {"dtype": "float64", "shape": [2]}},
    }
    return json.dumps(fields | changes).encode()


ARRAYS = safetensors.numpy.save({"q": np.array([1.0, 2.0])})


@settings(max_examples=150, deadline=None)
@given(manifest=st.dictionaries(st.text(), json_values, max_size=4), arrays=some_arrays)
def test_what_is_written_comes_back_bit_for_bit(tmp_path_factory, manifest, arrays):
    path = tmp_path_factory.getbasetemp() / "round_trip"
    write_sealed(path, kind="k", version=1, manifest=manifest, arrays=arrays)
    got = read_sealed(path, kind="k", version=1)
    assert got.manifest == manifest
    assert got.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert got.arrays[name].dtype == array.dtype
        assert got.arrays[name].shape == array.shape
        assert got.arrays[name].tobytes() == array.tobytes()  # NaN payloads and -0.0 too


def test_views_and_foreign_byte_orders_come_back_as_the_same_values(tmp_path):
    arrays = {
        "T": np.arange(6.0).reshape(2, 3).T,
        "swapped": np.arange(4, dtype=">i4"),
        "step": np.arange(9)[::2],
    }
    write_sealed(tmp_path / "f", kind="k", version=1, manifest={}, arrays=arrays)
    got = read_sealed(tmp_path / "f", kind="k", version=1).arrays
    for name, array in arrays.items():
        np.testing.assert_array_equal(got[name], array)
        assert got[name].dtype.isnative


def test_same_content_in_any_order_is_the_same_bytes(tmp_path):
    a, b = np.arange(3.0), np.arange(2)
    write_sealed(tmp_path / "1", kind="k", version=1, manifest={"x": 1, "y": (2,)}, arrays={"a": a, "b": b})
    write_sealed(tmp_path / "2", kind="k", version=1, manifest={"y": [2], "x": 1}, arrays={"b": b, "a": a})
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_it_is_a_plain_zip(small):
    with zipfile.ZipFile(small) as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read("manifest.json"))["manifest"] == {"alpha": 0.1}
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_every_bit_of_every_byte_is_guarded(small):
    whole = small.read_bytes()
    for position in range(len(whole)):
        for flip in (0x01, 0x20, 0xFF):  # 0x20 turns a letter's case, also in the seal
            changed = bytearray(whole)
            changed[position] ^= flip
            small.write_bytes(changed)
            with pytest.raises(DamagedFileError, match="small"):
                read(small)


def test_every_cut_and_any_added_byte_is_noticed(small):
    whole = small.read_bytes()
    changes = [whole[:n] for n in range(len(whole))] + [whole[n:] for n in range(1, len(whole))]
    changes += [whole + b"\0", b"\0" + whole, whole[:40] + b"\0" + whole[40:], whole + whole]
    for changed in changes:
        small.write_bytes(changed)
        with pytest.raises(DamagedFileError, match="small"):
            read(small)


def test_another_kind_is_refused(small):
    with pytest.raises(DamagedFileError, match="small is of kind 'calibration'; allowed is 'encoder'"):
        read_sealed(small, kind="encoder", version=3)


def test_newer_versions_are_refused_and_older_ones_read(small):
    with pytest.raises(DamagedFileError, match="version 3; allowed is at most 2: upgrade"):
        read_sealed(small, kind="calibration", version=2)
    assert read_sealed(small, kind="calibration", version=4).version == 3


@pytest.mark.parametrize(
    ("text", "data", "message"),
    [
        (document(sealed=2), ARRAYS, "layout 2; allowed is at most 1"),
        (document(version=-1), ARRAYS, "version -1"),
        (document(version=True), ARRAYS, "fields of other types"),
        (document(manifest=[]), ARRAYS, "fields of other types"),
        (b"[1]", ARRAYS, "cannot be read"),
        (b"{}", ARRAYS, "cannot be read"),
        (b"\xff\xfe\xfd", ARRAYS, "cannot be read"),
        (b"[" * 100_000, ARRAYS, "cannot be read"),
        (document(arrays={}), ARRAYS, "holds the arrays"),
        (document(arrays={"q": {"dtype": "float64", "shape": [2, 1]}}), ARRAYS, "holds the arrays"),
        (document(arrays={"q": {"dtype": "int64", "shape": [2]}}), ARRAYS, "holds the arrays"),
        (document(arrays={"r": {"dtype": "float64", "shape": [2]}}), ARRAYS, "holds the arrays"),
        (document(arrays={"q": {"dtype": "float64", "shape": [2**47]}}), ARRAYS, f"claims {2**50} bytes"),
        (document(arrays={"q": {"dtype": "object", "shape": [2]}}), ARRAYS, "cannot be read"),
        (document(arrays={"q": 3}), ARRAYS, "cannot be read"),
        (document(), ARRAYS[:-1], "cannot be read"),
        (document(arrays={}), b"", "cannot be read"),
        (document(arrays={}), (2**62).to_bytes(8, "little") + b"{}", "cannot be read"),
    ],
)
def test_a_file_with_a_true_seal_and_false_claims_is_refused(tmp_path, text, data, message):
    forge(tmp_path / "forged", text, data)
    with pytest.raises(DamagedFileError, match=message) as caught:
        read(tmp_path / "forged")
    assert "forged" in str(caught.value)
    assert "allowed" in str(caught.value)


def test_the_forger_of_these_tests_can_also_write_a_good_file(tmp_path):
    forge(tmp_path / "good", document(), ARRAYS)
    np.testing.assert_array_equal(read(tmp_path / "good").arrays["q"], [1.0, 2.0])


def test_compressed_or_other_members_are_refused(tmp_path):
    forge(tmp_path / "bomb", document(), ARRAYS, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(DamagedFileError, match="both stored"):
        read(tmp_path / "bomb")
    forge(tmp_path / "names", document(), ARRAYS, names=("manifest.json", "../evil"))
    with pytest.raises(DamagedFileError, match="evil"):
        read(tmp_path / "names")


def test_a_sealed_body_that_is_no_zip_is_refused(tmp_path):
    body = b"PK no zip at all"
    (tmp_path / "f").write_bytes(body + MARKER + hashlib.sha256(body).hexdigest().encode())
    with pytest.raises(DamagedFileError, match="no readable ZIP"):
        read(tmp_path / "f")


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"a": float("nan")}, r"manifest\['a'\] is nan"),
        ({"a": [0, {"b": float("inf")}]}, r"manifest\['a'\]\[1\]\['b'\] is inf"),
        ({"a": np.int64(3)}, "int64"),
        ({"a": np.zeros(2)}, "belongs among the arrays"),
        ({1: "a"}, "has the key 1; allowed are strings"),
    ],
)
def test_a_manifest_that_json_would_change_is_refused(tmp_path, manifest, message):
    with pytest.raises(InputError, match=message):
        write_sealed(tmp_path / "f", kind="k", version=1, manifest=manifest, arrays={})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("array", [np.array([object()]), np.array(["text"]), np.array([1j])])
def test_arrays_that_need_code_or_have_no_exact_form_are_refused(tmp_path, array):
    with pytest.raises(InputError, match=r"array 'x' has dtype .*; allowed are float64"):
        write_sealed(tmp_path / "f", kind="k", version=1, manifest={}, arrays={"x": array})


def test_the_one_name_that_safetensors_keeps_is_refused(tmp_path):
    with pytest.raises(InputError, match="__metadata__"):
        write_sealed(tmp_path / "f", kind="k", version=1, manifest={}, arrays={"__metadata__": np.zeros(1)})


def test_a_missing_file_and_a_directory_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read(tmp_path / "absent")
    with pytest.raises(InputError, match="directory"):
        read(tmp_path)


def test_writing_where_it_is_impossible_says_so(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path, reason in (
        (tmp_path / "absent" / "f", "No such file"),
        (tmp_path / "file" / "f", "Not a directory"),
        (tmp_path, "not a regular file"),
        (Path("/dev/null"), "not a regular file"),
        (Path("/proc/f"), "cannot write /proc/f"),
    ):
        with pytest.raises(InputError, match=reason):
            atomic_write_bytes(path, b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(tmp_path, monkeypatch, function):
    path = tmp_path / "f"
    atomic_write_bytes(path, b"old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(InputError, match="No space left"):
        atomic_write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


KILLED = """
import os, sys
from ocular.sealed import atomic_write_bytes
def die(*_): os._exit(9)
setattr(os, sys.argv[2], die)
atomic_write_bytes(sys.argv[1], b"new")
"""


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_kill_keeps_the_old_file_and_its_leftover_is_harmless(tmp_path, function):
    path = tmp_path / "f"
    atomic_write_bytes(path, b"old")
    assert subprocess.run([sys.executable, "-c", KILLED, path, function]).returncode == 9
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2
    atomic_write_bytes(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_link_stays_a_link_and_permissions_follow_the_umask(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    atomic_write_bytes(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"
    (tmp_path / "plain").write_bytes(b"x")
    assert (tmp_path / "real").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    "text",
    [
        document().replace(b'"manifest": {}', b'"manifest": {"a": NaN}'),
        document().replace(b'"manifest": {}', b'"manifest": {"a": 1e999}'),
        document().replace(b'"manifest": {}', b'"manifest": {"a": 1, "a": 2}'),
        document().replace(b'"manifest": {}', b'"manifest": {"a": ' + b"[" * 60 + b"]" * 60 + b"}"),
        document().replace(b'"manifest": {}', b'"manifest": {"a": ' + b"[" * 9000 + b"]" * 9000 + b"}"),
        document(more=1),
        document(version=0),
        document(sealed=0),
        document(arrays={"q": {"dtype": "float64", "shape": [2.0]}}),
        document(arrays={"q": {"dtype": "float64", "shape": [10**15]}}),
        document(arrays={"q": {"dtype": "float64", "shape": [-1, -2]}}),
    ],
)
def test_json_beyond_the_layout_is_refused_though_its_seal_is_right(tmp_path, text):
    forge(tmp_path / "file", text, ARRAYS)
    with pytest.raises(DamagedFileError):
        read(tmp_path / "file")


def test_a_manifest_that_could_not_be_read_back_is_not_written(tmp_path):
    deep = []
    for _ in range(60):
        deep = [deep]
    with pytest.raises(InputError, match=r"nests 6\d levels; allowed are 50"):
        write_sealed(tmp_path / "file", kind="k", version=1, manifest={"deep": deep}, arrays={})
    assert not (tmp_path / "file").exists()


def test_what_never_ends_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(InputError, match="a pipe or a device; allowed is a regular file"):
            read(tmp_path / name)
