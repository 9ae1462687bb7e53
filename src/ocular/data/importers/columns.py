"""Arrays by name, from a .npz file, a directory of .npy files or a CSV table, images row by row only.

Nothing is unpickled.
"""

from __future__ import annotations

import csv
import math
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ocular.errors import DamagedFileError, InputError, OcularError

Array = npt.NDArray[Any]


class Rows(Protocol):
    """A large array that stays on disk."""

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """As of an array."""

    def read(self, rows: Iterable[int]) -> Iterator[Array]:
        """These rows, one after the other; cheap in ascending order."""


class Columns:
    """Named arrays of one source."""

    def __init__(
        self, path: Path, whole: dict[str, Callable[[], Array]], rows: dict[str, Callable[[], Rows]]
    ):
        self.path, self._whole, self._rows = path, whole, rows

    @property
    def names(self) -> tuple[str, ...]:
        """What there is."""
        return tuple(self._whole)

    def __contains__(self, name: str) -> bool:
        return name in self._whole

    def array(self, name: str) -> Array:
        """All of an array."""
        self._need(name)
        with _damage(self.path, name):
            return self._whole[name]()

    def numbers(self, name: str, ndim: int) -> npt.NDArray[np.float64]:
        """All of an array of this many dimensions, as floating-point numbers."""
        found = self.array(name)
        if found.dtype.kind not in "fiub" or found.ndim != ndim:
            raise InputError(
                f"{self.path}: {name} is {found.dtype} of shape {found.shape}; allowed are numbers in "
                f"{ndim} dimensions"
            )
        return found.astype(np.float64)

    def rows(self, name: str) -> Rows:
        """An array whose rows stay on disk."""
        self._need(name)
        with _damage(self.path, name):
            return self._rows[name]()

    def _need(self, name: str) -> None:
        if name not in self:
            raise InputError(f"{self.path} lacks {name!r}; it has {', '.join(self.names) or 'nothing'}")


def open_columns(path: Path) -> Columns:
    """A .npz file, or a directory of .npy files."""
    if path.is_dir():
        files = {file.stem: file for file in sorted(path.glob("*.npy"))}
        return Columns(path, _each(files, _load), _each(files, _Mapped))
    if path.suffix != ".npz":
        raise InputError(
            f"{path} is neither a .npz file nor a directory of .npy files; allowed are these two"
        )
    with _damage(path, "its list of arrays"), zipfile.ZipFile(path) as archive:
        members = {name[:-4]: name for name in archive.namelist() if name.endswith(".npy")}
    return Columns(
        path,
        _each(members, lambda member: _load_member(path, member)),
        _each(members, lambda member: _Member(path, member)),
    )


def read_npy(path: Path) -> Array:
    """The array of a .npy file."""
    with _damage(path, "the array"):
        return _load(path)


def read_csv(path: Path) -> dict[str, Array]:
    """The columns of a table with a header; an entry that is no number is NaN, in a column that has any."""
    with _damage(path, "the table"), open(path, newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    if len(lines) < 2:
        raise InputError(f"{path} has {len(lines)} lines; allowed are a header and at least one row")
    header = [name.strip() for name in lines[0]]
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(header):
            raise DamagedFileError(
                f"{path}, line {number}, has {len(line)} entries; allowed are {len(header)}, as in its header"
            )
    columns = zip(*lines[1:], strict=True)
    return {name: _column(values) for name, values in zip(header, columns, strict=True)}


def _column(values: tuple[str, ...]) -> Array:
    numbers = np.array([_number(value) for value in values])
    return np.array(values) if np.isnan(numbers).all() else numbers


def _number(text: str) -> float:
    try:
        return math.nan if "_" in text else float(text)  # Python would read 1_000 as a thousand
    except ValueError:
        return math.nan


def _each(places: dict[str, Any], function: Callable[[Any], Any]) -> dict[str, Callable[[], Any]]:
    return {name: partial(function, place) for name, place in places.items()}


def _load(file: Path) -> Array:
    return np.asarray(np.load(file, allow_pickle=False))


def _load_member(path: Path, member: str) -> Array:
    with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


class _Mapped:
    """Rows of a .npy file."""

    def __init__(self, file: Path) -> None:
        self._array: Array = np.load(file, mmap_mode="r", allow_pickle=False)
        self.shape, self.dtype = self._array.shape, self._array.dtype

    def read(self, rows: Iterable[int]) -> Iterator[Array]:
        """These rows."""
        for row in rows:
            yield self._array[row]


class _Member:
    """Rows of one array of a .npz file."""

    def __init__(self, path: Path, member: str) -> None:
        self._path, self._name = path, member
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            version = np.lib.format.read_magic(stream)
            headers = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }
            if version not in headers:
                raise InputError(f"{path}: {member} is of the version {version}; allowed are {list(headers)}")
            self.shape, fortran, self.dtype = headers[version](stream)
            self._start = stream.tell()
        if fortran or self.dtype.hasobject:
            raise InputError(
                f"{path}: {member} is {self.dtype}, in Fortran's order: {fortran}; allowed are numbers in "
                "C's (np.ascontiguousarray)"
            )

    def read(self, rows: Iterable[int]) -> Iterator[Array]:
        """These rows."""
        size = math.prod(self.shape[1:]) * self.dtype.itemsize
        with (
            _damage(self._path, self._name),
            zipfile.ZipFile(self._path) as archive,
            archive.open(self._name) as stream,
        ):
            for row in rows:
                stream.seek(self._start + row * size)
                data = stream.read(size)
                if len(data) != size:
                    raise DamagedFileError(
                        f"{self._path}: {self._name} ends in row {row}; allowed are {self.shape[0]} whole"
                    )
                yield np.frombuffer(data, self.dtype).reshape(self.shape[1:])


@contextmanager
def _damage(path: Path, what: str) -> Iterator[None]:
    """Whatever goes wrong inside of a file is its damage: a codec's error, a claim beyond all memory."""
    try:
        yield
    except OcularError:
        raise
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise DamagedFileError(f"cannot read {what} of {path}: {why}; allowed is a whole file") from error
