"""A calibration's cells in words: what bounds each one, and what is seen in it.

The bounds on features are the tree's own. A bound on a latent says nothing to people; given logs, it is put
as what the footprints of this cell show ahead, compared with those of all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ocular.calibrators import Calibration
from ocular.calibrators.calibration import quiet_thresholds
from ocular.partition import TreePartition
from ocular.records import OCCUPIED, UNKNOWN, Floats, Footprints, Transitions

AHEAD = 1 / 3  # share of the bearings, the middle ones
TELLING = 0.2  # difference of two shares from which on it is worth a word
UNITS = {
    "speed": "m/s",
    **dict.fromkeys(("vx", "vy"), "m/s"),
    **dict.fromkeys(("x", "y"), "m"),
    **dict.fromkeys(("ax", "ay", "acceleration along", "acceleration across"), "m/s²"),
    **dict.fromkeys(("mean wheel speed", "right minus left wheel speed"), "rad/s"),
}

Bounds = dict[int, tuple[float, float]]  # feature -> lower bound, exclusive, and upper one, inclusive


@dataclass(frozen=True, slots=True)
class View:
    """What is ahead in a cell's footprints, and in those of all other cells, as shares from 0 to 1."""

    what: str
    here: float
    elsewhere: float


@dataclass(frozen=True, slots=True)
class Leaf:
    """One cell."""

    cell: int
    words: str
    rule: str  # the exact bounds, latents included
    xi: float
    threshold: float
    points: int  # calibration points
    views: tuple[View, ...]  # none where no logs were given, or none of them is in this cell


def leaves(
    calibration: Calibration, alpha: float | Fraction, transitions: Transitions | None = None
) -> list[Leaf]:
    """All cells, the largest scale first; views come from the transitions."""
    partition, thresholds = calibration.partition, quiet_thresholds(calibration, alpha)
    counts = np.zeros(partition.n_cells) if calibration.scores is None else calibration.scores.counts
    bounds = dict(_bounds(partition)) if isinstance(partition, TreePartition) else {0: {}}
    views: dict[int, tuple[View, ...]] = {}
    if transitions is not None and calibration.encoder is not None:
        views = _views(calibration, transitions)
    found = [
        Leaf(
            cell=cell,
            words=_words(calibration, bounds[cell], views.get(cell, ())),
            rule=_words(calibration, bounds[cell], ()),
            xi=float(thresholds[cell] / calibration.chi2(alpha)),
            threshold=float(thresholds[cell]),
            points=int(counts[cell]),
            views=views.get(cell, ()),
        )
        for cell in range(partition.n_cells)
    ]
    return sorted(found, key=lambda leaf: -leaf.xi)


def _bounds(partition: TreePartition) -> Iterator[tuple[int, Bounds]]:
    """The bounds of each cell, by walking down the tree."""
    waiting: list[tuple[int, Bounds]] = [(0, {})]
    while waiting:
        node, bounds = waiting.pop()
        if partition.left[node] < 0:
            yield int(partition.cell[node]), bounds
            continue
        feature, cut = int(partition.feature[node]), float(partition.threshold[node])
        low, high = bounds.get(feature, (-np.inf, np.inf))
        waiting.append((int(partition.left[node]), bounds | {feature: (low, min(high, cut))}))
        waiting.append((int(partition.right[node]), bounds | {feature: (max(low, cut), high)}))


def _words(calibration: Calibration, bounds: Bounds, views: tuple[View, ...]) -> str:
    columns = () if calibration.features is None else calibration.features.columns
    latent = {k: bound for k, bound in bounds.items() if k >= len(columns)}
    said = []
    if latent:
        raw = " and ".join(_bound(f"latent {k - len(columns)}", "", *bound) for k, bound in latent.items())
        seen = _view_words(views)
        said.append(seen or raw)
    for k, bound in sorted(bounds.items()):
        if k < len(columns):
            said.append(_bound(columns[k], UNITS.get(columns[k], ""), *bound))
    return " and ".join(said) or "anything"


def _bound(name: str, unit: str, low: float, high: float) -> str:
    unit = f" {unit}" if unit else ""
    if name == "speed":
        if np.isinf(high):
            return f"faster than {low:.3g}{unit}"
        return f"no faster than {high:.3g}{unit}" if low < 0 else f"{low:.3g} to {high:.3g}{unit} fast"
    if np.isinf(high):
        return f"{name} > {low:.3g}{unit}"
    return f"{name} <= {high:.3g}{unit}" if np.isinf(low) else f"{low:.3g} < {name} <= {high:.3g}{unit}"


def _view_words(views: tuple[View, ...]) -> str:
    """What sets this cell's views apart; more of something before less of something else."""
    more = [view for view in views if view.here - view.elsewhere >= TELLING]
    less = [view for view in views if view.elsewhere - view.here >= TELLING]
    # Ground is of one kind or another: less of one is more of another, which is said already.
    if any(view.what != OCCUPIED for view in more):
        less = [view for view in less if view.what == OCCUPIED]
    return " and ".join(
        f"{_name(view.what, few=chosen is less)} ahead ({100 * view.here:.0f} %, elsewhere "
        f"{100 * view.elsewhere:.0f} %)"
        for chosen in (more, less)
        for view in chosen
    )


def _name(label: str, *, few: bool) -> str:
    if label == OCCUPIED:
        return "few obstacles" if few else "obstacles"
    return ("little " if few else "") + label.lower().replace("_", " ")


def _views(calibration: Calibration, transitions: Transitions) -> dict[int, tuple[View, ...]]:
    """What the footprints of each cell show ahead: kinds of seen ground, and bearings with an obstacle."""
    inputs, cells = transitions.inputs, calibration.cells(transitions.inputs)
    names, parts, wholes = _shown(inputs.footprints)
    n_cells = calibration.partition.n_cells
    part, whole = np.zeros((n_cells, len(names))), np.zeros((n_cells, len(names)))
    np.add.at(part, cells, parts[inputs.footprint_index])
    np.add.at(whole, cells, wholes[inputs.footprint_index])
    visited = np.bincount(cells, minlength=n_cells) > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        here, elsewhere = part / whole, (part.sum(0) - part) / (whole.sum(0) - whole)
    return {
        int(cell): tuple(
            View(name, float(here[cell, k]), float(elsewhere[cell, k]))
            for k, name in enumerate(names)
            if np.isfinite(here[cell, k]) and np.isfinite(elsewhere[cell, k])
        )
        for cell in np.flatnonzero(visited)
    }


def _shown(footprints: Footprints) -> tuple[list[str], Floats, Floats]:
    """Label by label and footprint by footprint: how many cells (or bearings) show it, out of how many."""
    angles = footprints.geometry.angles
    middle = footprints.cells[:, round(angles * (1 - AHEAD) / 2) : round(angles * (1 + AHEAD) / 2)]
    labels = footprints.labels
    ground = [name for name in labels if name not in (OCCUPIED, UNKNOWN)]
    counts = np.zeros((len(middle), len(ground)))
    for k, name in enumerate(ground):
        counts[:, k] = (middle == labels.index(name)).sum(axis=(1, 2))
    blocked = (middle == labels.index(OCCUPIED)).any(axis=2).sum(axis=1)
    parts = np.concatenate([counts, blocked[:, None]], axis=1)
    wholes = np.repeat(counts.sum(axis=1)[:, None], len(ground), axis=1)
    bearings = np.full((len(middle), 1), middle.shape[1])
    return [*ground, OCCUPIED], parts, np.concatenate([wholes, bearings], axis=1)
