"""Fill a store from planned recordings, so that a killed import goes on where it was.

<store>/imports/<environment>.<digest>.sealed   a source and its settings: what became of each part so far
<store>/<environment>.<digest>.<part>           the transitions of that part, if any were left

A part's entry is written before its transitions are appended. So a part is done when it has an entry and is
in the store, or its entry says that nothing of it was used; any other is made (again).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ocular.data.importers.base import Recording, Target, identity
from ocular.data.store import TransitionStore
from ocular.errors import InputError, check_whole
from ocular.locks import make_folder, sole_writer
from ocular.progress import progress
from ocular.sealed import read_manifest, sound_content, write_sealed

PART_ROWS = 2048  # steps in a part: their footprints must fit in memory, and are lost by a kill
FEW = 100  # transitions below which an environment says little

_KIND, _VERSION = "import", 1
_FOLDER = "imports"
_ENVIRONMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one recording."""

    path: str
    steps: int  # found: used or dropped
    used: int
    dropped: dict[str, int]  # by reason, the commonest first
    notes: tuple[str, ...]
    resumed: int  # steps that an earlier run had dealt with already


def check_environment(name: str) -> None:
    """Raise unless parts can be named after it."""
    if not _ENVIRONMENT.fullmatch(name):
        raise InputError(
            f"the environment is named {name!r}; allowed are up to 60 of A-Z a-z 0-9 _ - that start with a "
            "letter or digit"
        )


def import_recordings(store: Path, target: Target, recordings: Sequence[Recording]) -> list[Result]:
    """Append what these recordings hold to the store, which is made if it is not there."""
    if not any(len(recording.steps) for recording in recordings):
        reasons = [_explain(recording) for recording in recordings]
        raise InputError(
            f"nothing can be used of {'; '.join(reasons)}; allowed is a recording with at least one whole "
            "step: state, action, next state and view. Nothing was written"
        )
    with sole_writer(store):  # its journals, too
        return _import_all(store, target, recordings)


def _import_all(store: Path, target: Target, recordings: Sequence[Recording]) -> list[Result]:
    journals = [_Journal.of(store, recording) for recording in recordings]
    digests = [journal.digest for journal in journals]
    for recording, digest in zip(recordings, digests, strict=True):
        if digests.count(digest) > 1:
            raise InputError(f"{recording.path} is named twice; allowed are different recordings")
    opened = _open(store, target, recordings)
    return [
        _import(opened, recording, journal) for recording, journal in zip(recordings, journals, strict=True)
    ]


def _open(store: Path, target: Target, recordings: Sequence[Recording]) -> TransitionStore:
    """The store, once it is sure that all recordings fit."""
    sizes = [(each.path, each.steps.states.shape[1], each.steps.actions.shape[1]) for each in recordings]
    wanted = sizes[0][1:]
    if store.exists():
        shared = TransitionStore.open(store).shared
        wanted = shared.state_dim, shared.action_dim
        if (shared.labels, shared.geometry) != (target.labels, target.geometry):
            raise InputError(
                f"the import is to have the labels {target.labels} and footprints of {target.geometry}; "
                f"allowed are those of {store}: {shared.labels} and {shared.geometry}"
            )
    for path, state_dim, action_dim in sizes:
        if (state_dim, action_dim) != wanted:
            raise InputError(
                f"{path} has states of {state_dim} and actions of {action_dim} entries; allowed are "
                f"{wanted[0]} and {wanted[1]}, as in the rest of the store"
            )
    if store.exists():
        return TransitionStore.open(store)
    return TransitionStore.create(store, target.labels, target.geometry, *wanted)


def _explain(recording: Recording) -> str:
    account = recording.account
    reasons = [f"{count:,} steps: {reason}" for reason, count in account.dropped.most_common()]
    return f"{recording.path} ({', '.join([*reasons, *account.notes]) or 'it holds no step'})"


