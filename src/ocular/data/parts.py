"""One part of a transition store: a directory of zarr arrays, and a seal that says which bytes belong in it.

Checksums come before zarr, which reads a missing chunk as zeros without a word.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import zarr
from zarr.codecs import BloscCodec

from ocular.data.layout import Layout
from ocular.errors import DamagedFileError, InputError, check_type, check_whole
from ocular.records import FootprintGeometry, Footprints, Indices, Inputs, Labels, Transitions, check_labels
from ocular.sealed import check_regular, read_manifest, sound_content, sync_directory, write_sealed

VERSION = 1  # of the store's format, parts included
SEAL = "part.sealed"

_KIND = "transition store part"
_COUNTS = ("transitions", "footprints", "environments")


@dataclass(frozen=True, slots=True)
class Shared:
    """What all parts of a store have in common."""

    labels: tuple[str, ...]
    geometry: FootprintGeometry
    state_dim: int
    action_dim: int

    def __post_init__(self) -> None:
        check_labels(self.labels)
        check_type("geometry", self.geometry, FootprintGeometry)
        check_whole("state_dim", self.state_dim, least=1)
        check_whole("action_dim", self.action_dim, least=1)

    def to_json(self) -> dict[str, Any]:
        """As JSON objects."""
        dims = {"state_dim": int(self.state_dim), "action_dim": int(self.action_dim)}
        return {**asdict(self), **dims, "labels": list(self.labels)}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Shared:
        """The inverse of to_json."""
        geometry = FootprintGeometry(**fields["geometry"])
        return cls(tuple(fields["labels"]), geometry, fields["state_dim"], fields["action_dim"])


@dataclass(frozen=True, slots=True)
class PartSummary:
    """What a part holds."""

    transitions: int
    footprints: int  # distinct ones
    environments: dict[str, int]  # transitions in each
    files: int
    size: int  # [bytes] on disk, without the seal


@dataclass(frozen=True, slots=True)
class Part:
    """A part as its seal describes it."""

    directory: Path
    seal: str  # checksum of the seal
    summary: PartSummary
    sizes: dict[str, int]  # of each file, by its path inside the directory
    checksums: dict[str, str]  # likewise


def write_part(directory: Path, name: str, transitions: Transitions) -> None:
    """Fill a new directory and seal it."""
    inputs = transitions.inputs
    index, cells = _distinct_footprints(inputs)
    counts = np.bincount(transitions.environment, minlength=len(transitions.environments))
    contents = {
        "transitions": len(transitions),
        "footprints": len(cells),
        "environments": [[known, int(n)] for known, n in zip(transitions.environments, counts, strict=True)],
    }
    group = zarr.create_group(directory, zarr_format=3, attributes={"name": name, **contents})
    values: dict[str, npt.NDArray[Any]] = {
        "states": inputs.states,
        "actions": inputs.actions,
        "next_states": transitions.next_states,
        "headings": inputs.headings,
        "environment": transitions.environment,
        "footprint_index": index,
        "footprints": cells,
    }
    for field, dtype in _DTYPES.items():
        _write_array(group, field, values[field].astype(dtype, casting="safe"))
    _flush(directory)
    files = [[file, size, checksum(directory / file)] for file, size in _sizes(directory).items()]
    manifest = {"name": name, **contents, "files": files}
    write_sealed(directory / SEAL, kind=_KIND, version=VERSION, manifest=manifest, arrays={})


def open_part(directory: Path, seal: str) -> Part:
    """Check a part's seal against its checksum, and that no file is missing, extra, or of another size."""
    if not (directory / SEAL).is_file():
        raise DamagedFileError(f"{directory} has no {SEAL}; allowed is a whole part")
    found = checksum(directory / SEAL)
    manifest = read_manifest(directory / SEAL, kind=_KIND, version=VERSION)
    if found != seal:
        raise DamagedFileError(
            f"{directory / SEAL} has the checksum {found}; allowed is the one in the store's index: {seal}"
        )
    with sound_content(directory / SEAL, _KIND):
        part = _described(directory, seal, manifest)
    _check_sizes(directory, part.sizes)
    return part


def _described(directory: Path, seal: str, manifest: dict[str, Any]) -> Part:
    """The part of this manifest, whose numbers must be numbers and add up."""
    name, files, environments = (manifest[field] for field in ("name", "files", "environments"))
    if name != directory.name or manifest.keys() != {"name", "files", *_COUNTS}:
        raise InputError(f"it is of the part {name!r} with {sorted(manifest)}; allowed is {directory.name!r}")
    for count in (manifest["transitions"], manifest["footprints"], *(n for _, n in environments)):
        check_whole("a count", count, least=0)
    for file, size, digest in files:
        check_whole(f"the size of {file!r}", size, least=0)
        if not isinstance(file, str) or not isinstance(digest, str):
            raise InputError(f"the file {file!r} has the checksum {digest!r}; allowed are texts")
    summary = PartSummary(
        transitions=manifest["transitions"],
        footprints=manifest["footprints"],
        environments=dict(environments),
        files=len(files),
        size=sum(size for _, size, _ in files),
    )
    if (
        len(summary.environments) != len(environments)
        or not all(isinstance(known, str) for known in summary.environments)
        or sum(summary.environments.values()) != summary.transitions
        or summary.footprints > summary.transitions
        or len({file for file, _, _ in files}) != len(files)
    ):
        raise InputError(
            f"the counts {summary} or names do not fit; allowed are distinct names and right sums"
        )
    return Part(
        directory=directory,
        seal=seal,
        summary=summary,
        sizes={file: size for file, size, _ in files},
        checksums={file: digest for file, _, digest in files},
    )


