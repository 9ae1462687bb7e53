"""Locks that end with their process, and leftovers that go without anything alive being touched."""

import os
import subprocess
import sys
import threading
import time

import pytest

from ocular import locks
from ocular.errors import InputError
from ocular.locks import ABANDONED_AFTER, TEMPORARY, claim_temporary, sole_writer, sweep_temporaries
from ocular.sealed import atomic_write_bytes

HOLD = """
import sys, time
from ocular.locks import sole_writer
with sole_writer(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds rows.csv."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path / "rows.csv"], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_another_process_is_an_error_at_once_and_a_killed_one_is_none(holder, tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "rows.csv")
    for name in ("rows.csv", "link.csv"):
        with (
            pytest.raises(InputError, match=rf"another process works on .*{name}; allowed is one at a time"),
            sole_writer(tmp_path / name),
        ):
            pass
    with sole_writer(tmp_path / "other.csv"):
        pass
    holder.kill()
    holder.wait()
    with sole_writer(tmp_path / "rows.csv"):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["link.csv"]  # nor is a lock left


def test_who_waits_gets_its_turn(holder, tmp_path):
    threading.Timer(0.3, holder.kill).start()
    start = time.monotonic()
    with sole_writer(tmp_path / "rows.csv", wait=True):
        assert time.monotonic() - start > 0.2


def test_many_take_turns_and_none_works_beside_another(tmp_path):
    inside, seen = [], []

    def work():
        for _ in range(50):
            with sole_writer(tmp_path / "rows.csv", wait=True):
                inside.append(threading.get_ident())
                seen.append(len(inside))
                time.sleep(1e-4)
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 4 * 50
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be_written_to_are_known_before_the_work(tmp_path):
    (tmp_path / "file").write_text("mine")
    for place, reason in (("no/rows.csv", "No such file"), ("file/rows.csv", "Not a directory")):
        path = tmp_path / place
        with pytest.raises(InputError, match=f"cannot write .*: {reason}"), sole_writer(path):
            pass
    with pytest.raises(InputError, match=r"cannot make the folder .*: Not a directory"):
        locks.make_folder(tmp_path / "file" / "folder")


def test_without_locks_work_goes_on(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError(locks.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks.fcntl, "flock", unsupported)
    with sole_writer(tmp_path / "rows.csv"):
        atomic_write_bytes(tmp_path / "rows.csv", b"x")
    assert (tmp_path / "rows.csv").read_bytes() == b"x"


def leftover(folder, name, age):
    path = folder / TEMPORARY.format(name)
    path.write_bytes(b"half")
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_leftovers_go_with_the_next_write_but_nothing_that_may_be_alive(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_swept", set())
    dead, young = leftover(tmp_path, "dead", ABANDONED_AFTER + 5), leftover(tmp_path, "young", 0)
    alive, foreign = leftover(tmp_path, "alive", 2 * ABANDONED_AFTER), tmp_path / "mine.tmp"
    foreign.write_bytes(b"")
    os.utime(foreign, (0, 0))
    folder = tmp_path / TEMPORARY.format("folder")
    (folder / "deep").mkdir(parents=True)
    os.utime(folder, (0, 0))
    with open(alive) as file:
        claim_temporary(file.fileno())
        atomic_write_bytes(tmp_path / "new", b"new")
        assert sorted(tmp_path.iterdir()) == sorted([young, alive, foreign, tmp_path / "new"])
        assert not dead.exists()
    sweep_temporaries(tmp_path)  # once a process: the next one will find it
    assert alive.exists()
    monkeypatch.setattr(locks, "_swept", set())
    sweep_temporaries(tmp_path)
    assert not alive.exists()


def test_a_link_among_leftovers_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_swept", set())
    (tmp_path / "precious").write_bytes(b"x")
    link = tmp_path / TEMPORARY.format("link")
    link.symlink_to(tmp_path / "precious")
    os.utime(link, (0, 0), follow_symlinks=False)
    sweep_temporaries(tmp_path)
    assert (tmp_path / "precious").exists()
    assert link.is_symlink()
