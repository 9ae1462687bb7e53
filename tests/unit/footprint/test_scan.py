from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from ocular.errors import InputError
from ocular.footprint import LabelGrid, scan, scan_reference
from ocular.footprint.scan import rays, scan_into
from ocular.records import FootprintGeometry

NAMES = ("OCCUPIED", "UNKNOWN", "A", "B")
OCCUPIED, UNKNOWN, A, B = range(4)
SMALL = FootprintGeometry(angles=24, ranges=16)


def random_grid(
    rng, rows=60, cols=45, occupied=0.01, outside="OCCUPIED", origin=(-0.7, 0.3), resolution=0.02
):
    share = np.array([occupied, 0.2, 0.4, 0.4 - occupied])
    labels = rng.choice(4, size=(rows, cols), p=share).astype(np.uint8)
    return LabelGrid(labels, NAMES, resolution, origin, outside)


def poses(rng, grid, n, margin=0.3):
    low = np.array(grid.origin) - margin
    high = np.array(grid.origin) + grid.size + margin
    return rng.uniform(low, high, (n, 2)), rng.uniform(-np.pi, np.pi, n)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    occupied=st.sampled_from([0.0, 0.003, 0.2]),
    outside=st.sampled_from(NAMES),
    resolution=st.sampled_from([0.005, 0.01, 0.02, 1 / 3]),
    threads=st.sampled_from([1, 2]),
)
def test_the_kernel_agrees_with_the_reference_bit_for_bit(seed, occupied, outside, resolution, threads):
    rng = np.random.default_rng(seed)
    grid = random_grid(rng, occupied=occupied, outside=outside, resolution=resolution)
    positions, headings = poses(rng, grid, 12)
    fast = scan(grid, SMALL, positions, headings, threads=threads)
    assert np.array_equal(fast, scan_reference(grid, SMALL, positions, headings))


def test_they_agree_where_samples_fall_exactly_on_edges_of_cells():
    rng = np.random.default_rng(0)
    grid = random_grid(rng, origin=(0.0, 0.0), resolution=0.25)
    geometry = FootprintGeometry(angles=1, ranges=8, max_range=4.0)  # distances .25, .75, ...
    at = np.arange(-2, 20) * 0.25
    positions = np.stack(np.meshgrid(at, at), -1).reshape(-1, 2)
    for heading in np.arange(-4, 5) * np.pi / 4:
        headings = np.full(len(positions), heading)
        fast = scan(grid, geometry, positions, headings)
        assert np.array_equal(fast, scan_reference(grid, geometry, positions, headings))


def test_they_agree_far_away_and_with_no_poses():
    grid = random_grid(np.random.default_rng(1))
    positions = np.array([[1e300, 0.0], [-1e12, 1e12], [3e9, -3e9]])
    fast = scan(grid, SMALL, positions, np.zeros(3))
    assert np.array_equal(fast, scan_reference(grid, SMALL, positions, np.zeros(3)))
    assert scan(grid, SMALL, np.empty((0, 2)), np.empty(0), threads=2).shape == (0, 24, 16)


def test_the_first_occupied_cell_hides_what_is_behind_it():
    labels = np.full((3, 100), A, np.uint8)
    labels[:, 50:55] = OCCUPIED
    labels[:, 70:] = B
    grid = LabelGrid(labels, NAMES, 0.1, (0.0, 0.0), "B")
    geometry = FootprintGeometry(angles=1, ranges=100, max_range=10.0)  # one sample a cell, straight ahead
    ahead = scan(grid, geometry, np.array([[0.0, 0.15]]), np.array([0.0]))[0, 0]
    assert (ahead[:50] == A).all()
    assert ahead[50] == OCCUPIED
    assert (ahead[51:] == UNKNOWN).all()


def test_unknown_cells_hide_nothing():
    labels = np.full((3, 100), A, np.uint8)
    labels[:, 20:30] = UNKNOWN
    grid = LabelGrid(labels, NAMES, 0.1, (0.0, 0.0), "B")
    geometry = FootprintGeometry(angles=1, ranges=100, max_range=10.0)
    ahead = scan(grid, geometry, np.array([[0.0, 0.15]]), np.array([0.0]))[0, 0]
    assert np.array_equal(ahead, labels[1])


def test_a_robot_inside_an_obstacle_sees_the_obstacle_and_nothing_else():
    grid = random_grid(np.random.default_rng(2))
    solid = replace(grid, labels=np.zeros_like(grid.labels))
    seen = scan(solid, SMALL, np.array([[-0.2, 0.9]]), np.array([0.4]))[0]
    assert (seen[:, 0] == OCCUPIED).all()
    assert (seen[:, 1:] == UNKNOWN).all()


