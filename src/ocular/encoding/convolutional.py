"""The encoder half of the paper's convolutional autoencoder, as plain arrays and without torch."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ocular.encoding.kernels import (
    CHANNELS,
    Float32s,
    Scratch,
    Tables,
    encode_many,
    encode_one,
    make_scratch,
)
from ocular.encoding.tables import build_tables
from ocular.errors import InputError, check_array, check_finite, check_shape, check_type, check_whole, shown
from ocular.records import Floats, FootprintGeometry, Labels, check_labels, for_kernels

MOST_THREADS = 1024
LARGEST_WEIGHT = 1e6  # so that no latent leaves single precision
STRIDE = 8  # three convolutions of stride 2


def check_encodable(geometry: FootprintGeometry) -> None:
    """Raise unless three halvings leave a whole number of cells."""
    if geometry.angles % STRIDE or geometry.ranges % STRIDE:
        raise InputError(
            f"a footprint of {geometry.angles} x {geometry.ranges} cells cannot be encoded; "
            f"allowed are multiples of {STRIDE} along both axes"
        )


@dataclass(frozen=True, eq=False)
class ConvEncoder:
    """Three convolutions (kernel 4, stride 2, padding 1, ReLU), then a linear map to the latent."""

    labels: tuple[str, ...]
    geometry: FootprintGeometry
    kernels: tuple[Float32s, Float32s, Float32s]  # (out, in, 4, 4) each
    biases: tuple[Float32s, Float32s, Float32s]  # (out,) each
    projection: Float32s  # (dim, 32 * angles / 8 * ranges / 8), positions last
    offset: Float32s  # (dim,)

    def __post_init__(self) -> None:
        check_labels(self.labels)
        check_type("geometry", self.geometry, FootprintGeometry)
        check_encodable(self.geometry)
        for each in (self.kernels, self.biases):
            if not isinstance(each, tuple) or len(each) != len(CHANNELS):
                raise InputError(f"the encoder has weights {shown(each)}; allowed are {len(CHANNELS)} arrays")
        for name, array in self.to_arrays().items():
            check_array(f"the encoder's {name}", array)
        check_shape("the encoder's offset", self.offset, (None,))
        positions = (self.geometry.angles // STRIDE) * (self.geometry.ranges // STRIDE)
        shapes: dict[str, tuple[int | None, ...]] = {"offset": (None,)}
        shapes["projection"] = (len(self.offset), CHANNELS[-1] * positions)
        inputs = (len(self.labels), *CHANNELS)
        for n, channels in enumerate(CHANNELS):
            shapes[f"kernel{n + 1}"] = (channels, inputs[n], 4, 4)
            shapes[f"bias{n + 1}"] = (channels,)
        for name, array in self.to_arrays().items():
            if array.dtype != np.float32:
                raise InputError(f"the encoder's {name} has dtype {array.dtype}; allowed is float32")
            check_shape(f"the encoder's {name}", array, shapes[name])
            check_finite(f"the encoder's {name}", array, LARGEST_WEIGHT)

    @property
    def dim(self) -> int:
        """Number of latent entries."""
        return len(self.offset)

    @cached_property
    def tables(self) -> Tables:
        """The network as `kernels.encode_one` reads it."""
        return build_tables(
            self.kernels,
            self.biases,
            self.projection,
            self.offset,
            self.geometry.angles,
            self.geometry.ranges,
        )

    def encode(self, cells: Labels, *, threads: int = 1) -> Floats:
        """Latents (n, dim) of label images (n, angles, ranges): the same bits whatever n and threads."""
        check_array("footprint cells", cells)
        check_whole("threads", threads, most=MOST_THREADS)
        if cells.dtype != np.uint8:
            raise InputError(f"footprint cells have dtype {cells.dtype}; allowed is uint8")
        if threads < 1:
            raise InputError(f"threads is {threads}; allowed is at least 1")
        check_shape("footprint cells", cells, (None, self.geometry.angles, self.geometry.ranges))
        highest = int(cells.max(initial=0))
        if highest >= len(self.labels):
            names = ", ".join(f"{i}={name}" for i, name in enumerate(self.labels))
            raise InputError(f"footprint cells hold the label {highest}; allowed are {names}")
        tables = self.tables
        cells = for_kernels(cells)
        out = np.empty((len(cells), self.dim))
        if threads == 1:
            encode_many(cells, tables, out)
            return out
        chunks = [np.array_split(array, threads) for array in (cells, out)]
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda chunk: encode_many(chunk[0], tables, chunk[1]), zip(*chunks, strict=True)))
        return out

    def make_scratch(self) -> Scratch:
        """Working memory for `encode_into`; each thread needs its own."""
        return make_scratch(self.tables, self.geometry.angles, self.geometry.ranges)

    def encode_into(self, cells: Labels, scratch: Scratch, out: Floats) -> None:
        """The latent of one footprint (angles, ranges), checked before, without new memory: the same bits."""
        encode_one(for_kernels(cells), self.tables, scratch, out)

    def to_arrays(self) -> dict[str, npt.NDArray[np.float32]]:
        """The weights by name; labels and geometry are the caller's to store."""
        return {
            **{f"kernel{n + 1}": kernel for n, kernel in enumerate(self.kernels)},
            **{f"bias{n + 1}": bias for n, bias in enumerate(self.biases)},
            "projection": self.projection,
            "offset": self.offset,
        }

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, npt.NDArray[np.float32]],
        labels: tuple[str, ...],
        geometry: FootprintGeometry,
    ) -> ConvEncoder:
        """The encoder that `to_arrays` took apart."""
        return cls(
            labels=labels,
            geometry=geometry,
            kernels=(arrays["kernel1"], arrays["kernel2"], arrays["kernel3"]),
            biases=(arrays["bias1"], arrays["bias2"], arrays["bias3"]),
            projection=arrays["projection"],
            offset=arrays["offset"],
        )
