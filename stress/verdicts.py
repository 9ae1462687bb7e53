"""What a disturbed run left: is every file that loads a right one, and is the end the same as undisturbed?

Hidden files do not count: temporaries and locks. Neither do figures that are never the same twice: times.
"""

from __future__ import annotations

import csv
import hashlib
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ocular.data import TransitionStore
from ocular.encoding.settings import CHECKPOINT_KIND
from ocular.errors import OcularError
from ocular.sealed import read_sealed

_TIMES = ("seconds", "step_ms_p50", "step_ms_p99")
_OF_AN_EPOCH = ("epoch", "best_epoch", "best_score", "seconds")
Content = Any  # a file's, without times


@dataclass(frozen=True, slots=True)
class Sealed:
    """A sealed file of ours, read with its checksum."""

    kind: str
    manifest: dict[str, Any]
    arrays: dict[str, str]  # digests


def same(folder: Path, final: Path) -> bool:
    """Whether both hold the same files with the same bytes, but for times."""
    mine, wanted = _files(folder), _files(final)
    return mine.keys() == wanted.keys() and all(_read(mine[name]) == _read(wanted[name]) for name in wanted)


def wrong_files(folder: Path, final: Path) -> list[str]:
    """Files that load, but are no earlier state of those of an undisturbed run."""
    wanted = _files(final)
    wrong = []
    for name, path in _files(folder).items():
        if name not in wanted or not _earlier(_read(path), _read(wanted[name])):
            wrong.append(name)
    for index in folder.rglob("index.sealed"):
        try:
            store = TransitionStore.open(index.parent)
            if store.parts:
                store.load()
        except OcularError as error:
            wrong.append(str(error))
    return wrong


def _files(folder: Path) -> dict[str, Path]:
    paths = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    hidden = {name for name in paths if any(part.startswith(".") for part in name.parts)}
    return {name.as_posix(): path for name, path in paths.items() if name not in hidden}


def _read(path: Path) -> Content:
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return [{k: v for k, v in row.items() if k not in _TIMES} for row in csv.DictReader(file)]
    if path.name.endswith(".provenance.json"):
        return json.loads(path.read_text())["config"]
    if path.suffix == ".sealed":
        return _read_sealed(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_sealed(path: Path) -> Sealed:
    with zipfile.ZipFile(path) as archive:
        kind = json.loads(archive.read("manifest.json"))["kind"]
    sealed = read_sealed(path, kind=kind, version=9)
    digests = {
        name: hashlib.sha256(repr((array.shape, array.dtype)).encode() + array.tobytes()).hexdigest()
        for name, array in sealed.arrays.items()
    }
    return Sealed(kind, {k: v for k, v in sealed.manifest.items() if k not in _TIMES}, digests)


def _earlier(now: Content, final: Content) -> bool:
    """Whether this may become the final content, without anything taken back."""
    if now == final:
        return True
    if isinstance(now, list):
        return all(row in final for row in now)
    if not isinstance(now, Sealed) or now.kind != final.kind:
        return False
    if now.kind == CHECKPOINT_KIND:
        return (
            _without_epoch(now) == _without_epoch(final) and now.manifest["epoch"] < final.manifest["epoch"]
        )
    if now.kind == "transition store":
        parts = now.manifest["parts"]
        return bool(parts == final.manifest["parts"][: len(parts)])
    return set(now.arrays.items()) <= set(final.arrays.items())  # drives so far


def _without_epoch(checkpoint: Sealed) -> dict[str, Any]:
    return {k: v for k, v in checkpoint.manifest.items() if k not in _OF_AN_EPOCH}