def _import(store: TransitionStore, recording: Recording, journal: _Journal) -> Result:
    parts = range(0, len(recording.steps), PART_ROWS)
    resumed = 0
    with progress(f"importing {recording.path.name}", len(parts)) as advance:
        for number, start in enumerate(parts):
            rows = slice(start, min(start + PART_ROWS, len(recording.steps)))
            name = f"{journal.name}.{number:06d}"
            if journal.done(number, name in store.parts):
                resumed += rows.stop - rows.start
            else:
                transitions, dropped = recording.read(rows)
                journal.enter(number, len(transitions), dropped)
                if len(transitions):
                    store.append(name, transitions)
            advance(f"{rows.stop:,} steps")
    dropped = recording.account.dropped + journal.dropped()
    used = journal.used()
    notes = list(recording.account.notes)
    if used < FEW:
        notes.append(f"only {used} transitions: too few for cells of their own; join them with more logs")
    return Result(
        path=str(recording.path),
        steps=used + dropped.total(),
        used=used,
        dropped=dict(dropped.most_common()),
        notes=tuple(notes),
        resumed=resumed,
    )


@dataclass(frozen=True)
class _Journal:
    """What has become of each part of one recording so far, on disk."""

    folder: Path
    environment: str
    source: str
    settings: dict[str, Any]
    entries: dict[int, tuple[int, dict[str, int]]]  # part -> transitions used, steps dropped by reason

    @classmethod
    def of(cls, store: Path, recording: Recording) -> _Journal:
        """That of an earlier run, or an empty one."""
        settings = json.loads(json.dumps({**recording.settings, "part_rows": PART_ROWS}))
        journal = cls(
            folder=store / _FOLDER,
            environment=recording.target.environment,
            source=identity(recording.path),
            settings=settings,
            entries={},
        )
        for file in sorted(journal.folder.glob("*.sealed")):
            known = read_manifest(file, kind=_KIND, version=_VERSION)
            with sound_content(file, _KIND):
                entries = {part: (used, dict(dropped)) for part, used, dropped in known["parts"]}
                for part, (used, dropped) in entries.items():
                    for number in (part, used, *dropped.values()):
                        check_whole("a number in a journal", number, least=0)
                same_source, its_settings = known["source"] == journal.source, known["settings"]
            if same_source:
                _check_same(recording.path, store, its_settings, settings)
                journal.entries.update(entries)
        return journal

    @property
    def digest(self) -> str:
        """Of the source and the settings."""
        text = json.dumps([self.source, self.settings], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def name(self) -> str:
        """What the parts are named after."""
        return f"{self.environment}.{self.digest}"

    def done(self, number: int, stored: bool) -> bool:
        """Whether nothing is left to do for this part."""
        return number in self.entries and (stored or self.entries[number][0] == 0)

    def enter(self, number: int, used: int, dropped: Counter[str]) -> None:
        """Write down what becomes of a part."""
        self.entries[number] = (used, dict(dropped))
        make_folder(self.folder)
        parts = [[number, used, dropped] for number, (used, dropped) in sorted(self.entries.items())]
        manifest = {"source": self.source, "settings": self.settings, "parts": parts}
        file = self.folder / f"{self.name}.sealed"
        write_sealed(file, kind=_KIND, version=_VERSION, manifest=manifest, arrays={})

    def used(self) -> int:
        """Transitions in the store."""
        return sum(used for used, _ in self.entries.values())

    def dropped(self) -> Counter[str]:
        """Steps that were dropped when their views were read."""
        return sum((Counter(dropped) for _, dropped in self.entries.values()), Counter[str]())


def _check_same(path: Path, store: Path, known: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Raise when a source is in the store already, but under other settings."""
    for name in sorted(known.keys() | wanted.keys()):
        if known.get(name) != wanted.get(name):
            raise InputError(
                f"{path} is in {store} already, imported with {name} = {known.get(name)}, and is now to be "
                f"imported with {wanted.get(name)}; allowed are the same settings, or another store"
            )
