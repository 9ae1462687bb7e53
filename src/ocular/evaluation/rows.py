"""Rows on disk: long-form, sorted, written whole or not at all, with their provenance beside them."""

from __future__ import annotations

import csv
import importlib.metadata
import io
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ocular.errors import DamagedFileError, InputError
from ocular.locks import make_folder, sole_writer
from ocular.sealed import atomic_write_bytes, strict_json

Row = dict[str, Any]
PACKAGES = ("ocular", "numpy", "scipy", "scikit-learn", "torch", "numba", "zarr")


def read_rows(path: Path) -> list[Row]:
    """All rows of a CSV, values as text."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, strict=True))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; allowed is a CSV file") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise DamagedFileError(f"{path} is not a CSV file: {error}; allowed is what a run wrote") from error
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise DamagedFileError(f"{path}, line {number}: {row}; allowed is a value for every column")
    return rows


@dataclass(frozen=True, slots=True)
class RowFile:
    """A CSV whose rows are known by `key`; adding a row again replaces it, so a resumed run ends the same."""

    path: Path
    key: tuple[str, ...]
    columns: tuple[str, ...]

    def read(self) -> list[Row]:
        """All rows, values as text; nothing when the file is not there yet."""
        if not self.path.exists():
            return []
        rows = read_rows(self.path)
        if rows and tuple(rows[0]) != self.columns:
            raise DamagedFileError(
                f"{self.path} has the columns {list(rows[0])}; allowed are {list(self.columns)}"
            )
        return rows

    def keys(self) -> set[tuple[str, ...]]:
        """The keys that are there already."""
        return {self._key(row) for row in self.read()}

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Merge rows in and rewrite the file, sorted, in one atomic step; untouched if nothing is new.

        Several processes may add to one file: each waits until the other has written.
        """
        new = [self._as_text(row) for row in rows]
        if self.path.exists() and self.path.read_bytes() == self._with(new):
            return
        make_folder(self.path.parent)
        with sole_writer(self.path, wait=True):
            atomic_write_bytes(self.path, self._with(new))

    def _as_text(self, row: Mapping[str, Any]) -> Row:
        if set(row) != set(self.columns):
            raise InputError(f"a row has the columns {sorted(row)}; allowed are {sorted(self.columns)}")
        return {name: _text(row[name]) for name in self.columns}

    def _with(self, new: Iterable[Row]) -> bytes:
        """What the file would be with these rows."""
        merged = {self._key(row): row for row in (*self.read(), *new)}
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(merged[key] for key in sorted(merged, key=_natural))
        return buffer.getvalue().encode()

    def _key(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in self.key)


def _natural(key: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    """Sort 2 before 10, and numbers before names."""
    return tuple((int(part), "") if part.isdecimal() else (10**18, part) for part in key)


def _text(value: object) -> str:
    # Six significant digits: far below Monte-Carlo noise, and the same text on every machine.
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class Provenance:
    """What made the rows of one file: configuration, and every run that added to them."""

    path: Path
    config: Mapping[str, Any]

    def check(self) -> None:
        """Raise when the rows there were made with another configuration; mixing them would be a lie."""
        made_with = self._read().get("config", None)
        wanted = json.loads(json.dumps(self.config))
        if made_with is not None and made_with != wanted:
            differing = sorted(
                k for k in made_with.keys() | wanted.keys() if made_with.get(k) != wanted.get(k)
            )
            raise InputError(
                f"{self.path} was made with another configuration: "
                + "; ".join(f"{k} was {made_with.get(k)!r}, now {wanted.get(k)!r}" for k in differing)
                + ". Allowed: the same configuration, or another output folder"
            )

    @contextmanager
    def start(self, *, workers: int) -> Iterator[RunRecord]:
        """A run that begins now, the only one of these rows; it leaves a trace with its first ones."""
        make_folder(self.path.parent)
        with sole_writer(self.path):
            self.check()
            yield RunRecord(self, workers, number=len(self.read()["runs"]))

    def write(self, record: Mapping[str, Any]) -> None:
        """Replace the file."""
        atomic_write_bytes(self.path, (json.dumps(record, indent=1) + "\n").encode())

    def read(self) -> dict[str, Any]:
        """Configuration and runs so far."""
        return self._read() or {"config": dict(self.config), "runs": []}

    def _read(self) -> dict[str, Any]:
        if not self.path.exists():
            return {}
        try:
            record = strict_json(self.path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise DamagedFileError(f"{self.path} is not JSON: {error}; allowed is what a run wrote") from None
        if not (
            isinstance(record, dict)
            and isinstance(record.get("config"), dict)
            and isinstance(record.get("runs"), list)
        ):
            raise DamagedFileError(f"{self.path} lacks config and runs; allowed is what a run wrote")
        return record


class RunRecord:
    """One run as it goes on: what it has made so far is on record, even if it is killed later."""

    def __init__(self, provenance: Provenance, workers: int, number: int) -> None:
        self._provenance, self._number = provenance, number
        self._started = time.monotonic()
        self._made_by = {
            "commit": current_commit(),
            "versions": {"python": platform.python_version(), **_versions()},
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "workers": workers,
        }

    def record(self, rows: Sequence[str], peak_gib: float) -> None:
        """All that this run has made so far, and the most memory that all its processes ever had.

        To be called before the rows are added: a kill between the two leaves one too many here, and the run
        that makes it again says so, too. The other way round there would be a row that nobody made.
        """
        entry = {
            **self._made_by,
            "wall_seconds": round(time.monotonic() - self._started, 1),
            "peak_memory_gib": round(peak_gib, 3),  # an upper bound
            "rows": list(rows),
        }
        record = self._provenance.read()
        record["runs"][self._number :] = [entry]
        self._provenance.write(record)


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def current_commit() -> str:
    """The commit of the source tree, marked when files differ from it; 'unknown' outside a checkout."""
    here = Path(__file__).parent
    try:
        commit = _git(here, "rev-parse", "HEAD")
        return commit + ("-modified" if _git(here, "status", "--porcelain", "--", "src", ":/src") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()
