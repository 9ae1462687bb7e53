"""What a planner asks of a calibrated model: how much to inflate each sample's next covariance (Sec. 4.4)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numba import njit

from ocular.calibrators import Calibration
from ocular.calibrators.features import features
from ocular.errors import InputError, check_shape
from ocular.partition import TreePartition
from ocular.planning.belief import BeliefMap
from ocular.planning.latent_field import Floating, LatentField
from ocular.records import Floats, Labels


class ScaleField(Protocol):
    """The factor xi on the covariance of each sample's next state; infinity means that nothing is known."""

    def scales(self, means: Floating, headings: Floating, actions: Floating) -> Floats:
        """xi (n,) of states (n, 4), headings (n,) [rad] and actions (n, 2)."""


class ConstantScale:
    """The same xi everywhere: NoCP and SplitCP."""

    def __init__(self, xi: float) -> None:
        if not xi >= 0:
            raise InputError(f"xi is {xi!r}; allowed is a number of at least 0, infinity included")
        self.xi = xi

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
        self._tree = feature, threshold, children, depth, np.where(cell >= 0, xi[cell], np.nan)
        self._seen: tuple[Floats, float, Floats] | None = None

    def refresh(self, cells: Labels, position: Floats, heading: float) -> None:
        """What the robot sees now: the first step of a plan rests on it, not on the map (Sec. 4.4)."""
        if self._field is not None:
            self._seen = np.array(position), heading, self._field.encoder.encode(cells[None])

    def scales(self, means: Floating, headings: Floating, actions: Floating) -> Floats:
        """xi (n,) of states (n, 4), headings (n,) [rad] and actions (n, 2); poses are rounded."""
        field = self._field
        if field is None or not len(means):
            return self._descend(means, headings, actions, np.empty((len(means), 0)))
        positions = means[:, :2]
        if (positions == positions[0]).all() and (headings == headings[0]).all():
            latents = self._latent_here(field, positions[:1], headings[:1]).repeat(len(means), axis=0)
        else:
            latents = field.latents(positions, headings)
        return self._descend(means, headings, actions, latents)

    def exact_scales(self, means: Floating, headings: Floating, actions: Floating) -> Floats:
        """The same without rounding any pose: the slow reference."""
        latents = np.empty((len(means), 0))
        if self._field is not None:
            latents = self._field.exact_latents(means[:, :2], headings)
        return self._descend(means, headings, actions, latents)

    def _latent_here(self, field: LatentField, position: Floating, heading: Floating) -> Floats:
        """Of the real footprint where there is one of this pose, else of what the map shows there."""
        if self._seen is not None:
            seen_from, looking, latent = self._seen
            # Planners work in single precision.
            if np.allclose(position, seen_from, atol=1e-5) and np.allclose(heading, looking, atol=1e-5):
                return latent
        return field.exact_latents(position, heading)

    def _descend(self, means: Floating, headings: Floating, actions: Floating, latents: Floats) -> Floats:
        check_shape("means", means, (None, 4))
        check_shape("headings", headings, (len(means),))
        check_shape("actions", actions, (len(means), 2))
        out = np.empty(len(means))
        _scale(means, headings, actions, self._columns, latents, self._tree, out)
        return out


def scale_field(
    calibration: Calibration, alpha: float | Fraction, belief: BeliefMap, **rounding: Any
) -> ConstantScale | TreeScale:
    """The scale field of a calibration at 1 - alpha; `rounding` goes to the latent field, if there is one."""
    partition = calibration.partition
    xi = calibration.scales(alpha)
    if not isinstance(partition, TreePartition):
        return ConstantScale(float(xi[0]))
    feature_map = None if calibration.features is None else calibration.features.name
    latent_field = None
    if calibration.encoder is not None:
        latent_field = LatentField(calibration.encoder, belief, **rounding)
    return TreeScale(partition, xi, feature_map, latent_field)


@njit(cache=True, nogil=True)
def _fill(row: Any, columns: int, i: int, means: Any, headings: Any, actions: Any) -> None:
    """The features of calibrators/features.py; how many there are tells which."""
    if columns == 3:
        heading = np.float64(headings[i])
        cosine, sine = np.cos(heading), np.sin(heading)
        row[0] = np.hypot(means[i, 2], means[i, 3])
        row[1] = actions[i, 0] * cosine + actions[i, 1] * sine
        row[2] = cosine * actions[i, 1] - sine * actions[i, 0]
    elif columns:
        for k in range(columns - 2):
            row[k] = means[i, k + 6 - columns]
        row[columns - 2] = actions[i, 0]
        row[columns - 1] = actions[i, 1]


@njit(cache=True, nogil=True)
def _scale(
    means: Floating,
    headings: Floating,
    actions: Floating,
    columns: int,
    latents: Floats,
    tree: tuple[Any, ...],
    out: Floats,
) -> None:
    feature, threshold, children, depth, xi_of_node = tree
    rows = np.empty((len(out), columns + latents.shape[1]), np.float32)
    for i in range(len(out)):
        _fill(rows[i], columns, i, means, headings, actions)
        for k in range(latents.shape[1]):
            rows[i, columns + k] = latents[i, k]
    # All samples go down a level together: their memory accesses overlap, one alone would wait.
    node = np.zeros(len(out), np.uint64)
    for _ in range(depth):
        for i in range(len(out)):
            at = node[i]
            right = np.uint64(rows[i, feature[at]] > threshold[at])
            node[i] = children[np.uint64(2) * at + right]
    for i in range(len(out)):
        out[i] = xi_of_node[node[i]]
