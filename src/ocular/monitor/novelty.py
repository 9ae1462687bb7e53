"""Have I seen anything like this? A conformal test of what is in view against the footprints of the logs.

A footprint is as new as its least known sector: the pixels in which that differs from the nearest example.
Examples are the sectors of half of the logged footprints, also mirrored and moved along their rays, for logs
show a wall from a few distances only. The other half calibrates: a footprint drawn like the logged ones has a
p-value of at most eps with probability at most eps. A label that no example has is new wherever it shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ocular.errors import InputError, check_array, check_shape, check_type
from ocular.monitor.windows import count_labels, cover, farthest, sectors, thin
from ocular.records import Floats, FootprintGeometry, Footprints, Indices, Labels, check_labels
from ocular.sealed import read_sealed, sound_content, take, write_sealed
from ocular.seeds import stream

KIND, VERSION = "novelty", 1
SLACK = 1 / 30  # of a sector's pixels: examples this near are one example
MOVES = 8  # thinned ranges by which examples are moved, at most, either way
MOST = 3000  # footprints of the logs that give examples, and at most so many calibrate
FEWEST = 20  # footprints with which the smallest p-value is 1 in 21


@dataclass(frozen=True)
class Novelty:
    """Known sectors, and how new held-out footprints looked beside them."""

    labels: tuple[str, ...]
    geometry: FootprintGeometry
    examples: Labels  # (k, pixels), sorted by how often they show the first label
    known_labels: Labels  # (l,), those that an example has
    calibrated: Indices  # (n,), ascending

    def __post_init__(self) -> None:
        check_labels(self.labels)
        check_shape("examples", self.examples, (None, self._pixels))
        check_shape("calibrated", self.calibrated, (None,))
        if not len(self.examples) or self.examples.max() >= len(self.labels):
            raise InputError(
                f"{len(self.examples)} examples; allowed is at least 1, with labels below {len(self.labels)}"
            )
        check_shape("known_labels", self.known_labels, (None,))
        if self.known_labels.max(initial=0) >= len(self.labels) or (np.diff(self.known_labels) <= 0).any():
            raise InputError(
                f"known labels are {self.known_labels}; allowed are ascending ones below {len(self.labels)}"
            )
        if self.calibrated.min(initial=0) < 0 or self.calibrated.max(initial=0) > self._pixels + 1:
            raise InputError(
                f"calibrated values run from {self.calibrated.min()} to {self.calibrated.max()}; "
                f"allowed are 0 to {self._pixels + 1}"
            )
        if (np.diff(self._counts[:, 0]) < 0).any() or (np.diff(self.calibrated) < 0).any():
            raise InputError("examples or calibrated values are out of order; allowed is ascending order")

    @classmethod
    def fit(cls, footprints: Footprints, seed: int) -> Novelty:
        """Learn one half of the distinct footprints, and calibrate on the other."""
        check_type("footprints", footprints, Footprints)
        # In the order of their checksums, so that neither repetitions nor the order given matter.
        distinct = {sha256(image.tobytes()).digest(): row for row, image in enumerate(footprints.cells)}
        if len(distinct) < FEWEST:
            raise InputError(f"{len(distinct)} distinct footprints; allowed is at least {FEWEST}")
        rows = stream(seed, "novelty").permutation([distinct[key] for key in sorted(distinct)])[: 2 * MOST]
        learned, held_out = (footprints.cells[part] for part in np.array_split(rows, 2))
        pixels = sectors(thin(learned))
        labels, slack = len(footprints.labels), _slack(pixels.shape[2] * pixels.shape[3])
        examples = cover(_moved(_stand_ins(pixels, labels, slack)), labels, slack)
        first = count_labels(examples, labels)[:, 0]
        blank = cls(
            footprints.labels,
            footprints.geometry,
            examples[np.argsort(first, kind="stable")],
            np.unique(learned),
            np.empty(0, np.int64),
        )
        return replace(blank, calibrated=np.sort(blank.score(held_out)))

    def score(self, cells: Labels) -> Indices:
        """How new each footprint (n, angles, ranges) is, in pixels of a sector; most for an unknown label."""
        check_array("footprint cells", cells, "u")
        if cells.dtype != np.uint8:
            raise InputError(f"footprint cells have dtype {cells.dtype}; allowed is uint8")
        check_shape("footprint cells", cells, (None, self.geometry.angles, self.geometry.ranges))
        if not len(cells):
            return np.empty(0, np.int64)
        pixels = sectors(thin(cells))
        pixels = np.ascontiguousarray(pixels.reshape(*pixels.shape[:2], -1))
        counts = count_labels(pixels.reshape(-1, pixels.shape[2]), len(self.labels))
        counts = counts.reshape(*pixels.shape[:2], -1)
        slack = _slack(self._pixels)
        scores: Indices = farthest(pixels, counts, self.examples, self._counts, slack)
        return np.where(self._unknown_label[cells].any(axis=(1, 2)), self._pixels + 1, scores)

    def p_values(self, cells: Labels) -> Floats:
        """At most eps with probability at most eps, for footprints like those of the logs."""
        as_new = len(self.calibrated) - np.searchsorted(self.calibrated, self.score(cells), "left")
        return np.asarray((as_new + 1) / (len(self.calibrated) + 1), np.float64)

    @cached_property
    def _counts(self) -> Indices:
        return count_labels(self.examples, len(self.labels))

    @cached_property
    def _unknown_label(self) -> Any:
        table = np.ones(256, np.bool_)
        table[self.known_labels] = False
        return table

    @property
    def _pixels(self) -> int:
        one = np.broadcast_to(np.uint8(0), (1, self.geometry.angles, self.geometry.ranges))
        shape = sectors(thin(one)).shape
        return int(shape[2] * shape[3])


def _slack(pixels: int) -> int:
    return round(SLACK * pixels)


def _stand_ins(pixels: Labels, labels: int, slack: int) -> Labels:
    """A few sectors (k, width, ranges) that stand for all of these (n, sectors, width, ranges)."""
    shape = pixels.shape[2:]
    distinct = np.unique(pixels.reshape(-1, shape[0] * shape[1]), axis=0)
    return cover(distinct, labels, slack).reshape(-1, *shape)


def _moved(examples: Labels) -> Labels:
    """Examples (k, width, ranges), mirrored and moved along their rays, least moved first: (many, pixels)."""
    ranges = np.arange(examples.shape[2])
    both = np.concatenate([examples, examples[:, ::-1]])
    moves = sorted(range(-MOVES, MOVES + 1), key=abs)
    every = np.concatenate([both[:, :, (ranges - move).clip(0, len(ranges) - 1)] for move in moves])
    return every.reshape(len(every), -1)


def save(novelty: Novelty, path: str | Path) -> None:
    """Write what is known; the same novelty test gives the same bytes."""
    geometry = novelty.geometry
    manifest = {
        "labels": list(novelty.labels),
        **{name: getattr(geometry, name) for name in ("angles", "ranges", "field_of_view", "max_range")},
    }
    arrays = {name: getattr(novelty, name) for name in ("examples", "known_labels", "calibrated")}
    write_sealed(path, kind=KIND, version=VERSION, manifest=manifest, arrays=arrays)


def load(path: str | Path) -> Novelty:
    """Read a novelty test back."""
    sealed = read_sealed(path, kind=KIND, version=VERSION)
    with sound_content(path, "novelty test"):
        labels = tuple(sealed.manifest.pop("labels"))
        arrays = take(sealed.arrays, {"examples": np.uint8, "known_labels": np.uint8, "calibrated": np.int64})
        return Novelty(labels, FootprintGeometry(**sealed.manifest), **arrays)