def load_part(part: Part, shared: Shared) -> Transitions:
    """Read a part once every checksum was found to fit, and its arrays are those that the seal counts."""
    for file, want in part.checksums.items():
        found = checksum(part.directory / file)
        if found != want:
            raise DamagedFileError(
                f"{part.directory / file} is damaged: it has the checksum {found}; allowed is {want}"
            )
    arrays = {field: _read_array(part, layout, field) for field, layout in _layouts(part, shared).items()}
    environments = tuple(part.summary.environments)
    try:
        inputs = Inputs(
            states=arrays["states"],
            actions=arrays["actions"],
            headings=arrays["headings"],
            footprint_index=arrays["footprint_index"],
            footprints=Footprints(arrays["footprints"], shared.labels, shared.geometry),
        )
        transitions = Transitions(inputs, arrays["next_states"], arrays["environment"], environments)
    except InputError as error:
        raise DamagedFileError(f"{part.directory} contradicts itself: {error}") from error
    counts = np.bincount(transitions.environment, minlength=len(environments)).tolist()
    if counts != list(part.summary.environments.values()):
        raise DamagedFileError(
            f"{part.directory} holds {counts} transitions of {environments}; "
            f"allowed are those of its seal: {part.summary.environments}"
        )
    return transitions


def checksum(file: Path) -> str:
    """SHA-256 of a file's bytes."""
    try:
        check_regular(file)
        with open(file, "rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise DamagedFileError(f"cannot read {file}: {error.strerror}; allowed is a readable file") from error
    except InputError as error:
        raise DamagedFileError(f"{error}") from error


_DTYPES = {
    "states": np.float64,  # (n, d)
    "actions": np.float64,  # (n, m)
    "next_states": np.float64,  # (n, d)
    "headings": np.float64,  # (n,) [rad]
    "environment": np.int64,  # (n,)
    "footprint_index": np.int64,  # (n,)
    "footprints": np.uint8,  # (k, angles, ranges)
}


def _distinct_footprints(inputs: Inputs) -> tuple[Indices, Labels]:
    """An index into the footprints that some row looks at, and these footprints, each once."""
    cells = inputs.footprints.cells
    kept: dict[bytes, int] = {}  # digest of an image -> its new row
    first: list[int] = []  # the old row of each new one
    renumbered = np.zeros(len(cells), np.int64)
    for row in np.unique(inputs.footprint_index):
        digest = hashlib.sha256(cells[row].tobytes()).digest()
        if digest not in kept:
            kept[digest] = len(first)
            first.append(int(row))
        renumbered[row] = kept[digest]
    return renumbered[inputs.footprint_index], cells[np.array(first, np.int64)]


def _layouts(part: Part, shared: Shared) -> dict[str, Layout]:
    """What the arrays of a part must look like."""
    n, k, geometry = part.summary.transitions, part.summary.footprints, shared.geometry
    shapes: dict[str, tuple[int, ...]] = {
        "states": (n, shared.state_dim),
        "actions": (n, shared.action_dim),
        "next_states": (n, shared.state_dim),
        "headings": (n,),
        "environment": (n,),
        "footprint_index": (n,),
        "footprints": (k, geometry.angles, geometry.ranges),
    }
    return {field: Layout.of(field, shapes[field], dtype) for field, dtype in _DTYPES.items()}


def _write_array(group: zarr.Group, field: str, values: npt.NDArray[Any]) -> None:
    layout = Layout.of(field, values.shape, values.dtype)
    array = group.create_array(
        field,
        shape=values.shape,
        dtype=values.dtype,
        chunks=layout.chunk_shape,
        shards=layout.shard_shape,
        compressors=BloscCodec(cname="zstd", clevel=5, shuffle="shuffle"),
        config={"write_empty_chunks": True},  # so that every chunk is on disk, and missing means damaged
    )
    array[...] = values


def _read_array(part: Part, layout: Layout, field: str) -> npt.NDArray[Any]:
    directory = part.directory / field
    sizes = {f.removeprefix(f"{field}/"): n for f, n in part.sizes.items() if f.startswith(f"{field}/")}
    layout.check(directory, sizes)
    try:
        return np.asarray(zarr.open_array(directory, mode="r", zarr_format=3)[...])
    except (LookupError, RuntimeError, TypeError, ValueError) as error:  # of zarr and its codecs
        raise DamagedFileError(
            f"{directory} cannot be read: {error!r}; allowed is what ocular wrote"
        ) from error


def _sizes(directory: Path) -> dict[str, int]:
    """Size of every file below a directory but the seal, by relative path, sorted."""
    files = [file for file in directory.rglob("*") if not file.is_dir() and file != directory / SEAL]
    return {file.relative_to(directory).as_posix(): file.lstat().st_size for file in sorted(files)}


def _check_sizes(directory: Path, want: dict[str, int]) -> None:
    found = _sizes(directory)
    for file in want.keys() - found.keys():
        raise DamagedFileError(
            f"{directory} lacks the file {file}; allowed are all {len(want)} of its {SEAL}"
        )
    for file in found.keys() - want.keys():
        raise DamagedFileError(f"{directory} has an extra file {file}; allowed are those of its {SEAL}")
    for file, size in want.items():
        if found[file] != size:
            raise DamagedFileError(f"{directory / file} has {found[file]} bytes; allowed are {size}")


def _flush(directory: Path) -> None:
    """Make everything below a directory last through a power cut."""
    for folder, _, names in os.walk(directory):
        for name in names:
            with open(Path(folder, name), "rb") as file:
                os.fsync(file.fileno())
        sync_directory(Path(folder))
