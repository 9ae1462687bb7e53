"""Local conformal prediction: one exact quantile a cell, for any alpha, from the scores kept sorted."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ocular.conformal.quantile import conformal_quantile, conformal_rank, exact_fraction
from ocular.errors import CalibrationWarning, InputError, check_array, check_shape, check_whole
from ocular.records import Floats, Indices

MOST_CELLS = 2**24  # a tree of the deepest settings has fewer by far


@dataclass(frozen=True, slots=True)
class Lineage:
    """How cells nest: the leaves of a tree and each node's parent (-1 at the root)."""

    leaf_of_cell: Indices  # (cells,)
    parent: Indices  # (nodes,)


@dataclass(frozen=True, slots=True)
class CellScores:
    """Calibration scores grouped by cell: rows offsets[k] to offsets[k + 1] are cell k's, ascending."""

    scores: Floats  # (n,)
    offsets: Indices  # (cells + 1,)

    def __post_init__(self) -> None:
        check_array("scores", self.scores)
        check_array("offsets", self.offsets, "iu")
        check_shape("scores", self.scores, (None,))
        check_shape("offsets", self.offsets, (None,))
        steps = np.diff(self.offsets)
        if (
            not (len(self.offsets) and self.offsets[0] == 0 and self.offsets[-1] == len(self.scores))
            or (steps < 0).any()
        ):
            raise InputError(
                f"offsets {self.offsets} do not split {len(self.scores)} scores; allowed are ascending "
                f"ones from 0 to {len(self.scores)}"
            )
        starts_cell = np.zeros(len(self.scores), dtype=bool)
        starts_cell[self.offsets[:-1][steps > 0]] = True
        ascending = (self.scores[1:] >= self.scores[:-1]) | starts_cell[1:]
        if not (self.scores >= 0).all() or not ascending.all():  # NaN is not >= 0 either
            raise InputError(
                "scores hold a NaN or a negative number, or are not sorted; allowed is ascending order in "
                "each cell, from 0 to infinity"
            )

    @classmethod
    def group(cls, scores: Floats, cells: Indices, n_cells: int) -> CellScores:
        """Sort scores into their cells."""
        check_array("scores", scores)
        check_array("cells", cells, "iu")
        check_whole("n_cells", n_cells, 0, MOST_CELLS)
        check_shape("scores", scores, (None,))
        check_shape("cells", cells, (len(scores),))
        if np.isnan(scores).any():
            raise InputError(f"{np.isnan(scores).sum()} scores are NaN; allowed are numbers and infinity")
        if len(cells) and not (cells.min() >= 0 and cells.max() < n_cells):
            raise InputError(f"cells run from {cells.min()} to {cells.max()}; allowed are 0 to {n_cells - 1}")
        order = np.lexsort((scores, cells))
        counts = np.bincount(cells, minlength=n_cells)
        return cls(scores[order], np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))

    @property
    def counts(self) -> Indices:
        """Number of calibration points in each cell."""
        return np.diff(self.offsets)

    def of_cell(self, cell: int) -> Floats:
        """The ascending scores of one cell."""
        return self.scores[self.offsets[cell] : self.offsets[cell + 1]]

    def quantiles(self, alpha: float | Fraction) -> tuple[Floats, Indices]:
        """The conformal quantile of each cell, infinite where its points are too few; and those cells."""
        counts = self.counts
        ranks = np.array([conformal_rank(int(n), alpha) for n in counts], dtype=np.int64)
        found, enough = np.full(len(counts), np.inf), ranks <= counts
        found[enough] = self.scores[self.offsets[:-1][enough] + ranks[enough] - 1]
        return found, np.flatnonzero(~enough)

    def thresholds(self, alpha: float | Fraction, lineage: Lineage | None = None) -> Floats:
        """One threshold a cell: infinite, with a warning that names the cell, where its points are too few.

        Given a lineage, such a cell takes the threshold of its nearest ancestor with enough points
        instead: chosen by counts alone, so no score is looked at twice. The promise then holds over
        the ancestor's region, not over the cell.
        """
        counts = self.counts
        thresholds, starved = self.quantiles(alpha)
        if lineage is not None:
            for cell, family in _nearest_sufficient(counts, starved, lineage, alpha).items():
                pooled = np.sort(np.concatenate([self.of_cell(member) for member in family]))
                thresholds[cell] = conformal_quantile(pooled, alpha)
        _warn_of_starved(starved, counts, thresholds, alpha)
        return thresholds


def _nearest_sufficient(
    counts: Indices, starved: Indices, lineage: Lineage, alpha: float | Fraction
) -> dict[int, Indices]:
    """For each starved cell, the cells below its nearest ancestor that has points enough."""
    ancestors = []
    for leaf in lineage.leaf_of_cell:
        chain, node = [], int(leaf)
        while node >= 0:
            chain.append(node)
            node = int(lineage.parent[node])
        ancestors.append(chain)
    members: dict[int, list[int]] = {}
    for cell, chain in enumerate(ancestors):
        for node in chain:
            members.setdefault(node, []).append(cell)
    found = {}
    for cell in starved:
        for node in ancestors[cell]:
            family = np.array(members[node], dtype=np.int64)
            total = int(counts[family].sum())
            if conformal_rank(total, alpha) <= total:
                found[int(cell)] = family
                break
    return found


def _warn_of_starved(starved: Indices, counts: Indices, thresholds: Floats, alpha: float | Fraction) -> None:
    if not len(starved):
        return
    fraction = exact_fraction(alpha)
    needed = math.ceil((1 - fraction) / fraction)  # the least n whose rank is at most n
    shown = ", ".join(f"cell {k}: {counts[k]} points, threshold {thresholds[k]:.4g}" for k in starved[:5])
    more = f" and {len(starved) - 5} more" if len(starved) > 5 else ""
    warnings.warn(
        f"{len(starved)} of {len(counts)} cells have fewer than the {needed} points that "
        f"alpha={float(alpha):g} needs ({shown}{more}); an infinite threshold means the whole space",
        CalibrationWarning,
        stacklevel=3,
    )
