"""The transition store: logged steps on disk, collected part by part, that notices when it was altered.

<store>/zarr.json     root group; its attributes say which labels, geometry and dimensions all parts share
<store>/index.sealed  the parts in order, each with the checksum of its seal; replacing it commits an append
<store>/<part>/       a group of sharded arrays, sealed (any zarr 3 reader opens it)
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import zarr

from ocular.data.parts import (
    SEAL,
    VERSION,
    Part,
    PartSummary,
    Shared,
    checksum,
    load_part,
    open_part,
    write_part,
)
from ocular.errors import DamagedFileError, InputError, check_choice, check_names, check_path, check_type
from ocular.locks import TEMPORARY, temporary_folder
from ocular.records import FootprintGeometry, LogPart, Logs, Transitions, concatenate
from ocular.sealed import read_manifest, sound_content, strict_json, sync_directory, write_sealed

_KIND = "transition store"
_ROOT, _INDEX = "zarr.json", "index.sealed"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


class TransitionStore:
    """Parts of logged transitions that share labels, footprint geometry and dimensions."""

    def __init__(self, path: Path, shared: Shared, parts: dict[str, Part]) -> None:
        self.path, self.shared, self._parts = path, shared, parts

    @classmethod
    def create(
        cls,
        path: str | Path,
        labels: tuple[str, ...],
        geometry: FootprintGeometry,
        state_dim: int,
        action_dim: int,
    ) -> TransitionStore:
        """Make an empty store in a new (or empty) directory."""
        check_path("path", path)
        shared = Shared(labels, geometry, state_dim, action_dim)
        path = Path(path).absolute()
        if not path.parent.is_dir():
            raise InputError(
                f"cannot create {path}: {path.parent} is no directory; allowed is an existing one"
            )
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise InputError(f"cannot create {path}: it exists; allowed is a new name (open() takes a store)")
        with _os_errors(f"cannot create {path}"), temporary_folder(path) as temporary:
            zarr.create_group(temporary, zarr_format=3, attributes={"version": VERSION, **shared.to_json()})
            _write_index(temporary, shared, ())
            os.rename(temporary, path)
            sync_directory(path.parent)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | Path) -> TransitionStore:
        """Open a store and check all that is cheap: versions, seals, and no file missing, extra or cut."""
        check_path("path", path)
        path = Path(path).absolute()
        return cls(path, *_read_index(path))

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts, in the order in which they were appended."""
        return tuple(self._parts)

    def summary(self) -> dict[str, PartSummary]:
        """What each part holds, without reading it."""
        return {name: part.summary for name, part in self._parts.items()}

    def append(self, name: str, transitions: Transitions) -> None:
        """Add a part; a kill at any moment leaves the store as it was, or with the whole part."""
        check_type("name", name, str)
        check_type("transitions", transitions, Transitions)
        with _os_errors(f"cannot append the part {name!r} to {self.path}"), _sole_writer(self.path):
            self.shared, self._parts = _read_index(self.path)  # another process may have appended meanwhile
            self._check_fits(name, transitions)
            _remove_leftovers(self.path, self._parts)
            with temporary_folder(self.path / name) as temporary:
                write_part(temporary, name, transitions)
                os.rename(temporary, self.path / name)
            sync_directory(self.path)
            part = open_part(self.path / name, checksum(self.path / name / SEAL))
            _write_index(self.path, self.shared, [*self._parts.values(), part])
            self._parts[name] = part

    def load(self, parts: Sequence[str] | None = None) -> Transitions:
        """Read these parts (all of them unless told) and join them, once every checksum was found to fit."""
        return concatenate([load_part(part, self.shared) for part in self._chosen(parts)])

    def logs(self, parts: Sequence[str] | None = None) -> Logs:
        """The same transitions in the same order, left on disk: each part is read when it is needed."""
        chosen = self._chosen(parts)
        return Logs(
            tuple(LogPart(p.summary.transitions, partial(load_part, p, self.shared)) for p in chosen),
            tuple(dict.fromkeys(name for p in chosen for name in p.summary.environments)),
        )

    def _chosen(self, parts: Sequence[str] | None) -> list[Part]:
        wanted = self.parts if parts is None else parts
        check_names("parts", wanted)
        if not wanted:
            raise InputError(f"no parts to load from {self.path}; allowed is at least one of {self.parts}")
        for name in wanted:
            check_choice("part", name, self.parts)
        return [self._parts[name] for name in wanted]

    def _check_fits(self, name: str, transitions: Transitions) -> None:
        if not _NAME.fullmatch(name) or name in (_ROOT, _INDEX):
            raise InputError(
                f"the part is named {name!r}; allowed are up to 100 of A-Z a-z 0-9 _ . - that start with a "
                f"letter or digit, and not {_ROOT} or {_INDEX}"
            )
        if name in self._parts:
            raise InputError(
                f"{self.path} has a part {name!r} already; allowed are names not in {self.parts}"
            )
        if len(set(transitions.environments)) != len(transitions.environments):
            raise InputError(f"environments are {transitions.environments}; allowed are distinct names")
        inputs = transitions.inputs
        got = (
            inputs.footprints.labels,
            inputs.footprints.geometry,
            inputs.states.shape[1],
            inputs.actions.shape[1],
        )
        want = (self.shared.labels, self.shared.geometry, self.shared.state_dim, self.shared.action_dim)
        for field, mine, stored in zip(
            ("labels", "geometry", "state_dim", "action_dim"), got, want, strict=True
        ):
            if mine != stored:
                raise InputError(f"the part {name!r} has {field} {mine}; allowed is the store's: {stored}")


