"""What another program may do to a store, with every checksum right."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import safetensors.numpy
import zarr

from stress.edits import damaged, edited_array, edited_json, forge, open_sealed, resealed

PARTS = ("first", "second")


def resealed_store(store: Path, rng: np.random.Generator) -> tuple[str, bool]:
    """Change one thing; what was done, and whether the store may still say the same.

    It may where a description is touched of which many wordings mean one thing, as zarr's.
    """
    part = store / str(rng.choice(PARTS))
    kind = rng.choice(["index", "root", "part", "part", "description", "chunk", "content"])
    arrays = sorted(file.parent for file in part.glob("*/zarr.json"))
    array = arrays[int(rng.integers(len(arrays)))]
    free = False
    if kind == "index":
        return resealed(store / "index.sealed", rng, ()), False
    if kind == "root":
        done, text = edited_json(json.loads((store / "zarr.json").read_text()), rng)
        (store / "zarr.json").write_bytes(text)
        free = True
    elif kind == "part":
        done = resealed(part / "part.sealed", rng, ())
    elif kind == "description":
        done, text = edited_json(json.loads((array / "zarr.json").read_text()), rng)
        (array / "zarr.json").write_bytes(text)
        free = True
    elif kind == "chunk":
        files = [file for file in array.rglob("*") if file.is_file() and file.name != "zarr.json"]
        done, data = damaged(files[0].read_bytes(), rng)
        files[0].write_bytes(data)
        free = True  # between two chunks there may be bytes that mean nothing
    else:
        opened = zarr.open_array(array, mode="r+")
        before = np.asarray(opened[...])
        done, after = edited_array(before, rng)
        if after.shape == before.shape and after.dtype == before.dtype:
            opened[...] = after
            free = np.array_equal(after, before, equal_nan=before.dtype.kind == "f")
        else:
            done, free = f"{done}, left alone", True
    if kind in ("description", "chunk", "content"):
        refresh_files(part)
    refresh_index(store)
    return f"{kind} of {array.relative_to(store)}: {done}", free


def refresh_files(part: Path) -> None:
    """Enter sizes and checksums anew."""
    document, arrays = open_sealed(part / "part.sealed")
    document["manifest"]["files"] = [
        [file.relative_to(part).as_posix(), file.stat().st_size, _checksum(file)]
        for file in sorted(part.rglob("*"))
        if file.is_file() and file.name != "part.sealed"
    ]
    forge(part / "part.sealed", json.dumps(document).encode(), safetensors.numpy.save(arrays))


def refresh_index(store: Path) -> None:
    """Enter the checksums of the parts' seals and of the root anew."""
    document, arrays = open_sealed(store / "index.sealed")
    document["manifest"]["root"] = _checksum(store / "zarr.json")
    document["manifest"]["parts"] = [[name, _checksum(store / name / "part.sealed")] for name in PARTS]
    forge(store / "index.sealed", json.dumps(document).encode(), safetensors.numpy.save(arrays))


def _checksum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
