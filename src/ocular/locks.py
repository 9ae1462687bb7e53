"""One writer at a time, and nothing left of those that were killed.

Locks are the system's (flock), so that they end with the process that holds them, however it ends. Where a
file system has none, work goes on without: then it is for the user not to start the same thing twice.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ocular.errors import InputError

TEMPORARY = ".ocular-{}.tmp"  # hidden, beside the target; what a kill leaves of it is harmless
LOCK = ".ocular-{}.lock"
# A lock that another machine cannot see (some network file systems) must not cost a live writer its file.
ABANDONED_AFTER = 600.0  # [s] without a change

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
_swept: set[Path] = set()


@contextmanager
def sole_writer(path: str | Path, *, wait: bool = False) -> Iterator[None]:
    """Hold what is at this path, or will be, against every other writer: file, folder or set of rows.

    Another one is an error at once, unless we are to wait until it has ended. So is a place that cannot be
    written to: whoever works for an hour before the first byte learns it now.
    """
    target = Path(os.path.realpath(path))
    lock = target.with_name(LOCK.format(target.name))
    try:
        descriptor = _acquire(lock, wait)
    except BlockingIOError as error:
        raise InputError(
            f"another process works on {path}; allowed is one at a time: wait until it has ended, "
            "or write elsewhere"
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror}; allowed is a place in an existing, writable directory"
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()  # still held: who has it open sees that it is gone, and makes a new one
        os.close(descriptor)


@contextmanager
def sole_file(path: Path) -> Iterator[None]:
    """The same for one file; it is no folder, either."""
    check_file(path)
    with sole_writer(path):
        yield


def _acquire(lock: Path, wait: bool) -> int:
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            _lock(descriptor, wait)
            if os.path.samestat(os.fstat(descriptor), os.stat(lock)):
                return descriptor
        except FileNotFoundError:  # its holder took it away
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int, wait: bool) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


def claim_temporary(descriptor: int) -> None:
    """Say that the writer of this temporary lives, for as long as it has it open."""
    with suppress(OSError):
        _lock(descriptor, wait=False)


@contextmanager
def temporary_folder(target: Path) -> Iterator[Path]:
    """A new folder beside the target, to be renamed to it once it is whole; if it never is, it goes."""
    sweep_temporaries(target.parent)
    folder = target.with_name(TEMPORARY.format(secrets.token_hex(8)))
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    claim_temporary(descriptor)
    try:
        yield folder
    finally:
        os.close(descriptor)
        shutil.rmtree(folder, ignore_errors=True)


def sweep_temporaries(folder: Path) -> None:
    """Delete what killed writers left in this folder; a process looks there once, before its first write."""
    if folder in _swept:
        return
    _swept.add(folder)
    for entry in folder.glob(TEMPORARY.format("*")):
        with suppress(OSError):  # swept by another process meanwhile, or not ours to sweep
            if time.time() - entry.lstat().st_mtime > ABANDONED_AFTER:
                _remove_abandoned(entry)


def _remove_abandoned(entry: Path) -> None:
    descriptor = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its writer lives
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    finally:
        os.close(descriptor)


def check_file(path: str | Path) -> None:
    """Raise where a file of this name would take the place of anything but a file."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a rename would replace even a device such as /dev/null
        raise InputError(f"cannot write {path}: it is not a regular file; allowed is a file name")


def make_folder(path: Path) -> None:
    """Make a folder and those above it, where they are not there yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder {path}: {error.strerror}; allowed is a folder in a writable place"
        ) from error