def _read_index(path: Path) -> tuple[Shared, dict[str, Part]]:
    if not (path / _ROOT).is_file():
        raise InputError(f"{path} holds no {_ROOT}; allowed is the directory of a transition store")
    if not (path / _INDEX).is_file():
        raise DamagedFileError(f"{path} holds no {_INDEX}; allowed is a whole transition store")
    index = read_manifest(path / _INDEX, kind=_KIND, version=VERSION)
    found = checksum(path / _ROOT)
    if found != index.get("root"):
        raise DamagedFileError(
            f"{path / _ROOT} has the checksum {found}; allowed is the one in {_INDEX}: {index.get('root')}"
        )
    with sound_content(path / _INDEX, _KIND):
        shared = Shared.from_json(index["shared"])
        said = strict_json((path / _ROOT).read_bytes())["attributes"]
        if index.keys() != {"root", "shared", "parts"} or said != {"version": VERSION, **shared.to_json()}:
            raise InputError(f"{_ROOT} says {said}, the index {index}; allowed is the same in both")
        seals = dict(index["parts"])
        if len(seals) != len(index["parts"]) or not all(_NAME.fullmatch(name) for name in seals):
            raise InputError(f"the parts are {index['parts']}; allowed are distinct names of folders within")
    return shared, {name: open_part(path / name, seal) for name, seal in seals.items()}


def _write_index(path: Path, shared: Shared, parts: Iterable[Part]) -> None:
    manifest = {
        "root": checksum(path / _ROOT),
        "shared": shared.to_json(),
        "parts": [[part.directory.name, part.seal] for part in parts],
    }
    write_sealed(path / _INDEX, kind=_KIND, version=VERSION, manifest=manifest, arrays={})


def _remove_leftovers(path: Path, parts: dict[str, Part]) -> None:
    """Delete what killed appends left: temporaries, and a finished part that never came into the index."""
    for entry in path.iterdir():
        if entry.name not in parts and (entry / SEAL).is_file():
            # Renamed first: killed on the way, without its seal, it would be a stranger's from then on.
            os.rename(entry, path / TEMPORARY.format(secrets.token_hex(8)))
    for entry in path.glob(TEMPORARY.format("*")):
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


@contextmanager
def _sole_writer(path: Path) -> Iterator[None]:
    """Hold the store's lock, which the system drops with the process that holds it, killed or not."""
    with open(path / _ROOT, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"another writer is appending to {path}; allowed is one at a time") from error
        yield


@contextmanager
def _os_errors(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{what}: {error.strerror or error}; allowed is a writable directory with room"
        ) from error


def join_logs(sources: Sequence[tuple[TransitionStore, Sequence[str]]]) -> Logs:
    """These parts of several stores that share labels, footprint geometry and dimensions."""
    first = sources[0][0]
    for store, _ in sources[1:]:
        if store.shared != first.shared:
            raise InputError(
                f"{store.path} has {store.shared}; allowed is the same as in {first.path}: {first.shared}"
            )
    each = [store.logs(parts) for store, parts in sources if parts]
    return Logs(
        tuple(part for logs in each for part in logs.parts),
        tuple(dict.fromkeys(name for logs in each for name in logs.environments)),
    )
