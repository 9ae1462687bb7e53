"""A regression tree on scores (LOCART): scikit-learn grows it, plain arrays hold it, a kernel applies it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from ocular.errors import InputError, check_finite, check_shape
from ocular.records import Floats, Indices

LEAF = -1


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """The paper's settings for LUCCa and OCULAR alike (Sec. 5.1)."""

    max_depth: int = 13
    min_leaf: int = 300

    def __post_init__(self) -> None:
        if self.max_depth < 1 or self.min_leaf < 1:
            raise InputError(
                f"max_depth={self.max_depth}, min_leaf={self.min_leaf}; allowed is at least 1 each"
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
        nodes = len(self.feature)
        inner = self.left != LEAF
        children = np.concatenate([self.left[inner], self.right[inner]])
        parents = np.concatenate([np.flatnonzero(inner)] * 2)
        leaves = np.sort(self.cell[~inner])
        sound = (
            nodes > 0
            and len({len(a) for a in (self.feature, self.threshold, self.left, self.right, self.cell)}) == 1
            and (children > parents).all()
            and np.array_equal(np.sort(children), np.arange(1, nodes))
            and ((self.feature[inner] >= 0) & (self.feature[inner] < self.n_features)).all()
            and np.array_equal(leaves, np.arange(len(leaves)))
        )
        if not sound:
            raise InputError(
                f"these {nodes} nodes are no binary tree over {self.n_features} features; allowed are nodes "
                "in depth-first order, each the child of one earlier node, leaves numbered from 0"
            )

    @classmethod
    def fit(cls, features: Floats, targets: Floats, settings: TreeSettings, seed: int) -> TreePartition:
        """CART: axis-aligned splits that leave the least variance of the targets in the cells."""
        check_shape("features", features, (len(targets), None))
        check_finite("features", features)
        check_finite("targets", targets)
        if len(targets) < 2 * settings.min_leaf:
            raise InputError(
                f"{len(targets)} points to grow a tree with {settings.min_leaf} points a leaf; allowed are "
                f"at least {2 * settings.min_leaf}"
            )
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
        check_shape("features", features, (None, self.n_features))
        check_finite("features", features)
        return self._descend(np.ascontiguousarray(features, dtype=np.float32))

    def _descend(self, features: npt.NDArray[np.float32]) -> Indices:
        cells = np.empty(len(features), dtype=np.int64)
        _apply(features, self.feature, self.threshold, self.left, self.right, self.cell, cells)
        return cells

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


@numba.njit(cache=True)
def leaf_of_row(row: Any, feature: Any, threshold: Any, left: Any, right: Any) -> int:
    """Leaf node that one float32 feature vector falls into."""
    node = 0
    while left[node] != LEAF:
        node = left[node] if row[feature[node]] <= threshold[node] else right[node]
    return node


@numba.njit(cache=True)
def _apply(rows: Any, feature: Any, threshold: Any, left: Any, right: Any, cell: Any, out: Any) -> None:
    for i in range(rows.shape[0]):
        out[i] = cell[leaf_of_row(rows[i], feature, threshold, left, right)]
