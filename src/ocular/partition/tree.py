"""A regression tree on scores (LOCART): scikit-learn grows it, plain arrays hold it, a kernel applies it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from ocular.errors import InputError, check_array, check_finite, check_shape, check_type, check_whole
from ocular.records import Floats, Indices

LEAF = -1


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """The paper's settings for LUCCa and OCULAR alike (Sec. 5.1)."""

    max_depth: int = 13
    min_leaf: int = 300

    def __post_init__(self) -> None:
        check_whole("max_depth", self.max_depth)
        check_whole("min_leaf", self.min_leaf)
        if self.max_depth < 1 or self.min_leaf < 1:
            raise InputError(
                f"max_depth={self.max_depth}, min_leaf={self.min_leaf}; allowed is at least 1 each"
            )

    def check_points(self, points: int) -> None:
        """Raise where so many points are too few for a single split."""
        if points < 2 * self.min_leaf:
            raise InputError(
                f"{points} points to grow a tree with {self.min_leaf} points a leaf; allowed are at least "
                f"{2 * self.min_leaf}"
            )


@dataclass(frozen=True)
class TreePartition:
    """Axis-aligned cells. Features are compared in float32, exactly as scikit-learn does.

    A row goes left at a node when float32(features[node's feature]) <= threshold, in double precision.
    """

    n_features: int
    feature: npt.NDArray[np.int32]  # (nodes,)
    threshold: Floats  # (nodes,)
    left: npt.NDArray[np.int32]  # (nodes,), LEAF at leaves
    right: npt.NDArray[np.int32]  # (nodes,)
    cell: npt.NDArray[np.int32]  # (nodes,), cell of each leaf, -1 elsewhere

    def __post_init__(self) -> None:
        """Refuse arrays that are no tree, so that the kernel cannot run out of bounds or for ever."""
        for name in ("feature", "threshold", "left", "right", "cell"):
            check_shape(f"the tree's {name}", getattr(self, name), (len(self.feature),))
        check_finite("the tree's threshold", self.threshold)
        nodes = len(self.feature)
        inner = self.left != LEAF
        children = np.concatenate([self.left[inner], self.right[inner]])
        parents = np.concatenate([np.flatnonzero(inner)] * 2)
        leaves = np.sort(self.cell[~inner])
        sound = (
            nodes > 0
            and (children > parents).all()
            and np.array_equal(np.sort(children), np.arange(1, nodes))
            and ((self.feature[inner] >= 0) & (self.feature[inner] < self.n_features)).all()
            and np.array_equal(leaves, np.arange(len(leaves)))
            and (self.cell[inner] == -1).all()
        )
        if not sound:
            raise InputError(
                f"these {nodes} nodes are no binary tree over {self.n_features} features; allowed are nodes "
                "in depth-first order, each the child of one earlier node, leaves numbered from 0"
            )

    @classmethod
    def fit(cls, features: Floats, targets: Floats, settings: TreeSettings, seed: int) -> TreePartition:
        """CART: axis-aligned splits that leave the least variance of the targets in the cells."""
        check_array("features", features)
        check_array("targets", targets)
        check_shape("targets", targets, (None,))
        check_shape("features", features, (len(targets), None))
        check_type("settings", settings, TreeSettings)
        check_whole("seed", seed, 0, 2**32 - 1)
        check_finite("features", features, float(np.finfo(np.float32).max))
        check_finite("targets", targets)
        if not features.shape[1]:
            raise InputError("features have no column; allowed is at least one")
        settings.check_points(len(targets))
        from sklearn.tree import (
            DecisionTreeRegressor,
        )  # slow to import, and a robot that only asks never fits

        regressor = DecisionTreeRegressor(
            max_depth=settings.max_depth, min_samples_leaf=settings.min_leaf, random_state=seed
        )
        return cls.from_sklearn(regressor.fit(features.astype(np.float32), targets))

    @classmethod
    def from_sklearn(cls, regressor: Any) -> TreePartition:
        """The arrays of a fitted scikit-learn tree."""
        tree = regressor.tree_
        leaf = tree.children_left == LEAF
        cell = np.full(tree.node_count, -1, dtype=np.int32)
        cell[leaf] = np.arange(leaf.sum(), dtype=np.int32)
        return cls(
            n_features=int(tree.n_features),
            feature=np.where(leaf, -1, tree.feature).astype(np.int32),
            threshold=np.where(leaf, 0.0, tree.threshold),
            left=tree.children_left.astype(np.int32),
            right=tree.children_right.astype(np.int32),
            cell=cell,
        )

    @property
    def n_cells(self) -> int:
        """Number of leaves."""
        return int((self.left == LEAF).sum())

    def apply(self, features: Floats) -> Indices:
        """Cell of each row; the same as scikit-learn's `apply`, renumbered."""
        check_array("features", features)
        check_shape("features", features, (None, self.n_features))
        with np.errstate(over="ignore"):  # what becomes infinite is refused below
            rows = np.ascontiguousarray(features, dtype=np.float32)
        cells = np.empty(len(rows), dtype=np.int64)
        feature, threshold, children, cell, depth = self.ladder
        if not _apply(rows, feature, threshold, children, cell, depth, cells):
            check_finite("features", features)
            raise InputError(
                f"features run from {features.min()} to {features.max()}; allowed are numbers that "
                f"single precision can hold, up to {np.finfo(np.float32).max}"
            )
        return cells

    @cached_property
    def ladder(self) -> tuple[Any, Any, Any, Any, int]:
        """The tree for the kernel: leaves step to themselves, so that all rows take the same steps.

        A float32 number is at most a float64 threshold exactly when it is at most the largest float32
        that does not exceed the threshold, so single precision decides as double does.
        """
        nodes = np.arange(len(self.left), dtype=np.int32)
        leaf = self.left == LEAF
        with np.errstate(over="ignore", under="ignore"):  # infinite thresholds decide rightly too
            single = self.threshold.astype(np.float32)
        single = np.where(single > self.threshold, np.nextafter(single, np.float32(-np.inf)), single)
        children = np.empty(2 * len(nodes), dtype=np.uint64)
        children[0::2] = np.where(leaf, nodes, self.left)
        children[1::2] = np.where(leaf, nodes, self.right)
        return (
            np.where(leaf, 0, self.feature).astype(np.uint64),
            single.astype(np.float32),
            children,
            self.cell,
            self.depth,
        )

    @property
    def depth(self) -> int:
        """Steps from the root to the deepest leaf."""
        depth = np.zeros(len(self.left), dtype=np.int64)
        for node in np.flatnonzero(self.left != LEAF):  # children come after their parent
            depth[[self.left[node], self.right[node]]] = depth[node] + 1
        return int(depth.max())

    def parents(self) -> Indices:
        """Parent of each node, -1 at the root."""
        parent = np.full(len(self.left), -1, dtype=np.int64)
        inner = np.flatnonzero(self.left != LEAF)
        parent[self.left[inner]] = inner
        parent[self.right[inner]] = inner
        return parent

    def leaves(self) -> Indices:
        """The leaf node of each cell."""
        nodes = np.flatnonzero(self.cell >= 0)
        return nodes[np.argsort(self.cell[nodes])]


LANES = 16
_ONE = np.uint64(1)


@numba.njit(cache=True)
def _apply(rows: Any, feature: Any, threshold: Any, children: Any, cell: Any, depth: int, out: Any) -> bool:
    """Cells of all rows; false where a value is not finite.

    Rows descend side by side and without branches, which a processor could not predict. Unsigned
    indices spare the test for Python's negative ones.
    """
    n, width = rows.shape
    flat = rows.reshape(-1)
    node = np.zeros(LANES, dtype=np.uint64)
    start = np.zeros(LANES, dtype=np.uint64)
    total = np.float32(0.0)
    for value in flat:
        total += value * np.float32(0.0)  # NaN if any value is NaN or infinite
    if total != total:
        return False
    for first in range(0, n, LANES):
        for lane in range(LANES):  # the last block repeats the last row
            node[lane] = 0
            start[lane] = min(first + lane, n - 1) * width
        for _ in range(depth):
            for lane in range(LANES):
                at = node[np.uint64(lane)]
                right = flat[start[np.uint64(lane)] + feature[at]] > threshold[at]
                node[np.uint64(lane)] = children[(at << _ONE) + np.uint64(right)]
        for lane in range(min(LANES, n - first)):
            out[first + lane] = cell[node[lane]]
    return True
