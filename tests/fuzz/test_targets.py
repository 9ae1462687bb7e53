"""What `make stress` fuzzes at length: valid files are taken, and damaged ones get documented errors."""

import subprocess
from functools import cache

import numpy as np
import pytest

from ocular.seeds import stream
from stress.fuzzing import fuzz
from stress.targets import TARGETS

DAMAGED = {"importer_bag_ros1": 20, "importer_bag_ros2": 20}  # slow ones; others get MORE
MORE = 150
UGLY = (b"\xff" * 8, bytes(8), b"\x00\x00\x00\x00\x00\x00\xf0\x7f", b"9" * 30, b"-1", b"nan", b"[", b'"')


@cache
def seeds_of(name: str) -> tuple[bytes, ...]:
    return tuple(TARGETS[name].seeds())


def damaged(rng: np.random.Generator, data: bytes) -> bytes:
    """A few bytes changed, cut, added or written over."""
    spoilt = bytearray(data)
    for _ in range(rng.choice([1, 2, 6])):
        at = int(rng.integers(len(spoilt) + 1))
        match rng.integers(5):
            case 0 | 1:
                spoilt[at : at + 1] = rng.bytes(1)
            case 2:
                del spoilt[at : at + int(rng.choice([1, 8, 200, len(data)]))]
            case 3:
                spoilt[at:at] = rng.bytes(4)
            case _:
                ugly = UGLY[rng.integers(len(UGLY))]
                spoilt[at : at + len(ugly)] = ugly
    return bytes(spoilt)


@pytest.mark.parametrize("name", TARGETS)
def test_fuzzing_starts_from_files_that_are_taken(name, tmp_path):
    for seed in seeds_of(name):
        assert TARGETS[name].takes(seed, tmp_path / "input")


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_taken_or_refused(name, tmp_path):
    rng, seeds = stream(0, "damage", name), seeds_of(name)
    spoilt = [damaged(rng, seeds[rng.integers(len(seeds))]) for _ in range(DAMAGED.get(name, MORE))]
    taken = [TARGETS[name].takes(each, tmp_path / "input") for each in spoilt]
    assert not all(taken)


def test_findings_and_executions_of_a_run_are_counted(tmp_path, monkeypatch):
    found = []

    def runs(command, stdout, **_):
        stdout.write("stat::number_of_executed_units: 77\n")
        for name in found:
            (tmp_path / "findings" / name).write_text("a traceback")
        return subprocess.CompletedProcess(command, 0 if command[3] == "toml_file" else 1)

    monkeypatch.setattr(subprocess, "run", runs)
    assert fuzz("toml_file", tmp_path, 1) == (0, 77)
    found += ["one.txt", "crash-two"]
    assert fuzz("toml_file", tmp_path, 1) == (2, 77)
    found.clear()
    assert fuzz("toml_file", tmp_path, 1) == (0, 77)  # what was mended counts no more
    assert fuzz("never started", tmp_path, 1) == (1, 77)


def test_what_is_not_documented_is_let_out(tmp_path, monkeypatch):
    def parse(_data, _folder):
        raise KeyError("loose end")

    monkeypatch.setitem(TARGETS, "broken", type(TARGETS["toml_file"])(parse, lambda: iter(())))
    with pytest.raises(KeyError, match="loose end"):
        TARGETS["broken"].takes(b"", tmp_path / "input")
