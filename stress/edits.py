"""What may become of a file: flipped bits, cut and added bytes, and fields sealed anew."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import pickle
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

Arrays = dict[str, npt.NDArray[Any]]
Place = tuple[Any, ...]  # the keys that lead to a value in JSON

MARKER = b"ocular sealed sha256 "
PETABYTE = 10**15


def nested(levels: int) -> Any:
    """Lists within lists."""
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


class Bomb:
    """Whoever unpickles this leaves a trace."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("code-was-run"),)


BOMB = pickle.dumps(Bomb())
# Written as text where JSON has no such number; a seal does not make it one.
ODD = (
    '"x"',
    "null",
    "true",
    "-1",
    "0",
    "1.5",
    "1e999",
    "NaN",
    "-Infinity",
    "[]",
    "{}",
    str(PETABYTE),
    "9" * 4000,
)


def damaged(data: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    """Bytes as a bad disk, a broken copy or a careless hand leaves them, and what was done to them."""
    kind = rng.choice(["flip", "burst", "cut", "append", "replace", "zero", "repeat"])
    at = int(rng.integers(max(1, len(data))))
    length = int(rng.integers(1, 65))
    if kind == "flip" and data:
        return f"flip at {at}", data[:at] + bytes([data[at] ^ 1 << int(rng.integers(8))]) + data[at + 1 :]
    if kind == "burst":
        return f"burst at {at}", data[:at] + rng.bytes(len(data[at : at + length])) + data[at + length :]
    if kind == "cut":
        return f"cut at {at}", data[:at]
    if kind == "append":
        return f"append {length}", data + rng.bytes(length)
    if kind == "zero":
        return f"zeros at {at}", data[:at] + bytes(len(data[at : at + length])) + data[at + length :]
    if kind == "repeat":
        return f"repeat at {at}", data[:at] + data[at : at + length] * 2 + data[at + length :]
    return "replace by a pickle", BOMB


def seal(body: bytes) -> bytes:
    """The body with the checksum that makes it a sealed file."""
    return body + MARKER + hashlib.sha256(body).hexdigest().encode()


def open_sealed(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Document and arrays of a sealed file, by plain means."""
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("manifest.json")), safetensors.numpy.load(
            archive.read("arrays.safetensors")
        )


def forge(path: Path, text: bytes, data: bytes, compression: int = zipfile.ZIP_STORED) -> None:
    """A file whose seal is right and whose content may lie."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.writestr("manifest.json", text)
        archive.writestr("arrays.safetensors", data)
        archive.comment = bytes(len(MARKER) + 64)
    path.write_bytes(seal(buffer.getvalue()[: -len(MARKER) - 64]))


def places(value: Any, here: Place = ()) -> Iterator[Place]:
    """Where there is anything in JSON, the containers included."""
    if here:
        yield here
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*here, key))


def edited_json(value: Any, rng: np.random.Generator, skip: tuple[Place, ...] = ()) -> tuple[str, bytes]:
    """One field of JSON changed, removed, added or given twice; what was done, and the text."""
    everywhere = [p for p in places(value) if not any(p[: len(s)] == s for s in skip)]
    place = everywhere[int(rng.integers(len(everywhere)))]
    new = copy.deepcopy(value)
    holder = new
    for key in place[:-1]:
        holder = holder[key]
    key, kind = place[-1], rng.choice(["odd", "odd", "nudge", "remove", "add", "twice", "deep"])
    if kind == "remove":
        del holder[key]
    elif kind == "add" and isinstance(holder, dict):
        holder["one more"] = 1
    elif kind == "twice" and isinstance(holder, dict):
        holder["\0twice"] = 0
        text = json.dumps(new).replace('"\\u0000twice": 0', f"{json.dumps(key)}: {json.dumps(holder[key])}")
        return f"{place} given twice", text.encode()
    elif kind == "nudge" and isinstance(holder[key], int | float | str):
        old = holder[key]
        holder[key] = old + "x" if isinstance(old, str) else old + (1 if rng.random() < 0.5 else -1)
    else:
        odd = "[" * 5000 + "]" * 5000 if kind == "deep" else str(rng.choice(ODD))
        holder[key] = "\0odd"
        return f"{place} = {odd[:12]}", json.dumps(new).replace('"\\u0000odd"', odd).encode()
    return f"{kind} {place}", json.dumps(new).encode()


def edited_array(array: npt.NDArray[Any], rng: np.random.Generator) -> tuple[str, npt.NDArray[Any]]:
    """Another array in place of this one."""
    kind = str(rng.choice(["dtype", "shape", "nan", "huge", "negative", "reverse", "one", "shorter", "flat"]))
    new = array.copy()
    if kind == "dtype":
        other = rng.choice([t for t in ("float64", "float32", "int64", "int8", "bool") if t != array.dtype])
        with np.errstate(all="ignore"):
            return f"as {other}", np.ascontiguousarray(array.astype(other))
    if kind == "shape":
        return "an axis more", array[None]
    if kind == "flat":
        return "flattened", np.ascontiguousarray(array.reshape(-1))
    if kind == "shorter":
        return "half", np.ascontiguousarray(array.reshape(-1)[: array.size // 2])
    if kind == "reverse" and array.ndim:
        return "reversed", np.ascontiguousarray(array[::-1])
    if array.size:
        floats = array.dtype.kind == "f"
        value = {"nan": np.nan, "huge": 1e30 if floats else 2**31 - 1, "negative": -7}.get(kind, 3)
        if not floats and np.isnan(value):
            value = 0
        at = int(rng.integers(array.size)) if rng.random() < 0.5 else slice(None)
        new.reshape(-1)[at] = np.array(value).astype(array.dtype)
    return f"{kind} inside", new


def resealed(path: Path, rng: np.random.Generator, skip: tuple[Place, ...]) -> str:
    """Change one thing in a sealed file and seal it anew, claims included; what was done."""
    document, arrays = open_sealed(path)
    data = safetensors.numpy.save(arrays)
    kind = rng.choice(["manifest", "manifest", "arrays", "remove", "add", "claim", "packed"])
    if kind in ("arrays", "remove") and arrays:
        name = str(rng.choice(sorted(arrays)))
        if kind == "remove":
            del arrays[name]
            done = f"without {name}"
        else:
            done, arrays[name] = edited_array(arrays[name], rng)
            done = f"{name} {done}"
    elif kind == "add":
        arrays["one more"], done = np.zeros(3), "an array more"
    elif kind == "claim" and arrays:
        claim = document["arrays"][str(rng.choice(sorted(arrays)))]
        claim["shape"] = [PETABYTE, *claim["shape"]]
        if rng.random() < 0.5:  # in the arrays' own header as well
            size = int.from_bytes(data[:8], "little")
            header = json.loads(data[8 : 8 + size])
            next(each for name, each in header.items() if name != "__metadata__")["shape"] = [PETABYTE]
            text = json.dumps(header).encode()
            data = len(text).to_bytes(8, "little") + text + data[8 + size :]
        forge(path, json.dumps(document).encode(), data)
        return "claims a petabyte"
    elif kind == "packed":
        forge(path, json.dumps(document).encode(), data, zipfile.ZIP_DEFLATED)
        return "compressed"
    else:
        done, text = edited_json(document, rng, (("arrays",), *(("manifest", *place) for place in skip)))
        forge(path, text, data)
        return done
    claims = {n: {"dtype": a.dtype.name, "shape": list(a.shape)} for n, a in arrays.items()}
    forge(path, json.dumps({**document, "arrays": claims}).encode(), safetensors.numpy.save(arrays))
    return done
