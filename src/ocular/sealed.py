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
import stat
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
_MOST_NESTED = 50  # lists and objects within each other: whoever walks through a manifest may recurse
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
    if _depth(document) > _MOST_NESTED:
        raise InputError(f"a manifest nests {_depth(document)} levels; allowed are {_MOST_NESTED}")
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


def read_manifest(path: str | Path, *, kind: str, version: int) -> dict[str, Any]:
    """The manifest of a sealed file of this kind that holds nothing else."""
    sealed = read_sealed(path, kind=kind, version=version)
    with sound_content(path, kind):
        take(sealed.arrays, {})
    return sealed.manifest


@contextmanager
def sound_content(path: str | Path, what: str) -> Iterator[None]:
    """While a file's content is put together: whatever does not fit means that the file is damaged.

    A right seal says who the bytes are, not that they make sense: another program may have sealed them.
    """
    try:
        yield
    except DamagedFileError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DamagedFileError(
            f"{path} is sealed but not a sound {what}: {type(error).__name__}: {error}; "
            "allowed is what ocular wrote"
        ) from error


def only(manifest: Mapping[str, Any], *names: str) -> list[Any]:
    """The values of these fields, each there, and no others."""
    if manifest.keys() != set(names):
        raise InputError(f"the manifest's fields are {sorted(manifest)}; allowed are {sorted(names)}")
    return [manifest[name] for name in names]


def take(arrays: Mapping[str, npt.NDArray[Any]], dtypes: Mapping[str, npt.DTypeLike]) -> Arrays:
    """These arrays, each there and of this dtype, and no others."""
    if arrays.keys() != dtypes.keys():
        raise InputError(f"the arrays are {sorted(arrays)}; allowed are {sorted(dtypes)}")
    for name, dtype in dtypes.items():
        if arrays[name].dtype != dtype:
            raise InputError(
                f"the array {name!r} has dtype {arrays[name].dtype}; allowed is {np.dtype(dtype)}"
            )
    return {name: arrays[name] for name in dtypes}


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


def check_regular(path: Path) -> None:
    """Raise unless this is a plain file, or a link to one: pipes and devices may never come to an end."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a directory says what it is
        raise InputError(f"cannot read {path}: it is a pipe or a device; allowed is a regular file")


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
        check_regular(path)
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
    except MemoryError as error:
        raise InputError(f"{path} has {size} bytes; allowed are as many as fit into memory") from error
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


def strict_json(text: bytes | str) -> Any:
    """What JSON proper allows, which is less than Python takes; ValueError says what is too much."""
    try:
        value = json.loads(
            text, parse_constant=_finite, parse_float=_finite, object_pairs_hook=_distinct_keys
        )
    except RecursionError as error:
        raise ValueError(f"it nests deeper than the {_MOST_NESTED} levels allowed") from error
    if _depth(value) > _MOST_NESTED:
        raise ValueError(f"it nests {_depth(value)} levels; allowed are {_MOST_NESTED}")
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text}; allowed are finite ones")
    return number


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"keys {[key for key, _ in pairs]}; allowed are distinct ones")
    return found


def _depth(value: object) -> int:
    """How many lists and objects lie within each other; without recursion, whatever the depth."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [item for each in level for item in (each.values() if isinstance(each, dict) else each)]
    return depth


def _document(path: Path, text: bytes, kind: str, version: int) -> dict[str, Any]:
    """The manifest with its envelope, if it is of this kind and not newer than `version`."""
    try:
        document = strict_json(text)
        envelope = document["sealed"]
        found_kind, found_version = document["kind"], document["version"]
        well_formed = (
            all(type(number) is int for number in (envelope, found_version))
            and document.keys() == {"sealed", "kind", "version", "arrays", "manifest"}
            and isinstance(document["manifest"], dict)
            and isinstance(document["arrays"], dict)
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFileError(
            f"{path}: {_MANIFEST} cannot be read ({error!r}); allowed is the layout {_ENVELOPE}"
        ) from error
    if not well_formed:
        raise DamagedFileError(
            f"{path}: {_MANIFEST} has fields of other types; allowed is the layout {_ENVELOPE}"
        )
    if not 1 <= envelope <= _ENVELOPE:
        raise DamagedFileError(
            f"{path} is a sealed file of layout {envelope}; allowed is at most {_ENVELOPE}: upgrade ocular"
        )
    if found_kind != kind:
        raise DamagedFileError(f"{path} is of kind {found_kind!r}; allowed is {kind!r}")
    if not 1 <= found_version <= version:
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
    if json.dumps(found, sort_keys=True) != json.dumps(claims, sort_keys=True):  # true is not 1 there
        raise DamagedFileError(
            f"{path} holds the arrays {found}; allowed are those of its manifest: {claims}"
        )
    return {name: arrays[name] for name in claims}
