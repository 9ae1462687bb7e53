"""Sectors of footprints, and how far each is from the nearest known one: reconstruction by example.

A sector that differs from a known one in a few pixels is known as well. Two facts keep the search short, and
change no answer: sectors differ at least by half of what their counts of each label differ, and a sector that
is known needs no nearer example.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from ocular.records import Indices, Labels

ANGLES, RANGES = 60, 20  # pixels of a thinned footprint, at most about twice as many
WIDTH, STRIDE = 12, 4  # thinned columns of a sector, and from one to the next
BLOCK = 24  # pixels compared between two looks at the count


def thin(cells: Labels) -> Labels:
    """Every few pixels of label images (n, angles, ranges)."""
    across, along = (max(1, size // n) for size, n in zip(cells.shape[1:], (ANGLES, RANGES), strict=True))
    return cells[:, across // 2 :: across, along // 2 :: along]


def sectors(thinned: Labels) -> Labels:
    """Overlapping sectors (n, sectors, width, ranges) of thinned label images."""
    width = min(WIDTH, thinned.shape[1])
    starts = np.arange(0, thinned.shape[1] - width + 1, STRIDE)
    return thinned[:, starts[:, None] + np.arange(width)]


def count_labels(pixels: Labels, labels: int) -> Indices:
    """How often each label is in each row: (n, pixels) -> (n, labels)."""
    return np.stack([(pixels == label).sum(axis=1) for label in range(labels)], axis=1).astype(np.int64)


@numba.njit(cache=True, nogil=True)
def _mismatches(first: Any, second: Any, enough: int) -> int:
    """In how many pixels two sectors differ; counting stops at `enough`."""
    differ = 0
    for start in range(0, len(first), BLOCK):
        for i in range(start, min(start + BLOCK, len(first))):
            differ += first[i] != second[i]
        if differ >= enough:
            break
    return differ


@numba.njit(cache=True, nogil=True)
def nearest(sector: Any, counts: Any, bank: Any, bank_counts: Any, slack: int) -> int:
    """In how many pixels the best of the known sectors differs, or `slack` where it is no more than that.

    The bank is sorted by its first count; the search goes outwards from there.
    """
    best = len(sector) + 1
    above = np.searchsorted(bank_counts[:, 0], counts[0])
    below = above - 1
    while True:
        up = bank_counts[above, 0] - counts[0] if above < len(bank) else best
        down = counts[0] - bank_counts[below, 0] if below >= 0 else best
        if min(up, down) >= best:
            return best
        if up <= down:
            k = above
            above += 1
        else:
            k = below
            below -= 1
        apart = 0
        for label in range(len(counts)):
            apart += abs(bank_counts[k, label] - counts[label])
        if apart < 2 * best:
            best = min(best, _mismatches(sector, bank[k], best))
            if best <= slack:
                return slack


@numba.njit(cache=True, nogil=True)
def farthest(pixels: Any, counts: Any, bank: Any, bank_counts: Any, slack: int) -> Any:
    """`nearest` of the least known sector of each image: pixels (n, sectors, p) -> (n,)."""
    out = np.empty(len(pixels), np.int64)
    for n in range(len(pixels)):
        worst = slack
        for k in range(pixels.shape[1]):
            worst = max(worst, nearest(pixels[n, k], counts[n, k], bank, bank_counts, slack))
        out[n] = worst
    return out


@numba.njit(cache=True, nogil=True)
def _cover(pixels: Any, counts: Any, slack: int, chosen: Any, kept: Any, kept_counts: Any) -> int:
    size = 0
    for n in range(len(pixels)):
        known = False
        for k in range(size - 1, -1, -1):
            apart = 0
            for label in range(counts.shape[1]):
                apart += abs(kept_counts[k, label] - counts[n, label])
            if apart <= 2 * slack and _mismatches(pixels[n], kept[k], slack + 1) <= slack:
                known = True
                break
        if not known:
            chosen[size], kept[size], kept_counts[size] = n, pixels[n], counts[n]
            size += 1
    return size


def cover(pixels: Labels, labels: int, slack: int) -> Labels:
    """A few of these sectors (n, p) that leave none further than `slack` pixels from one of them."""
    counts = count_labels(pixels, labels)
    chosen = np.empty(len(pixels), np.int64)
    size = _cover(pixels, counts, slack, chosen, np.empty_like(pixels), np.empty_like(counts))
    return pixels[chosen[:size]]
