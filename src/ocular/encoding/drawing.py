"""Which footprints an encoder is trained on: the same ones, whether they lie in memory or come by in parts.

They are drawn by their checksums alone. Of those that come by, a first pass keeps the checksums (32 bytes of
each distinct footprint), a second one the few footprints that were drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from hashlib import sha256

import numpy as np

from ocular.encoding.base import FootprintStream, Sights
from ocular.encoding.settings import FEWEST
from ocular.errors import InputError
from ocular.records import Indices, Labels
from ocular.seeds import stream


def draw(footprints: Sights, most: int, seed: int) -> tuple[Labels, Indices, Indices]:
    """Cells, and rows of at most so many distinct ones: nine tenths to train on and a tenth to judge by."""
    if isinstance(footprints, FootprintStream):
        return _draw_from_stream(footprints, most, seed)
    cells = footprints.cells  # shared, not copied: they are most of a training's memory
    row_of = {digest: n for n, digest in enumerate(map(_digest, cells))}
    trained, held = _split(row_of, most, seed)
    return cells, _rows(row_of, trained), _rows(row_of, held)


def _draw_from_stream(footprints: FootprintStream, most: int, seed: int) -> tuple[Labels, Indices, Indices]:
    seen: set[bytes] = set()
    for digests in footprints.each(_digests, "looking for distinct footprints"):
        seen |= digests
    trained, held = _split(seen, most, seed)
    row_of = {digest: n for n, digest in enumerate([*trained, *held])}
    cells = np.empty((len(row_of), footprints.geometry.angles, footprints.geometry.ranges), np.uint8)
    pick = partial(_pick, wanted=frozenset(row_of))
    for found, images in footprints.each(pick, "fetching those drawn"):
        cells[_rows(row_of, found)] = images
    return cells, _rows(row_of, trained), _rows(row_of, held)


def _split(distinct: Iterable[bytes], most: int, seed: int) -> tuple[list[bytes], list[bytes]]:
    """Checksums of those to train on, and to judge by.

    They are taken in the order of their checksums, so that neither repetitions nor the order given matter.
    """
    digests = sorted(distinct)
    if len(digests) < FEWEST:
        raise InputError(f"{len(digests)} distinct footprints to train on; allowed is at least {FEWEST}")
    chosen = stream(seed, "autoencoder", "split").permutation(len(digests))[:most]
    drawn = [digests[n] for n in chosen]
    held = len(drawn) // 10
    return drawn[held:], drawn[:held]


def _rows(row_of: dict[bytes, int], digests: Sequence[bytes]) -> Indices:
    return np.array([row_of[digest] for digest in digests], np.int64)


def _digest(image: Labels) -> bytes:
    return sha256(image.tobytes()).digest()


def _digests(cells: Labels) -> set[bytes]:
    return set(map(_digest, cells))


def _pick(cells: Labels, wanted: frozenset[bytes]) -> tuple[list[bytes], Labels]:
    """Checksums and images of the footprints that are wanted, each once."""
    row_of = {digest: n for n, digest in enumerate(map(_digest, cells)) if digest in wanted}
    return list(row_of), cells[list(row_of.values())]
