import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocular.errors import InputError
from ocular.footprint import LabelGrid

NAMES = ("OCCUPIED", "UNKNOWN", "A", "B")


def grid(labels: object, **changes: object) -> LabelGrid:
    values = {"names": NAMES, "resolution": 0.5, "origin": (-1.0, 2.0), "outside": "UNKNOWN"} | changes
    return LabelGrid(np.array(labels, np.uint8), **values)


def test_row_zero_is_the_lowest_and_column_zero_the_leftmost():
    g = grid([[0, 2], [3, 1]])
    assert g.at(np.array([-0.9, 2.1])) == 0
    assert g.at(np.array([-0.1, 2.1])) == 2
    assert g.at(np.array([-0.9, 2.9])) == 3
    assert g.size == (1.0, 1.0)


def test_everywhere_else_has_the_label_outside():
    g = grid([[2]])
    far = [
        [-1.01, 2.1],
        [-0.49, 2.1],
        [-0.9, 1.99],
        [-0.9, 2.5],
        [1e300, 2.1],
        [-1e300, np.inf],
        [np.nan, 2.1],
    ]
    assert (g.at(np.array(far)) == 1).all()
    assert g.at(np.array([-1.0, 2.0])) == 2  # the lower-left corner belongs to the grid


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_the_centre_of_each_cell_has_its_label(rows, cols, seed):
    labels = np.random.default_rng(seed).integers(0, 4, (rows, cols))
    g = grid(labels)
    x, y = -1 + (np.arange(cols) + 0.5) * 0.5, 2 + (np.arange(rows) + 0.5) * 0.5
    points = np.stack(np.meshgrid(x, y), axis=-1)  # (rows, cols, 2)
    assert (g.at(points) == labels).all()


@pytest.mark.parametrize(
    ("labels", "changes", "message"),
    [
        ([[4]], {}, "hold the label 4; allowed are 0=OCCUPIED"),
        ([2, 2], {}, r"shape \(2,\); allowed is uint8 of shape \(rows, cols\)"),
        (np.empty((0, 3)), {}, "at least 1 x 1"),
        ([[2]], {"outside": "C"}, "outside the grid is 'C'; allowed are 'OCCUPIED'"),
        ([[2]], {"resolution": 0.0}, "resolution is 0.0 m; allowed is a positive number"),
        ([[2]], {"origin": (0.0, np.nan)}, "grid origin has 1 values that are not finite"),
        ([[2]], {"names": ("OCCUPIED", "A", "B")}, r"labels are \('OCCUPIED', 'A', 'B'\); allowed are"),
    ],
)
def test_a_bad_grid_says_what_is_allowed(labels, changes, message):
    with pytest.raises(InputError, match=message):
        grid(labels, **changes)


def test_labels_of_another_type_are_refused():
    with pytest.raises(InputError, match="grid labels are int64"):
        LabelGrid(np.zeros((2, 2), np.int64), NAMES, 0.5, (0.0, 0.0), "UNKNOWN")


def test_index_names_the_label_it_does_not_have():
    with pytest.raises(InputError, match="label is 'C'; allowed are 'OCCUPIED', 'UNKNOWN', 'A', 'B'"):
        grid([[0]]).index("C")
