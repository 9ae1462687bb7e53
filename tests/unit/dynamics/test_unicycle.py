"""The unicycle moves along arcs, in any direction alike, and its covariance is what its noise does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocular.conformal import Region, squared_mahalanobis
from ocular.dynamics import Unicycle, body_displacement, differential_drive, unicycle
from ocular.errors import InputError
from ocular.records import Gaussian

Q = np.diag([1e-4, 4e-4, 1e-3])
CERTAIN = np.zeros((3, 3))


def poses(rng, n):
    return rng.uniform([-5, -5, -np.pi], [5, 5, np.pi], (n, 3))


def test_it_drives_the_arc_that_many_short_steps_drive(rng):
    G = rng.normal(size=(3, 4))  # slides sideways too
    start, actions = poses(rng, 50), rng.normal(size=(50, 4))
    whole = Unicycle(0.8, G, Q).predict(Gaussian(start, CERTAIN), actions).mean
    short, pose = Unicycle(0.8 / 1000, G, Q), start
    for _ in range(1000):
        pose = short.predict(Gaussian(pose, CERTAIN), actions).mean
    np.testing.assert_allclose(whole, pose, atol=1e-9)
    twist = actions @ G.T * (0.8 / 1000)  # and the short steps are the straight ones of a textbook
    euler = np.stack(
        [
            np.cos(start[:, 2]) * twist[:, 0] - np.sin(start[:, 2]) * twist[:, 1],
            np.sin(start[:, 2]) * twist[:, 0] + np.cos(start[:, 2]) * twist[:, 1],
            twist[:, 2],
        ],
        axis=1,
    )
    one = short.predict(Gaussian(start, CERTAIN), actions).mean
    np.testing.assert_allclose(one, start + euler, atol=1e-5)


def test_covariance_is_that_of_many_noisy_steps(rng):
    robot = unicycle(0.5, Q, speed_gain=0.9)
    state_cov = np.array([[2e-4, 1e-4, 0], [1e-4, 3e-4, 0], [0, 0, 5e-4]])
    start, action = np.array([1.0, -2.0, 2.2]), np.array([1.5, -0.8])
    predicted = robot.predict(Gaussian(start, state_cov), action)
    starts = rng.multivariate_normal(start, state_cov, 50_000)
    after = robot.step(rng, starts, action)
    np.testing.assert_allclose(after.mean(axis=0), predicted.mean, atol=2e-3)
    np.testing.assert_allclose(np.cov(after.T), predicted.cov, atol=3e-5)


@given(st.integers(0, 10**6), st.floats(-9, 9), st.floats(-7, 7))
def test_scores_do_not_change_when_the_world_is_moved_and_turned(seed, shift, turn):
    rng = np.random.default_rng(seed)
    robot = differential_drive(0.5, Q, wheel_radius=0.3, baseline=1.1)
    start, actions = poses(rng, 30), rng.uniform(-8, 8, (30, 2))
    after = robot.step(rng, start, actions)
    cos, sin = np.cos(turn), np.sin(turn)
    rigid = np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])

    def moved(states):
        return states @ rigid.T + [shift, -shift, turn]

    plain = squared_mahalanobis(robot.predict(Gaussian(start, 1e-4 * np.eye(3)), actions), after)
    other = squared_mahalanobis(
        robot.predict(Gaussian(moved(start), 1e-4 * np.eye(3)), actions), moved(after)
    )
    np.testing.assert_allclose(plain, other, rtol=1e-6, atol=1e-9)


def test_a_full_turn_of_the_yaw_changes_no_score(rng):
    robot = unicycle(0.5, Q)
    start, actions = poses(rng, 40), rng.normal(size=(40, 2))
    after = robot.step(rng, start, actions)
    prediction = robot.predict(Gaussian(start, CERTAIN), actions)
    plain = squared_mahalanobis(prediction, after)
    for turns in (-2, 1, 3):
        other = after + np.array([0, 0, 2 * np.pi * turns])
        np.testing.assert_allclose(squared_mahalanobis(prediction, other), plain, rtol=1e-6)
        np.testing.assert_allclose(
            body_displacement(start, other), body_displacement(start, after), atol=1e-9
        )
    shadow = Region(prediction, np.full(40, 6.0)).marginal((2,))  # the shadow on the yaw wraps as well
    inside = shadow.contains(after[:, 2:])
    assert inside.any()
    assert np.array_equal(shadow.contains(after[:, 2:] + 2 * np.pi), inside)


def test_wheel_speeds_and_body_velocities_are_the_same_robot():
    by_wheels = differential_drive(0.5, Q, wheel_radius=0.3, baseline=1.2, speed_gain=0.9, turn_gain=0.6)
    by_velocity = unicycle(0.5, Q, speed_gain=0.9, turn_gain=0.6)
    left, right = 4.0, 6.0
    velocity = np.array([0.3 * (left + right) / 2, 0.3 * (right - left) / 1.2])
    np.testing.assert_allclose(
        by_wheels.displacement(np.array([left, right])), by_velocity.displacement(velocity)
    )


def test_body_displacement_undoes_a_step(rng):
    robot = unicycle(0.5, 0 * Q)
    start, actions = poses(rng, 30), rng.normal(size=(30, 2))
    after = robot.step(rng, start, actions)
    np.testing.assert_allclose(body_displacement(start, after), robot.displacement(actions), atol=1e-12)


def test_bad_parameters_are_refused():
    with pytest.raises(InputError, match="dt is 0; allowed is a positive number of seconds"):
        unicycle(0, Q)
    with pytest.raises(InputError, match=r"G has shape \(2, 2\); allowed is \(3, any\)"):
        Unicycle(0.1, np.eye(2), Q)
    with pytest.raises(InputError, match="Q is not positive semidefinite"):
        unicycle(0.1, -Q)
    with pytest.raises(InputError, match=r"wheel_radius=0, baseline=1; allowed are positive"):
        differential_drive(0.1, Q, wheel_radius=0, baseline=1)
    with pytest.raises(InputError, match=r"actions of shape \(5, 3\); allowed are \(..., 3\) and \(..., 2\)"):
        unicycle(0.1, Q).predict(Gaussian(np.zeros((5, 3)), CERTAIN), np.zeros((5, 3)))
    with pytest.raises(InputError, match=r"angles are \(3,\); allowed are entries 0 to 2"):
        Gaussian(np.zeros(3), CERTAIN, angles=(3,))
