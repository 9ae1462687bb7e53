"""What the files of a stored array must be before zarr may read them.

Checksums say that the bytes are those that were sealed. This looks at what they claim: zarr would take
the memory that a shape asks for, decode with any codec that is named, and read a missing chunk as zeros.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ocular.errors import DamagedFileError
from ocular.sealed import strict_json

_FOOTPRINT_CHUNK, _ROW_CHUNK = 64, 16_384  # rows compressed together
_CHUNKS_PER_SHARD = 64  # chunks in one file
_CHECKSUM_BYTES = 4  # after a shard's index
_BLOSC_HEADER = 16


@dataclass(frozen=True, slots=True)
class Layout:
    """How an array is cut into chunks, and these gathered in files, along its first axis."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk: int  # rows compressed together
    shard: int  # rows in one file

    @classmethod
    def of(cls, field: str, shape: tuple[int, ...], dtype: Any) -> Layout:
        """That of the field of a part."""
        longest = _FOOTPRINT_CHUNK if field == "footprints" else _ROW_CHUNK
        chunk = max(1, min(longest, shape[0]))
        used = max(1, -(-shape[0] // chunk))
        return cls(shape, np.dtype(dtype), chunk, chunk * min(_CHUNKS_PER_SHARD, used))

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """Of what is compressed together."""
        return self.chunk, *self.shape[1:]

    @property
    def shard_shape(self) -> tuple[int, ...]:
        """Of what one file holds."""
        return self.shard, *self.shape[1:]

    def check(self, directory: Path, sizes: Mapping[str, int]) -> None:
        """Raise unless zarr would read just this array; `sizes` are those of the files in the directory."""
        self._check_description(directory / "zarr.json")
        tail = "/0" * (len(self.shape) - 1)
        for number, first in enumerate(range(0, self.shape[0], self.shard)):
            name = f"c/{number}{tail}"
            if name not in sizes:
                raise DamagedFileError(f"{directory} lacks the file {name}; allowed are all of its chunks")
            rows = min(self.shard, self.shape[0] - first)
            self._check_chunks(directory / name, sizes[name], -(-rows // self.chunk))

    def _check_description(self, file: Path) -> None:
        wanted = {
            "node_type": "array",
            "zarr_format": 3,
            "shape": list(self.shape),
            "data_type": self.dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(self.shard_shape)}},
            "codecs": [["sharding_indexed", list(self.chunk_shape), ["bytes", "blosc"], ["bytes", "crc32c"]]],
            "index_location": "end",
            "storage_transformers": [],
        }
        try:
            said = strict_json(file.read_bytes())
            inner = said["codecs"][0]["configuration"]
            found = {name: said.get(name) for name in wanted}
            found["index_location"] = inner["index_location"]
            found["codecs"] = [
                [
                    codec["name"],
                    codec["configuration"]["chunk_shape"],
                    [each["name"] for each in codec["configuration"]["codecs"]],
                    [each["name"] for each in codec["configuration"]["index_codecs"]],
                ]
                for codec in said["codecs"]
            ]
            encoding = [said["chunk_key_encoding"], *inner["codecs"], *inner["index_codecs"]]
            endings = {each.get("configuration", {}).get("endian", "little") for each in encoding}
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise DamagedFileError(f"{file} describes no stored array: {error!r}") from error
        if found != wanted or endings != {"little"}:
            differing = {name: found[name] for name in wanted if found[name] != wanted[name]}
            raise DamagedFileError(
                f"{file} says {differing or endings}; allowed is what fits the seal of its part: "
                f"{ {name: wanted[name] for name in differing} or 'little' }"
            )

    def _check_chunks(self, file: Path, size: int, used: int) -> None:
        """Each chunk lies within the file, and says that it unpacks to as many bytes as it should."""
        index_bytes = self.shard // self.chunk * 16
        end = size - index_bytes - _CHECKSUM_BYTES
        unpacked = math.prod(self.chunk_shape) * self.dtype.itemsize
        if end >= 0:
            with file.open("rb") as opened:
                opened.seek(end)
                index = np.frombuffer(opened.read(index_bytes), "<u8").reshape(-1, 2)[:used]
                headers = []
                for offset, length in index.tolist():
                    inside = _BLOSC_HEADER <= length <= end and offset <= end - length
                    opened.seek(offset if inside else 0)
                    headers.append(opened.read(_BLOSC_HEADER) if inside else b"")
            says = [int.from_bytes(header[4:8], "little") for header in headers]
            packed = [int.from_bytes(header[12:16], "little") for header in headers]
            if says == [unpacked] * used and packed == index[:, 1].tolist():
                return
        raise DamagedFileError(
            f"{file} is no file of {used} chunks that unpack to {unpacked} bytes each; allowed is what "
            "ocular wrote"
        )
