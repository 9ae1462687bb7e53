"""What a planner asks of a calibrated model: how much to inflate each sample's next covariance (Sec. 4.4)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numba import njit

from ocular.calibrators import Calibration
from ocular.calibrators.features import features
from ocular.calibrators.levels import Levels
from ocular.errors import InputError, check_array, check_number, check_shape, check_type, shown
from ocular.partition import TreePartition
from ocular.planning.belief import BeliefMap
from ocular.planning.latent_field import Floating, LatentField
from ocular.records import FARTHEST, Floats, Labels, for_kernels

LANES = 32  # samples that descend a tree side by side


class ScaleField(Protocol):
    """The factor xi on the covariance of each sample's next state; infinity means that nothing is known."""

    def scales(self, means: Floating, headings: Floating, actions: Floating) -> Floats:
        """xi (n,) of states (n, 4), headings (n,) [rad] and actions (n, 2)."""


def check_field(field: object) -> None:
    """Raise unless it can be asked for scales."""
    if not callable(getattr(field, "scales", None)):
        raise InputError(f"the scale field is {shown(field)}; allowed is one with scales()")


def check_heading(heading: float) -> None:
    """Raise unless it is a finite angle."""
    check_number("heading", heading)
    if not abs(heading) <= FARTHEST:
        raise InputError(f"heading is {heading} rad; allowed are at most {FARTHEST:g} either way")


class ConstantScale:
    """The same xi everywhere: NoCP and SplitCP."""

    def __init__(self, xi: float) -> None:
        check_number("xi", xi)
        if not xi >= 0:
            raise InputError(f"xi is {xi!r}; allowed is a number of at least 0, infinity included")
        self.use(np.array([xi]))

    def use(self, xi: Floats) -> None:
        """Take this scale (1,) from now on."""
        self.xi = float(xi[0])

    def scales(self, means: Floating, headings: Floating, actions: Floating) -> Floats:  # noqa: ARG002
        """xi (n,) of states (n, 4), headings (n,) [rad] and actions (n, 2)."""
        return np.full(len(means), self.xi)


class TreeScale:
    """xi of the cell of a calibrated tree: LUCCa, and with a latent field OCULAR.

    Samples that all share one pose, as at the first step of a plan, are served without rounding it.
    """

    def __init__(
        self,
        partition: TreePartition,
        xi: Floats,  # (n_cells,)
        feature_map: str | None,
        latent_field: LatentField | None = None,
        levels: Levels | None = None,
    ) -> None:
        check_shape("xi", xi, (partition.n_cells,))
        self._columns = 0 if feature_map is None else len(features(feature_map).columns)
        columns = self._columns + (0 if latent_field is None else latent_field.encoder.dim)
        if columns != partition.n_features:
            raise InputError(
                f"the tree splits {partition.n_features} features; allowed are the {columns} that these "
                "features and this encoder make"
            )
        self._field = latent_field
        feature, threshold, children, cell, depth = partition.ladder
        self._cell = cell
        # Indices half as wide as the partition's own: these loops vectorise.
        self._descent = feature.astype(np.uint32), threshold, children.astype(np.uint32), depth
        self.use(xi)
        self._leveled = -1 if levels is None else levels.column
        self._levels = np.empty(0) if levels is None else levels.values
        self._seen: tuple[Floats, float, Floats] | None = None

    def use(self, xi: Floats) -> None:
        """Take these scales (n_cells,) from now on."""
        self._tree = *self._descent, np.where(self._cell >= 0, xi[self._cell], np.nan)

    def refresh(self, cells: Labels, position: Floats, heading: float) -> None:
        """What the robot sees now: the first step of a plan rests on it, not on the map (Sec. 4.4)."""
        check_array("position", position)
        check_shape("position", position, (2,))
        check_heading(heading)
        if self._field is not None:
            check_array("cells", cells)
            self._seen = np.array(position), heading, self._field.encoder.encode(cells[None])

    def scales(self, means: Floating, headings: Floating, actions: Floating) -> Floats:
        """xi (n,) of states (n, 4), headings (n,) [rad] and actions (n, 2); poses are rounded."""
        for name, array in (("means", means), ("headings", headings), ("actions", actions)):
            check_array(name, array, "f")
        check_shape("means", means, (None, 4))
        check_shape("headings", headings, (len(means),))
        check_shape("actions", actions, (len(means), 2))
        field = self._field
        if field is None or not len(means):
            return self.scales_given(means, headings, actions, np.empty((len(means), 0)))
        positions = means[:, :2]
        if (positions == positions[0]).all() and (headings == headings[0]).all():
            latents = self._latent_here(field, positions[:1], headings[:1]).repeat(len(means), axis=0)
        else:
            latents = field.latents(positions, headings)
        return self.scales_given(means, headings, actions, latents)

    def exact_scales(self, means: Floating, headings: Floating, actions: Floating) -> Floats:
        """The same without rounding any pose: the slow reference."""
        latents = np.empty((len(means), 0))
        if self._field is not None:
            latents = self._field.exact_latents(means[:, :2], headings)
        return self.scales_given(means, headings, actions, latents)

    def _latent_here(self, field: LatentField, position: Floating, heading: Floating) -> Floats:
        """Of the real footprint where there is one of this pose, else of what the map shows there."""
        if self._seen is not None:
            seen_from, looking, latent = self._seen
            # Planners work in single precision.
            if np.allclose(position, seen_from, atol=1e-5) and np.allclose(heading, looking, atol=1e-5):
                return latent
        return field.exact_latents(position, heading)

    def scales_given(self, means: Floating, headings: Floating, actions: Floating, latents: Floats) -> Floats:
        """The same with the latents (n, dim) known."""
        check_shape("means", means, (None, 4))
        check_shape("headings", headings, (len(means),))
        check_shape("actions", actions, (len(means), 2))
        out = np.empty(len(means))
        means, headings, actions = for_kernels(means), for_kernels(headings), for_kernels(actions)
        _scale(means, headings, actions, self._columns, latents, self._tree, self._leveled, self._levels, out)
        return out


