"""The ellipse test against brute force over every cell, and its corner cases."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.reference.mppi_reference import cell_boxes, least_distances, obstacle_distance
from tests.support.obstacles import FREE, OCCUPIED, UNKNOWN, obstacles

from ocular.planning.belief import BeliefMap
from ocular.planning.ellipse import (
    PARTS,
    hits_obstacle,
    obstacles_of,
    path_hits,
    penetration,
    within_seen,
)
from ocular.records import FootprintGeometry

SIZE = 12
RESOLUTION = 0.1


def make_map(seed: int, density: float, cap: float = 0.55):
    rng = np.random.default_rng(seed)
    labels = rng.choice([OCCUPIED, UNKNOWN, FREE], (SIZE, SIZE), p=[density, 0.1, 0.9 - density])
    return obstacles(labels, resolution=RESOLUTION, origin=(-0.3, 0.2), cap=cap)


def entries(major: float, ratio: float, angle: float) -> tuple[float, float, float]:
    """a, b, c of an ellipse with these semi-axes."""
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    shape = turn @ np.diag([major**2, (ratio * major) ** 2]) @ turn.T
    return float(shape[0, 0]), float(shape[0, 1]), float(shape[1, 1])


ellipses = st.tuples(
    st.floats(-0.7, 1.3),
    st.floats(-0.2, 1.8),
    st.floats(0.01, 1.2),
    st.floats(0.02, 1.0) | st.just(1.0),  # discs, too
    st.floats(0.0, np.pi) | st.just(0.0),
)


@settings(max_examples=150, deadline=None)
@given(ellipse=ellipses, seed=st.integers(0, 50), density=st.sampled_from([0.0, 0.02, 0.1, 0.4]))
def test_hits_exactly_when_brute_force_says_so(ellipse, seed, density):
    x, y, *axes = ellipse
    map_ = make_map(seed, density)
    a, b, c = entries(*axes)
    distance = obstacle_distance(x, y, a, b, c, map_)
    assume(abs(distance - 1.0) > 1e-6)
    assert hits_obstacle(x, y, a, b, c, map_) == (distance < 1.0)


@settings(max_examples=60, deadline=None)
@given(ellipse=ellipses, seed=st.integers(0, 50))
def test_penetration_is_one_minus_the_relative_distance(ellipse, seed):
    x, y, *axes = ellipse
    map_ = make_map(seed, 0.05)
    a, b, c = entries(*axes)
    depth = max(1.0 - obstacle_distance(x, y, a, b, c, map_), 0.0)
    assert depth - 1e-6 <= penetration(x, y, a, b, c, map_) <= depth + 1 / PARTS + 1e-6


@settings(max_examples=60, deadline=None)
@given(ellipse=ellipses, seed=st.integers(0, 50))
def test_within_seen_looks_at_every_cell_and_beyond_the_map(ellipse, seed):
    x, y, *axes = ellipse
    map_ = make_map(seed, 0.1)
    a, b, c = entries(*axes)
    rows, columns = (index.ravel() for index in np.mgrid[-25 : SIZE + 25, -25 : SIZE + 25])
    padded = np.pad(map_.labels, 25, constant_values=UNKNOWN)
    hidden = padded.ravel() == UNKNOWN
    distances = least_distances(x, y, a, b, c, cell_boxes(map_, rows[hidden], columns[hidden]))
    assume((abs(distances - 1.0) > 1e-6).all())
    seen = (distances > 1.0).all()
    assert within_seen(x, y, a, b, c, map_) == seen


@pytest.mark.parametrize(
    ("shape", "hit"),
    [
        ((0.36, 0.0, 0.0), True),  # a segment along x that reaches the cell
        ((0.20, 0.0, 0.0), False),
        ((0.0, 0.0, 0.36), False),  # along y: passes by
        ((0.18, 0.18, 0.18), False),  # along the diagonal
        ((0.0, 0.0, 0.0), False),  # a point
    ],
)
def test_singular_ellipses_are_segments_and_points(shape, hit):
    labels = np.full((10, 10), FREE)
    labels[2, 7] = OCCUPIED  # x in [0.7, 0.8], y in [0.2, 0.3]
    map_ = obstacles(labels, resolution=RESOLUTION)
    assert hits_obstacle(0.22, 0.25, *shape, map_) == hit


def test_a_point_on_the_diagonal_segment_of_an_obstacle_is_hit():
    labels = np.full((10, 10), FREE)
    labels[7, 7] = OCCUPIED
    map_ = obstacles(labels, resolution=RESOLUTION)
    assert hits_obstacle(0.25, 0.25, 0.25, 0.25, 0.25, map_)
    assert not hits_obstacle(0.25, 0.25, 0.19, 0.19, 0.19, map_)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_region_that_is_the_whole_space_is_never_clear(bad):
    map_ = obstacles(np.full((10, 10), FREE), resolution=RESOLUTION)
    assert hits_obstacle(0.5, 0.5, bad, 0.0, 1.0, map_)
    assert penetration(0.5, 0.5, 1.0, 0.0, bad, map_) == 1.0
    assert not within_seen(0.5, 0.5, bad, 0.0, bad, map_)


def test_far_outside_of_the_map_nothing_is_known_to_be_occupied():
    map_ = make_map(1, 0.4)
    assert not hits_obstacle(1e6, -1e6, 0.01, 0.0, 0.01, map_)
    assert hits_obstacle(50.0, 0.5, 2600.0, 0.0, 2600.0, map_)


def test_a_centre_inside_an_obstacle_is_as_deep_as_can_be():
    labels = np.full((10, 10), FREE)
    labels[3:6, 3:6] = OCCUPIED
    map_ = obstacles(labels, resolution=RESOLUTION)
    assert penetration(0.45, 0.45, 0.01, 0.0, 0.02, map_) == 1.0


@settings(max_examples=200, deadline=None)
@given(
    way=st.tuples(st.floats(-0.7, 1.3), st.floats(-0.2, 1.8), st.floats(-0.7, 1.3), st.floats(-0.2, 1.8)),
    seed=st.integers(0, 50),
    density=st.sampled_from([0.0, 0.02, 0.1]),
)
def test_a_way_is_blocked_where_its_points_are(way, seed, density):
    x0, y0, x1, y1 = np.array(way) + 0.0031  # off the cells' edges, where rounding decides whose point it is
    map_ = make_map(seed, density)
    length = np.hypot(x1 - x0, y1 - y0)
    points = np.linspace(0.0, 1.0, 2001)[:, None] * [x1 - x0, y1 - y0] + [x0, y0]
    column, row = np.floor((points - [map_.x0, map_.y0]).T / RESOLUTION).astype(int)
    on_map = (column >= 0) & (row >= 0) & (column < SIZE) & (row < SIZE)
    inside = np.zeros(len(points), dtype=bool)
    inside[on_map] = map_.distance[row[on_map], column[on_map]] == 0.0
    longest = max((len(run) for run in "".join("#" if i else "." for i in inside).split(".")), default=0)
    if path_hits(x0, y0, x1, y1, map_):
        assert inside.any()
    else:  # only a corner cut by less than half a cell may be missed
        assert (longest - 1) * length / 2000 <= 0.5 * RESOLUTION + 1e-9


def test_nobody_leaps_over_a_wall_that_is_one_cell_thin():
    labels = np.full((10, 10), FREE)
    labels[:, 6] = OCCUPIED
    map_ = obstacles(labels, resolution=0.01)
    assert not hits_obstacle(0.095, 0.05, 1e-6, 0.0, 1e-6, map_)
    assert path_hits(0.03, 0.05, 0.095, 0.05, map_)
    assert path_hits(-5.0, 0.05, 5.0, 0.05, map_)
    assert not path_hits(0.03, 0.01, 0.03, 0.09, map_)
    assert path_hits(0.0, 0.0, np.inf, 0.0, map_)


def test_obstacles_of_a_belief_map_are_where_it_saw_them():
    geometry = FootprintGeometry(angles=9, ranges=10, field_of_view=1.0, max_range=1.0)
    belief = BeliefMap(("OCCUPIED", "UNKNOWN", "NOMINAL"), 0.1)
    cells = np.full((9, 10), 2, np.uint8)
    cells[:, 6:] = 1
    cells[:, 5] = 0  # 0.55 m ahead
    belief.update(cells, geometry, np.zeros(2), np.pi / 2)
    map_ = obstacles_of(belief)
    assert hits_obstacle(0.0, 0.3, 0.0, 0.0, 0.3**2, map_)
    assert not hits_obstacle(0.0, 0.3, 0.0, 0.0, 0.15**2, map_)
    assert path_hits(0.01, 0.55, 0.01, 0.55, map_)
