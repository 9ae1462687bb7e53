"""The encoder's forward pass, compiled: a planner asks for hundreds of latents within one control step.

Two facts make it cheap, and neither changes a result. Pixels are labels, so the first convolution adds rows
of a table. And most of a footprint is of one label: where a whole receptive field is, the outcome is one of a
few vectors that are known beforehand (inside the image or at its border), and so are their products with the
next layer's kernel. Only the rest, the "mixed" positions along the edges of regions, is computed.

Nothing here may be reordered or fused (no fastmath): a mixed position and a known one then agree bit for bit,
and so do a footprint's latents whatever the batch, the number of threads and the processor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ocular.encoding.vectors import make_add_four, make_product

Float32s = npt.NDArray[np.float32]

CHANNELS = (8, 16, 32)
LANES = 8  # latents are padded to a multiple of this, to fill vector registers
KEYS = 4  # along an axis: first position, even inside, odd inside, last
MIXED = 255  # class of a position that sees more than one label; labels are below


_add_four8, _add_four16 = make_add_four(CHANNELS[0]), make_add_four(16)
_expand1 = make_product(CHANNELS[0], 4 * CHANNELS[1])
_expand2 = make_product(CHANNELS[1], 4 * CHANNELS[2])
_project = make_product(CHANNELS[2], LANES)


class Tables(NamedTuple):
    """A network laid out for `encode_one`; a tap (ky, kx) is a parity (ky % 2, kx % 2) and a half (// 2)."""

    first: Float32s  # (16 taps, labels + 1, 8); the last label is the padding: zeros
    bias1: Float32s  # (8,)
    expand1: Float32s  # (4 parities, 8, 4 halves * 16)
    known1: (
        Float32s  # (1 + labels * 16, 4 halves * 16): products of known vectors; row 0 is the padding: zeros
    )
    bias2: Float32s  # (16,)
    expand2: Float32s  # (4 parities, 16, 4 halves * 32)
    known2: Float32s  # (1 + labels * 16, 4 halves * 32)
    bias3: Float32s  # (32,)
    project: Float32s  # (positions, 32, padded dim)
    known3: Float32s  # (labels, positions, padded dim): what a position adds to the latent
    offset: Float32s  # (padded dim,)


class Scratch(NamedTuple):
    """Working memory of `encode_one`; each thread has its own."""

    lowest: npt.NDArray[np.uint8]  # (ranges + 2,)
    highest: npt.NDArray[np.uint8]  # (ranges + 2,)
    class1: npt.NDArray[np.uint8]  # (angles / 2, ranges / 2)
    class2: npt.NDArray[np.uint8]  # (angles / 4, ranges / 4)
    class3: npt.NDArray[np.uint8]  # (angles / 8, ranges / 8)
    rows1: npt.NDArray[np.int32]  # (angles / 2 + 2, ranges / 2 + 2): rows of products1
    rows2: npt.NDArray[np.int32]  # (angles / 4 + 2, ranges / 4 + 2): rows of products2
    products1: Float32s  # (known + mixed, 4 halves, 16)
    products2: Float32s  # (known + mixed, 4 halves, 32)
    flat1: Float32s  # (known + mixed, 4 * 16): the same memory as products1
    flat2: Float32s  # (known + mixed, 4 * 32)
    mixed: npt.NDArray[np.int32]  # (positions, 2)
    hidden: Float32s  # (32,)
    added: Float32s  # (positions, padded dim)
    total: Float32s  # (padded dim,)


@njit(cache=True)
def make_scratch(tables: Tables, angles: int, ranges: int) -> Scratch:
    """Working memory for footprints of angles x ranges cells."""
    known, dim = tables.known1.shape[0], tables.offset.shape[0]
    a1, r1, a2, r2, a3, r3 = angles // 2, ranges // 2, angles // 4, ranges // 4, angles // 8, ranges // 8
    products1 = np.empty((known + a1 * r1, tables.known1.shape[1]), np.float32)
    products2 = np.empty((known + a2 * r2, tables.known2.shape[1]), np.float32)
    products1[:known] = tables.known1
    products2[:known] = tables.known2
    return Scratch(
        np.empty(ranges + 2, np.uint8),
        np.empty(ranges + 2, np.uint8),
        np.empty((a1, r1), np.uint8),
        np.empty((a2, r2), np.uint8),
        np.empty((a3, r3), np.uint8),
        np.zeros((a1 + 2, r1 + 2), np.int32),
        np.zeros((a2 + 2, r2 + 2), np.int32),
        products1.reshape((-1, 4, CHANNELS[1])),
        products2.reshape((-1, 4, CHANNELS[2])),
        products1,
        products2,
        np.empty((a1 * r1, 2), np.int32),
        np.empty(CHANNELS[2], np.float32),
        np.empty((a3 * r3, dim), np.float32),
        np.empty(dim, np.float32),
    )


@njit(cache=True)
def _classify(fine: Any, coarse: Any, lowest: Any, highest: Any) -> None:
    """The class that fills each 4 x 4 field (stride 2, padding 1 left out), or MIXED."""
    height, width = fine.shape
    for i in range(coarse.shape[0]):
        top, bottom = max(2 * i - 1, 0), min(2 * i + 2, height - 1)
        row0, row1, row2, row3 = fine[top], fine[2 * i], fine[2 * i + 1], fine[bottom]
        for j in range(width):
            a, b, c, d = row0[j], row1[j], row2[j], row3[j]
            lowest[j + 1] = min(min(a, b), min(c, d))
            highest[j + 1] = max(max(a, b), max(c, d))
        lowest[0], highest[0] = lowest[1], highest[1]
        lowest[width + 1], highest[width + 1] = lowest[width], highest[width]
        for j in range(coarse.shape[1]):
            k = 2 * j
            low = min(min(lowest[k], lowest[k + 1]), min(lowest[k + 2], lowest[k + 3]))
            high = max(max(highest[k], highest[k + 1]), max(highest[k + 2], highest[k + 3]))
            coarse[i, j] = low if low == high else MIXED


@njit(cache=True)
def key_of(index: int, count: int) -> int:
    """Which of the KEYS kinds of position this is along its axis."""
    if index == 0:
        return 0
    if index == count - 1:
        return 3
    return 1 + (index & 1)


@njit(cache=True)
def _assign_rows(classes: Any, rows: Any, mixed: Any, known: int) -> int:
    """Point each position at its row of products; list the mixed ones, which get new rows after the known."""
    height, width = classes.shape
    count = 0
    for i in range(height):
        row_key = 1 + key_of(i, height) * KEYS
        for j in range(width):
            label = classes[i, j]
            if label == MIXED:
                rows[i + 1, j + 1] = known + count
                mixed[count, 0] = i
                mixed[count, 1] = j
                count += 1
            else:
                rows[i + 1, j + 1] = np.int32(label) * (KEYS * KEYS) + row_key + key_of(j, width)
    return count


@njit(cache=True)
def _convolve_labels(first: Any, bias: Any, cells: Any, i: int, j: int, hidden: Any) -> None:
    """First layer at (i, j): per pixel of the field one row of the table, then ReLU."""
    height, width = cells.shape
    labels = first.shape[1]  # padding included, as the last
    for c in range(CHANNELS[0]):
        hidden[c] = bias[c]
    for ky in range(4):
        y, x = 2 * i - 1 + ky, 2 * j
        if 0 <= y < height:
            k0 = np.intp(cells[y, x - 1]) if x > 0 else labels - 1
            k1, k2 = np.intp(cells[y, x]), np.intp(cells[y, x + 1])
            k3 = np.intp(cells[y, x + 2]) if x + 2 < width else labels - 1
            t = 4 * ky * labels
            a, b = (t + k0) * CHANNELS[0], (t + labels + k1) * CHANNELS[0]
            c_, d = (t + 2 * labels + k2) * CHANNELS[0], (t + 3 * labels + k3) * CHANNELS[0]
            _add_four8(hidden, 0, first, a, b, c_, d)
    for c in range(CHANNELS[0]):
        hidden[c] = max(hidden[c], np.float32(0))


@njit(cache=True)
def _convolve(products: Any, rows: Any, bias: Any, i: int, j: int, hidden: Any) -> None:
    """A later layer at (i, j): sum of the field's products, which are there already, then ReLU."""
    width = bias.shape[0]
    for c in range(width):
        hidden[c] = bias[c]
    for ky in range(4):
        y, x, left = 2 * i + ky, 2 * j, 2 * (ky // 2) * width
        a, b = np.intp(rows[y, x]) * 4 * width + left, np.intp(rows[y, x + 1]) * 4 * width + left
        right = left + width
        c_, d = np.intp(rows[y, x + 2]) * 4 * width + right, np.intp(rows[y, x + 3]) * 4 * width + right
        for o in range(0, width, 16):
            _add_four16(hidden, o, products, a + o, b + o, c_ + o, d + o)
    for c in range(width):
        hidden[c] = max(hidden[c], np.float32(0))


@njit(cache=True)
def _multiply(hidden: Any, matrices: Any, which: int, out: Any, row: int) -> None:
    """out[row] = hidden @ matrices[which], one of the two expansions or the projection."""
    depth, width = matrices.shape[1], matrices.shape[2]
    out_at, matrix_at = row * width, which * depth * width
    if depth == CHANNELS[0]:
        _expand1(out, out_at, hidden, matrices, matrix_at, width)
    elif depth == CHANNELS[1]:
        _expand2(out, out_at, hidden, matrices, matrix_at, width)
    else:
        for start in range(0, width, LANES):
            _project(out, out_at + start, hidden, matrices, matrix_at + start, width)


@njit(cache=True)
def _parity(i: int, j: int) -> int:
    """Which quarter of the next taps can meet position (i, j): tap ky of output y reads 2 y - 1 + ky."""
    return 2 * ((i + 1) & 1) + ((j + 1) & 1)


@njit(cache=True)
def forward(cells: Any, tables: Tables, scratch: Scratch) -> None:
    """The latent into scratch.total, given the classes."""
    s, known = scratch, tables.known1.shape[0]
    for n in range(_assign_rows(s.class1, s.rows1, s.mixed, known)):
        i, j = s.mixed[n, 0], s.mixed[n, 1]
        _convolve_labels(tables.first, tables.bias1, cells, i, j, s.hidden)
        _multiply(s.hidden, tables.expand1, _parity(i, j), s.flat1, known + n)
    for n in range(_assign_rows(s.class2, s.rows2, s.mixed, known)):
        i, j = s.mixed[n, 0], s.mixed[n, 1]
        _convolve(s.products1, s.rows1, tables.bias2, i, j, s.hidden)
        _multiply(s.hidden, tables.expand2, _parity(i, j), s.flat2, known + n)
    for k in range(s.total.shape[0]):
        s.total[k] = tables.offset[k]
    height, width = s.class3.shape
    for i in range(height):
        for j in range(width):
            position, label = i * width + j, s.class3[i, j]
            if label == MIXED:
                _convolve(s.products2, s.rows2, tables.bias3, i, j, s.hidden)
                _multiply(s.hidden, tables.project, position, s.added, position)
                for k in range(s.total.shape[0]):
                    s.total[k] += s.added[position, k]
            else:
                for k in range(s.total.shape[0]):
                    s.total[k] += tables.known3[label, position, k]


@njit(cache=True, nogil=True)
def encode_one(cells: Any, tables: Tables, scratch: Scratch, out: Any) -> None:
    """The latent of one footprint (angles, ranges) into out (dim,); for use inside other kernels.

    Nothing is checked here: labels must be below the number of labels.
    """
    _classify(cells, scratch.class1, scratch.lowest, scratch.highest)
    _classify(scratch.class1, scratch.class2, scratch.lowest, scratch.highest)
    _classify(scratch.class2, scratch.class3, scratch.lowest, scratch.highest)
    forward(cells, tables, scratch)
    for k in range(out.shape[0]):
        out[k] = scratch.total[k]


@njit(cache=True, nogil=True)
def encode_many(cells: Any, tables: Tables, out: Any) -> None:
    """The latents of footprints (n, angles, ranges) into out (n, dim)."""
    scratch = make_scratch(tables, cells.shape[1], cells.shape[2])
    for n in range(cells.shape[0]):
        encode_one(cells[n], tables, scratch, out[n])
