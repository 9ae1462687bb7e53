"""Sealed files: a JSON manifest and named arrays in one file that cannot lie about its content.

A sealed file is a plain ZIP (`unzip -l` works) with two stored members, manifest.json and arrays.safetensors.
Its archive comment, the last bytes of the file, holds the SHA-256 of every byte before it: a changed, cut or
added byte anywhere is noticed before anything is parsed. The same content gives the same bytes, and reading
runs no code.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import secrets
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from ocular.errors import DamagedFileError, InputError, check_path
from ocular.locks import TEMPORARY, check_file, claim_temporary, sweep_temporaries

Arrays = dict[str, npt.NDArray[Any]]

_ENVELOPE = 1  # version of this container, apart from the version of what it holds
_MANIFEST, _ARRAYS = "manifest.json", "arrays.safetensors"
_MARKER = b"ocular sealed sha256 "
_SEAL_LENGTH = len(_MARKER) + 2 * hashlib.sha256().digest_size
_ITEM_BYTES = {
    name: np.dtype(name).itemsize
    for name in (
        *("float64", "float32", "float16", "bool"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    )
}


@dataclass(frozen=True, slots=True)
class Sealed:
    """What a sealed file holds, checked."""

    manifest: dict[str, Any]
    arrays: Arrays
    version: int  # of the content: at most the version that the reader asked for


def write_sealed(
    path: str | Path,
    *,
    kind: str,
    version: int,
    manifest: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Write a sealed file of this kind; a kill at any moment leaves the old file or the new one.

    The keys of the manifest come back sorted and its tuples as lists; it refuses whatever else JSON changes.
    """
    tensors = {name: _native(name, array) for name, array in arrays.items()}
    document = {
        "sealed": _ENVELOPE,
        "kind": kind,
        "version": version,
        "arrays": {name: _description(array) for name, array in tensors.items()},
        "manifest": _plain("manifest", manifest),
    }
    text = json.dumps(document, sort_keys=True, indent=1, allow_nan=False).encode()
    body = _zip({_MANIFEST: text, _ARRAYS: safetensors.numpy.save(tensors)})
    atomic_write_bytes(path, body + _seal(body))


def read_sealed(path: str | Path, *, kind: str, version: int) -> Sealed:
    """Read a sealed file of this kind, of this version or an older one."""
    check_path("path", path)
    path = Path(path)
    body = _read_checked(path)
    members = _unzip(path, body)
    document = _document(path, members[_MANIFEST], kind, version)
    arrays = _arrays(path, members[_ARRAYS], document["arrays"])
    return Sealed(manifest=document["manifest"], arrays=arrays, version=document["version"])


