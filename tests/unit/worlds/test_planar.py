from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocular.errors import InputError
from ocular.records import FootprintGeometry
from ocular.worlds import PlanarWorld, heading, load_map

S = PlanarWorld(load_map("S"))
ON_GOOD, ON_ICE = (0.6, 0.6), (2.1, 2.0)


def states(*rows):
    return np.array(rows, float)


def test_ice_carries_robots_further_and_good_ground_does_not():
    start = states((*ON_GOOD, 1.0, -0.5), (*ON_ICE, 1.0, -0.5))
    action = states((0.9, 0.4), (0.9, 0.4))
    moved = S.expected(start, action) - start
    nominal = [0.05 * 1.0 + 0.00125 * 0.9, 0.05 * -0.5 + 0.00125 * 0.4, 0.05 * 0.9, 0.05 * 0.4]
    assert moved[0] == pytest.approx(nominal)
    assert moved[1] == pytest.approx(1.3 * np.array(nominal))


def test_a_step_has_the_noise_of_the_paper():
    start = np.tile([*ON_ICE, 0.3, 0.2], (200_000, 1))
    after = S.step(np.random.default_rng(0), start, np.zeros((len(start), 2)))
    B = np.vstack([0.00125 * np.eye(2), 0.05 * np.eye(2)])
    wanted = 0.1 * B @ B.T + 1e-6 * np.eye(4)
    deviations = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    assert (np.abs(np.cov(after.T) - wanted) < 0.015 * deviations).all()
    assert np.abs(after.mean(axis=0) - S.expected(start[:1], np.zeros((1, 2)))).max() < 1e-4


def test_a_particle_has_the_uncertainty_of_the_known_state_too():
    start = np.tile([*ON_GOOD, 0.3, 0.2], (200_000, 1))
    after = S.draw(np.random.default_rng(0), start, np.zeros((len(start), 2)))
    wanted = S.nominal.A @ S.state_cov @ S.nominal.A.T + S.nominal.Q
    assert np.diag(np.cov(after.T)) == pytest.approx(np.diag(wanted), rel=0.02)


def test_particles_of_one_case_share_the_ground_under_its_known_position():
    x_of_ice = 1.65
    for x, slip in ((x_of_ice - 1e-6, 1.0), (x_of_ice + 1e-6, 1.3)):  # one half is truly on the other side
        start = np.tile([x, 0.6, 1.8, 0.0], (20_000, 1))
        after = S.draw(np.random.default_rng(0), start, np.zeros((len(start), 2)))
        spread = np.sqrt(2e-5 + 2e-5 * (slip * 0.05) ** 2 + 1e-6 + 0.1 * 0.00125**2)
        assert after[:, 0].mean() == pytest.approx(
            x + slip * 1.8 * 0.05, abs=6 * spread / np.sqrt(len(start))
        )
        assert after[:, 0].std() == pytest.approx(spread, rel=0.05)  # one heap, not two


def test_a_step_moves_each_robot_as_the_ground_where_it_truly_is():
    start = states((1.649, 0.6, 1.0, 0.0), (1.651, 0.6, 1.0, 0.0))
    moved = S.expected(start, np.zeros((2, 2)))[:, 0] - start[:, 0]
    assert moved == pytest.approx([0.05, 0.065])


def test_one_robot_s_noise_does_not_depend_on_the_ground_of_another():
    pair = states((*ON_GOOD, 0.0, 0.0), (*ON_GOOD, 1.0, 0.0))
    mixed = states((*ON_ICE, 0.0, 0.0), (*ON_GOOD, 1.0, 0.0))
    actions = np.zeros((2, 2))
    one = S.step(np.random.default_rng(7), pair, actions)
    other = S.step(np.random.default_rng(7), mixed, actions)
    assert np.array_equal(one[1], other[1])


def test_free_and_slippery_are_where_the_map_says():
    points = np.array([ON_GOOD, ON_ICE, (0.1, 0.1), (-1.0, 9.0)])
    assert S.is_free(points).tolist() == [True, True, False, False]
    assert S.region(points).tolist() == [False, True, False, False]


def test_a_drive_through_a_wall_is_not_free_though_both_ends_are():
    start = np.array([[0.6, 0.6], [0.6, 0.6], [1.0, 0.9]])
    end = np.array([[1.5, 0.6], [2.0, 3.9], [1.9, 1.3]])
    assert S.is_free(start).all()
    assert S.is_free(end).all()
    assert S.path_is_free(start, end).tolist() == [True, False, False]
    assert S.path_is_free(end, start).tolist() == [True, False, False]


def test_a_drive_that_goes_nowhere_is_free_where_the_robot_is():
    points = np.array([ON_GOOD, (0.1, 0.1)])
    assert S.path_is_free(points, points).tolist() == [True, False]
    assert bool(S.path_is_free(np.array(ON_GOOD), np.array([0.6, 0.05]))) is False


@given(st.floats(-np.pi, np.pi), st.floats(1e-3, 10), st.floats(-np.pi, np.pi))
def test_a_moving_robot_looks_where_it_goes(direction, speed, last):
    row = states((0, 0, speed * np.cos(direction), speed * np.sin(direction)))
    got = heading(row, np.array([last]))
    assert np.cos(got - direction) == pytest.approx(1.0)


def test_a_resting_robot_keeps_looking_where_it_looked():
    rows = states((0, 0, 0, 0), (0, 0, 1e-12, -1e-12), (0, 0, 0, 2.0))
    assert heading(rows, np.array([0.3, -2.0, 1.0])).tolist() == [0.3, -2.0, np.pi / 2]
    with pytest.raises(InputError, match="last has shape"):
        heading(rows, np.zeros(2))


def test_a_robot_sees_the_wall_at_its_distance_and_the_ice():
    world = replace(S, geometry=FootprintGeometry(angles=3, ranges=65, max_range=0.65))  # a cell is 1 cm
    up, ahead = world.observe(np.array([[1.3, 0.6], [1.3, 0.6]]), np.array([np.pi / 2, 0.0]))[:, 1]
    assert up[:50].tolist() == [2] * 50
    assert up[50:].tolist() == [0] + [1] * 14
    assert ahead.tolist() == [2] * 35 + [3] * 30


@pytest.mark.parametrize("bad", [{"state_variance": -1.0}, {"action_bound": 0.0}, {"action_bound": np.nan}])
def test_bad_settings_say_what_is_allowed(bad):
    with pytest.raises(InputError, match="allowed are finite state_variance >= 0, action_bound > 0"):
        PlanarWorld(S.map, **bad)
    with pytest.raises(InputError, match=r"slip=-1\.0"):
        _ = PlanarWorld(S.map, slip=-1.0).slippery
