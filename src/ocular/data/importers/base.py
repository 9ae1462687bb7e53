"""What every importer hands over: a recording, looked through before anything is written.

An importer plans first: it reads states, actions and times, matches them, and counts what it must drop. Only
then are images read, part by part. So whatever is wrong with a recording as a whole is said before the store
is touched, and no more than one part's footprints are in memory.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ocular.errors import InputError, check_shape
from ocular.footprint import ClassTable
from ocular.progress import progress
from ocular.records import Floats, FootprintGeometry, Footprints, Indices, Inputs, Labels, Transitions

RESTING = 1e-6  # [m/s]; below it velocity has no direction
T = TypeVar("T")
_STRIDE = 100  # items between two reports of progress
_EDGE = 4096  # [bytes] at a file's start and end, by which it is told from another of its name and size


@dataclass(frozen=True, slots=True)
class Target:
    """Where transitions go: one environment, and the vocabulary and grid of its store."""

    environment: str
    labels: tuple[str, ...]
    geometry: FootprintGeometry
    table: ClassTable | None = None  # what raw classes mean; footprints that are ready need none
    flatness: float = 0.25  # of a ground pixel's depth, see Projector

    def settings(self) -> dict[str, Any]:
        """As JSON objects."""
        classes = None if self.table is None else [dict(self.table.label_of), self.table.missing]
        return {
            **{"environment": self.environment, "labels": list(self.labels)},
            **{"geometry": asdict(self.geometry), "classes": classes, "flatness": self.flatness},
        }

    def need_table(self) -> ClassTable:
        """The class table, which images cannot be read without."""
        if self.table is None:
            raise InputError("there is no class table; allowed is a TOML file: images need one (--classes)")
        return self.table


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a recording, in order, and which view each looks at."""

    states: Floats  # (n, d)
    actions: Floats  # (n, m)
    next_states: Floats  # (n, d)
    headings: Floats  # (n,) [rad]
    views: Indices  # (n,)

    def __post_init__(self) -> None:
        n = len(self.states)
        check_shape("states", self.states, (None, None))
        check_shape("actions", self.actions, (n, None))
        check_shape("next_states", self.next_states, self.states.shape)
        check_shape("headings", self.headings, (n,))
        check_shape("views", self.views, (n,))

    def __len__(self) -> int:
        return len(self.states)

    def take(self, rows: Any) -> Steps:
        """These rows only: a slice, indices or flags."""
        return Steps(*(getattr(self, each.name)[rows] for each in fields(self)))


@dataclass(slots=True)
class Account:
    """What was left out of a recording, and why."""

    dropped: Counter[str] = field(default_factory=Counter)  # steps, by reason
    notes: list[str] = field(default_factory=list)  # on what is no step: messages, classes, the camera

    def keep(self, steps: Steps, good: Any, reason: str) -> Steps:
        """The steps with this flag; the others are counted."""
        bad = len(good) - int(np.count_nonzero(good))
        if bad:
            self.dropped[reason] += bad
        return steps.take(good) if bad else steps

    def keep_finite(self, steps: Steps, names: Sequence[str]) -> Steps:
        """The steps without NaN or infinity in these."""
        for name in names:
            good = np.isfinite(getattr(steps, name)).all(axis=1)
            steps = self.keep(steps, good, f"{name.replace('_', ' ')} not finite")
        return steps

    def note_classes(self, table: ClassTable, found: Iterable[str]) -> None:
        """Raise, or take note of, classes that the table lacks."""
        classes = sorted(set(found))
        table.numbers(classes)
        lacking = [name for name in classes if name not in table.label_of]
        if lacking:
            self.notes.append(f"classes that are not in the table, taken for UNKNOWN: {', '.join(lacking)}")


class Recording(ABC):
    """One planned source. `settings` is all that decides its transitions, apart from the source itself."""

    def __init__(
        self, path: Path, settings: dict[str, Any], target: Target, steps: Steps, account: Account
    ) -> None:
        self.path, self.target, self.steps, self.account = path, target, steps, account
        self.settings = {**settings, **target.settings()}

    @abstractmethod
    def look(self, views: Indices) -> list[Labels | str]:
        """The footprint of each of these ascending views, or the reason why there is none."""

    def read(self, rows: slice) -> tuple[Transitions, Counter[str]]:
        """The transitions of these steps, and why some of them were dropped."""
        steps, dropped = self.steps.take(rows), Counter[str]()
        views, index = np.unique(steps.views, return_inverse=True)
        seen = self.look(views)
        dropped.update(reason for reason in (seen[i] for i in index) if isinstance(reason, str))
        cells = [found for found in seen if not isinstance(found, str)]
        good = np.array([not isinstance(found, str) for found in seen], dtype=bool)
        kept, index = good[index], (np.cumsum(good) - 1)[index]
        geometry = self.target.geometry
        images = np.array(cells, np.uint8).reshape(len(cells), geometry.angles, geometry.ranges)
        steps = steps.take(kept)
        inputs = Inputs(
            states=steps.states,
            actions=steps.actions,
            headings=steps.headings,
            footprint_index=index[kept].astype(np.int64),
            footprints=Footprints(images, self.target.labels, geometry),
        )
        here = np.zeros(len(steps), np.int64)
        return Transitions(inputs, steps.next_states, here, (self.target.environment,)), dropped


class Importer(ABC):
    """The options of one format."""

    @abstractmethod
    def plan(self, path: Path, target: Target) -> Recording:
        """Look through a recording: what can be used, and what not. Nothing is written."""


def tracked(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """The same items, with progress."""
    with progress(what, -(-total // _STRIDE)) as advance:
        for number, item in enumerate(items, 1):
            yield item
            if number % _STRIDE == 0:
                advance(f"{number:,} of {total:,}")


def identity(path: Path) -> str:
    """A checksum by which a source is known again: names, sizes and edges of its files, not where it lies."""
    files = sorted(entry for entry in path.rglob("*") if entry.is_file()) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        size = file.stat().st_size
        name = file.relative_to(path).as_posix() if path.is_dir() else ""
        digest.update(f"{name}\0{size}\0".encode())
        with open(file, "rb") as opened:
            digest.update(opened.read(_EDGE))
            opened.seek(max(0, size - _EDGE))
            digest.update(opened.read(_EDGE))
    return digest.hexdigest()


def check_exists(path: Path) -> None:
    """Raise unless there is such a file or folder."""
    if not path.exists():
        raise InputError(f"there is no {path}; allowed is a recording that exists")