def scale_field(
    calibration: Calibration, alpha: float | Fraction, belief: BeliefMap, **rounding: Any
) -> ConstantScale | TreeScale:
    """The scale field of a calibration at 1 - alpha; `rounding` goes to the latent field, if there is one."""
    check_type("calibration", calibration, Calibration)
    check_type("belief", belief, BeliefMap)
    partition = calibration.partition
    xi = calibration.scales(alpha)
    if not isinstance(partition, TreePartition):
        return ConstantScale(float(xi[0]))
    feature_map = None if calibration.features is None else calibration.features.name
    latent_field = None
    if calibration.encoder is not None:
        latent_field = LatentField(calibration.encoder, belief, **rounding)
    return TreeScale(partition, xi, feature_map, latent_field, calibration.levels)


@njit(cache=True, nogil=True)
def _fill(block: Any, columns: int, means: Any, headings: Any, actions: Any) -> None:
    """The features of calibrators/features.py, one a row; how many there are tells which."""
    if columns == 3:
        for i in range(len(means)):
            heading = np.float64(headings[i])
            cosine, sine = np.cos(heading), np.sin(heading)
            block[0, i] = np.hypot(means[i, 2], means[i, 3])
            block[1, i] = actions[i, 0] * cosine + actions[i, 1] * sine
            block[2, i] = cosine * actions[i, 1] - sine * actions[i, 0]
    elif columns:
        for k in range(columns - 2):
            for i in range(len(means)):
                block[k, i] = means[i, k + 6 - columns]
        for k in range(2):
            for i in range(len(means)):
                block[columns - 2 + k, i] = actions[i, k]


@njit(cache=True, nogil=True)
def _descend_together(block: Any, tree: tuple[Any, ...], out: Floats) -> None:
    """xi of at most LANES samples, the columns of `block`.

    They go down a level together: a processor makes their memory accesses side by side, one alone would wait.
    Unsigned indices spare the test for Python's negative ones.
    """
    feature, threshold, children, depth, xi_of_node = tree
    flat = block.reshape(-1)
    node = np.zeros(LANES, np.uint32)
    for _ in range(depth):
        for lane in range(LANES):
            at = node[np.uint32(lane)]
            value = flat[feature[at] * np.uint32(LANES) + np.uint32(lane)]
            node[np.uint32(lane)] = children[(at << np.uint32(1)) + np.uint32(not value <= threshold[at])]
    for lane in range(len(out)):
        out[lane] = xi_of_node[node[lane]]


@njit(cache=True, nogil=True)
def _raise_between(block: Any, tree: tuple[Any, ...], leveled: int, levels: Floats, out: Floats) -> None:
    """The rule of calibrators/levels.py; overwrites the block's leveled feature."""
    below, above, share = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    high = np.empty(LANES, np.float32)
    for i in range(len(out)):
        wanted = block[leveled, i]
        k = min(max(np.searchsorted(levels, wanted), 1), len(levels) - 1)
        low, span = levels[k - 1] ** 2, levels[k] ** 2 - levels[k - 1] ** 2
        share[i] = min(max((wanted**2 - low) / span, 0.0), 1.0)
        block[leveled, i] = levels[k - 1]
        high[i] = levels[k]
    _descend_together(block, tree, below[: len(out)])
    for i in range(len(out)):
        block[leveled, i] = high[i]
    _descend_together(block, tree, above[: len(out)])
    for i in range(len(out)):
        if (np.isinf(below[i]) and share[i] < 1.0) or (np.isinf(above[i]) and share[i] > 0.0):
            out[i] = np.inf
        elif share[i] == 1.0:
            out[i] = max(out[i], above[i])
        elif share[i] == 0.0:
            out[i] = max(out[i], below[i])
        else:
            out[i] = max(out[i], below[i] + share[i] * (above[i] - below[i]))


@njit(cache=True, nogil=True)
def _scale(
    means: Floating,
    headings: Floating,
    actions: Floating,
    columns: int,
    latents: Floats,
    tree: tuple[Any, ...],
    leveled: int,
    levels: Floats,
    out: Floats,
) -> None:
    block = np.zeros((columns + latents.shape[1], LANES), np.float32)
    for first in range(0, len(out), LANES):
        last = min(first + LANES, len(out))
        _fill(block, columns, means[first:last], headings[first:last], actions[first:last])
        for k in range(latents.shape[1]):
            for i in range(first, last):
                block[columns + k, i - first] = latents[i, k]
        _descend_together(block, tree, out[first:last])
        if leveled >= 0:
            _raise_between(block, tree, leveled, levels, out[first:last])
