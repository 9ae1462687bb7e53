"""The tree in plain arrays agrees with scikit-learn's, row for row, and refuses what is no tree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from ocular.errors import InputError
from ocular.partition import TreePartition, TreeSettings, WholeSpace


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), st.booleans())
def test_apply_agrees_exactly_with_scikit_learn(seed, n_features, coarse):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3000, n_features))
    if coarse:  # many ties, as on a grid of states
        X = np.round(X, 1)
    y = np.abs(X[:, 0]) + rng.random(3000)
    regressor = DecisionTreeRegressor(max_depth=9, min_samples_leaf=20, random_state=0)
    regressor.fit(X.astype(np.float32), y)
    tree = TreePartition.from_sklearn(regressor)
    queries = np.concatenate([X, X + 1e-9, tree.threshold[rng.integers(0, len(tree.threshold), X.shape)]])
    leaves = regressor.apply(queries.astype(np.float32))
    assert np.array_equal(tree.leaves()[tree.apply(queries)], leaves)
    assert tree.n_cells == regressor.get_n_leaves()


@pytest.mark.parametrize("rows", [0, 1, 15, 16, 17, 33])
def test_any_number_of_rows(rows):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 2))
    tree = TreePartition.fit(X, X[:, 0], TreeSettings(4, 20), seed=0)
    assert np.array_equal(tree.apply(X[:rows]), tree.apply(X)[:rows])


def test_fit_keeps_leaves_populated_and_shallow():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((5000, 3)), rng.random(5000)
    tree = TreePartition.fit(X, y, TreeSettings(max_depth=4, min_leaf=100), seed=0)
    assert tree.n_cells <= 16
    assert np.bincount(tree.apply(X)).min() >= 100


def test_fit_is_deterministic():
    rng = np.random.default_rng(0)
    X, y = np.round(rng.standard_normal((5000, 3)), 1), rng.random(5000)
    first, second = (TreePartition.fit(X, y, TreeSettings(6, 50), seed=3) for _ in range(2))
    assert first.threshold.tobytes() == second.threshold.tobytes()
    assert first.feature.tobytes() == second.feature.tobytes()


def test_parents_lead_every_leaf_to_the_root():
    rng = np.random.default_rng(0)
    tree = TreePartition.fit(rng.standard_normal((3000, 2)), rng.random(3000), TreeSettings(5, 50), seed=0)
    parent = tree.parents()
    assert parent[0] == -1
    for leaf in tree.leaves():
        node, steps = leaf, 0
        while parent[node] >= 0:
            node, steps = parent[node], steps + 1
        assert node == 0
        assert steps <= 5


def test_bad_input_is_refused():
    tree = TreePartition.fit(np.arange(100.0)[:, None], np.arange(100.0), TreeSettings(2, 10), seed=0)
    with pytest.raises(InputError, match=r"features has shape \(5, 2\); allowed is \(any, 1\)"):
        tree.apply(np.zeros((5, 2)))
    with pytest.raises(InputError, match="not finite"):
        tree.apply(np.array([[np.nan]]))
    with pytest.raises(InputError, match=r"run from 1e\+300 to 1e\+300.*single precision"):
        tree.apply(np.array([[1e300]]))
    with pytest.raises(InputError, match=r"100 points to grow a tree with 300 points a leaf.*at least 600"):
        TreePartition.fit(np.zeros((100, 1)), np.zeros(100), TreeSettings(), seed=0)
    with pytest.raises(InputError, match="max_depth=0"):
        TreeSettings(max_depth=0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("left", [1, 0, -1]), ("right", [9, -1, -1]), ("feature", [7, -1, -1]), ("cell", [-1, 0, 0])],
)
def test_arrays_that_are_no_tree_are_refused(name, value):
    arrays = {
        "feature": np.array([0, -1, -1], dtype=np.int32),
        "threshold": np.array([0.5, 0.0, 0.0]),
        "left": np.array([1, -1, -1], dtype=np.int32),
        "right": np.array([2, -1, -1], dtype=np.int32),
        "cell": np.array([-1, 0, 1], dtype=np.int32),
    }
    assert TreePartition(1, **arrays).apply(np.array([[0.4], [0.6]])).tolist() == [0, 1]
    with pytest.raises(InputError, match="no binary tree"):
        TreePartition(1, **{**arrays, name: np.array(value, dtype=arrays[name].dtype)})


def test_the_whole_space_is_one_cell():
    assert WholeSpace().apply(np.zeros((4, 2))).tolist() == [0, 0, 0, 0]
    assert WholeSpace().n_cells == 1