def atomic_write_bytes(path: str | Path, data: bytes) -> None:
    """Write `data` to a temporary name in the same directory, flush it to disk, and rename it to `path`."""
    with replacing(path) as file:
        file.write(data)


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A temporary file that takes the place of `path` in one step, once it is filled and on disk."""
    check_path("path", path)
    target = Path(os.path.realpath(path))  # a link stays a link: what it points at is replaced
    check_file(target)
    temporary = target.with_name(TEMPORARY.format(secrets.token_hex(8)))
    try:
        sweep_temporaries(target.parent)
        try:
            with open(temporary, "xb") as file:
                claim_temporary(file.fileno())
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(target.parent)
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}; "
            "allowed is a file in an existing, writable directory with room"
        ) from error


def sync_directory(path: Path) -> None:
    """Make the names in a directory last through a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _seal(body: bytes) -> bytes:
    return _MARKER + _digest(body).encode()


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _native(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same values in C order and native byte order."""
    native = np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
    if native.dtype.name not in _ITEM_BYTES:
        raise InputError(f"array {name!r} has dtype {array.dtype}; allowed are {', '.join(_ITEM_BYTES)}")
    if name == "__metadata__":
        raise InputError(f"an array is named {name!r}; allowed is any other name: safetensors keeps this one")
    return native


def _description(array: npt.NDArray[Any]) -> dict[str, Any]:
    return {"dtype": array.dtype.name, "shape": list(array.shape)}


def _plain(where: str, value: object) -> Any:
    """`value` if JSON gives it back unchanged (tuples come back as lists)."""
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InputError(f"{where} has the key {key!r}; allowed are strings")
        return {key: _plain(f"{where}[{key!r}]", item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(f"{where}[{i}]", item) for i, item in enumerate(value)]
    if (
        value is None
        or isinstance(value, str | bool | int)
        or (isinstance(value, float) and math.isfinite(value))
    ):
        return value
    raise InputError(
        f"{where} is {value!r} ({type(value).__name__}); allowed are text, finite Python numbers, "
        "true, false, null, lists and mappings of them: anything else belongs among the arrays"
    )


def _zip(members: Mapping[str, bytes]) -> bytes:
    """A ZIP whose comment is still to be appended, its length already announced."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o644 << 16  # the same on every platform
            archive.writestr(info, data)
        archive.comment = bytes(_SEAL_LENGTH)
    return buffer.getvalue()[:-_SEAL_LENGTH]


def _read_checked(path: Path) -> bytes:
    """The whole file; nothing of it is interpreted before its seal is found to fit."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _SEAL_LENGTH))
            if not file.read().startswith(_MARKER):
                raise DamagedFileError(
                    f"{path} ends without a seal after {size} bytes: it is cut short, has bytes added, or is "
                    f"no sealed file; allowed is a file that ends in {_MARKER.decode()!r} and a checksum"
                )
            file.seek(0)
            content = file.read()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; allowed is a readable file") from error
    body, seal = content[:-_SEAL_LENGTH], content[-_SEAL_LENGTH:]
    if seal != _seal(body):
        raise DamagedFileError(
            f"{path} is damaged: its {len(body)} bytes have the checksum {_digest(body)}; "
            f"allowed is the one in its seal: {seal[len(_MARKER) :].decode(errors='replace')}"
        )
    return body


def _unzip(path: Path, body: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(body + bytes(_SEAL_LENGTH))) as archive:
            found = [(i.filename, i.compress_type) for i in archive.infolist()]
            if found != [(_MANIFEST, zipfile.ZIP_STORED), (_ARRAYS, zipfile.ZIP_STORED)]:
                raise DamagedFileError(
                    f"{path} has the members (name, compression) {found}; "
                    f"allowed are {_MANIFEST} and {_ARRAYS}, both stored"
                )
            return {name: archive.read(name) for name, _ in found}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise DamagedFileError(f"{path} holds no readable ZIP ({error}); allowed is a plain one") from error


def _document(path: Path, text: bytes, kind: str, version: int) -> dict[str, Any]:
    """The manifest with its envelope, if it is of this kind and not newer than `version`."""
    try:
        document = json.loads(text)
        envelope = document["sealed"]
        found_kind, found_version = document["kind"], document["version"]
        well_formed = (
            all(type(number) is int for number in (envelope, found_version))
            and isinstance(document["manifest"], dict)
            and isinstance(document["arrays"], dict)
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedFileError(
            f"{path}: {_MANIFEST} cannot be read ({error!r}); allowed is the layout {_ENVELOPE}"
        ) from error
    if not well_formed:
        raise DamagedFileError(
            f"{path}: {_MANIFEST} has fields of other types; allowed is the layout {_ENVELOPE}"
        )
    if envelope > _ENVELOPE:
        raise DamagedFileError(
            f"{path} is a sealed file of layout {envelope}; allowed is at most {_ENVELOPE}: upgrade ocular"
        )
    if found_kind != kind:
        raise DamagedFileError(f"{path} is of kind {found_kind!r}; allowed is {kind!r}")
    if not 0 <= found_version <= version:
        raise DamagedFileError(
            f"{path} is a {kind} of version {found_version}; allowed is at most {version}: upgrade ocular"
        )
    return dict(document)


def _arrays(path: Path, data: bytes, claims: dict[str, Any]) -> Arrays:
    """The arrays, if they are those that the manifest claims; the claims are added up before loading."""
    try:
        claimed = sum(math.prod(claim["shape"]) * _ITEM_BYTES[claim["dtype"]] for claim in claims.values())
        if claimed > len(data):
            raise DamagedFileError(
                f"{path} claims {claimed} bytes of arrays; allowed are the {len(data)} that it has"
            )
        arrays: Arrays = safetensors.numpy.load(data)
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(
            f"{path}: {_ARRAYS} cannot be read ({error!r}); allowed is safetensors"
        ) from error
    found = {name: _description(array) for name, array in arrays.items()}
    if found != claims:
        raise DamagedFileError(
            f"{path} holds the arrays {found}; allowed are those of its manifest: {claims}"
        )
    return {name: arrays[name] for name in claims}
