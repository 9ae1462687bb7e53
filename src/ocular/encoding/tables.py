"""Lays an encoder's weights out for the compiled kernel, and computes what it makes of uniform regions."""

from __future__ import annotations

import numpy as np
from numba import njit

from ocular.encoding.kernels import (
    CHANNELS,
    KEYS,
    LANES,
    MIXED,
    Float32s,
    Scratch,
    Tables,
    forward,
    key_of,
    make_scratch,
)


@njit(cache=True)
def _learn_uniform(label: int, tables: Tables, scratch: Scratch) -> None:
    """Compute a footprint of one label the long way and keep its outcomes as the known ones."""
    scratch.class1[:] = MIXED
    scratch.class2[:] = MIXED
    scratch.class3[:] = MIXED
    angles, ranges = scratch.class1.shape
    forward(np.full((2 * angles, 2 * ranges), label, np.uint8), tables, scratch)
    tables.known3[label] = scratch.added
    for rows, products, known in (
        (scratch.rows1, scratch.flat1, tables.known1),
        (scratch.rows2, scratch.flat2, tables.known2),
    ):
        height, width = rows.shape[0] - 2, rows.shape[1] - 2
        for i in range(height):
            for j in range(width):
                row = 1 + label * KEYS * KEYS + key_of(i, height) * KEYS + key_of(j, width)
                known[row] = products[rows[i + 1, j + 1]]


def build_tables(
    kernels: tuple[Float32s, ...],  # (out, in, 4, 4) each
    biases: tuple[Float32s, ...],  # (out,) each
    projection: Float32s,  # (dim, 32 * angles / 8 * ranges / 8), positions last
    offset: Float32s,  # (dim,)
    angles: int,
    ranges: int,
) -> Tables:
    """Lay a network out for `encode_one` and compute what it makes of uniform regions."""
    labels, dim = kernels[0].shape[1], len(offset)
    positions, known = (angles // 8) * (ranges // 8), 1 + labels * KEYS * KEYS
    padded = -(-dim // LANES) * LANES
    first = np.zeros((16, labels + 1, CHANNELS[0]), np.float32)
    first[:, :labels] = kernels[0].transpose(2, 3, 1, 0).reshape(16, labels, CHANNELS[0])
    project = np.zeros((positions, CHANNELS[2], padded), np.float32)
    project[:, :, :dim] = projection.reshape(dim, CHANNELS[2], positions).transpose(2, 1, 0)
    tables = Tables(
        first=first,
        bias1=biases[0],
        expand1=_expansion(kernels[1]),
        known1=np.zeros((known, 4 * CHANNELS[1]), np.float32),
        bias2=biases[1],
        expand2=_expansion(kernels[2]),
        known2=np.zeros((known, 4 * CHANNELS[2]), np.float32),
        bias3=biases[2],
        project=project,
        known3=np.zeros((labels, positions, padded), np.float32),
        offset=np.concatenate([offset, np.zeros(padded - dim, np.float32)]),
    )
    scratch = make_scratch(tables, angles, ranges)
    for label in range(labels):
        _learn_uniform(label, tables, scratch)
    return tables


def _expansion(kernel: Float32s) -> Float32s:
    """(out, in, 4, 4) as (4 parities, in, 4 halves * out)."""
    out, into = kernel.shape[:2]
    split = kernel.reshape(out, into, 2, 2, 2, 2)  # (out, in, ky half, ky parity, kx half, kx parity)
    return np.ascontiguousarray(split.transpose(3, 5, 1, 2, 4, 0).reshape(4, into, 4 * out))