def test_a_robot_off_the_map_sees_the_label_outside():
    grid = random_grid(np.random.default_rng(3), outside="B")
    seen = scan(grid, SMALL, np.array([[50.0, -50.0]]), np.array([1.0]))
    assert (seen == B).all()


def test_the_first_angle_is_the_robots_right():
    labels = np.full((40, 40), A, np.uint8)
    labels[20:] = B
    grid = LabelGrid(labels, NAMES, 0.1, (-2.0, -2.0), "UNKNOWN")
    seen = scan(grid, SMALL, np.zeros((1, 2)), np.array([0.0]))[0]  # looking along x, B is on the left
    assert (seen[:12] == A).all()
    assert (seen[12:] == B).all()


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_turning_the_map_and_the_pose_by_right_angles_changes_nothing(turns):
    rng = np.random.default_rng(turns)
    grid = random_grid(rng, rows=50, cols=50, origin=(-0.5, -0.5), occupied=0.005)
    positions, headings = poses(rng, grid, 200, margin=0.1)
    # rot90 with the axes (columns, rows) turns y-up pictures counter-clockwise.
    turned = replace(grid, labels=np.ascontiguousarray(np.rot90(grid.labels, turns, axes=(1, 0))))
    moved = positions
    for _ in range(turns):
        moved = np.stack([-moved[:, 1], moved[:, 0]], axis=1)
    before = scan(grid, SMALL, positions, headings)
    assert np.array_equal(scan(turned, SMALL, moved, headings + turns * np.pi / 2), before)
    assert not np.array_equal(scan(turned, SMALL, moved, headings), before)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), order=st.permutations(range(4)))
def test_relabelling_the_map_relabels_the_footprints(seed, order):
    rng = np.random.default_rng(seed)
    grid = random_grid(rng)
    positions, headings = poses(rng, grid, 5)
    new_number = np.array(order, np.uint8)  # old label i becomes number order[i]
    names = tuple(NAMES[order.index(k)] for k in range(4))
    renumbered = replace(grid, labels=new_number[grid.labels], names=names)
    expected = new_number[scan(grid, SMALL, positions, headings)]
    assert np.array_equal(scan(renumbered, SMALL, positions, headings), expected)


def test_it_can_be_called_from_another_kernel_with_a_velocity_for_a_heading():
    @njit
    def look(labels, resolution, rays_x, rays_y, reach, x, y, vx, vy, out):
        speed = np.hypot(vx, vy)
        scan_into(
            labels,
            1 / resolution,
            0.0,
            0.0,
            rays_x,
            rays_y,
            reach,
            0,
            1,
            0,
            x,
            y,
            vx / speed,
            vy / speed,
            out,
        )

    grid = random_grid(np.random.default_rng(5), origin=(0.0, 0.0))
    out = np.empty((SMALL.angles, SMALL.ranges), np.uint8)
    look(grid.labels, grid.resolution, *rays(SMALL, grid.resolution), 0.4, 0.6, 0.3, 0.4, out)
    heading = np.arctan2(np.array([0.4]), np.array([0.3]))
    assert np.array_equal(out, scan(grid, SMALL, np.array([[0.4, 0.6]]), heading)[0])


def test_labels_that_are_not_contiguous_are_scanned_the_same():
    rng = np.random.default_rng(6)
    grid = random_grid(rng)
    positions, headings = poses(rng, grid, 5)
    strided = replace(grid, labels=np.asfortranarray(grid.labels))
    assert np.array_equal(scan(strided, SMALL, positions, headings), scan(grid, SMALL, positions, headings))


@pytest.mark.parametrize(
    ("positions", "headings", "threads", "message"),
    [
        (np.zeros((3, 3)), np.zeros(3), 1, r"positions has shape \(3, 3\); allowed is \(any, 2\)"),
        (np.zeros((3, 2)), np.zeros(2), 1, r"headings has shape \(2,\); allowed is \(3\)"),
        (np.full((1, 2), np.nan), np.zeros(1), 1, "positions has 2 values that are not finite"),
        (np.zeros((1, 2)), np.full(1, np.inf), 1, "headings has 1 values that are not finite"),
        (np.zeros((1, 2)), np.zeros(1), 0, "threads is 0; allowed is at least 1"),
    ],
)
def test_bad_poses_say_what_is_allowed(positions, headings, threads, message):
    with pytest.raises(InputError, match=message):
        scan(random_grid(np.random.default_rng(0)), SMALL, positions, headings, threads=threads)
