"""Least squares finds the model that made the logs, is judged on unseen ones, and refuses idle ones."""

from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import LABELS, SMALL

from ocular.dynamics import (
    LinearGaussian,
    body_velocity,
    differential_drive,
    double_integrator,
    fit_linear,
    fit_unicycle,
    held_out,
    unicycle,
)
from ocular.errors import InputError
from ocular.records import Footprints, Inputs, Transitions

WHEELS = differential_drive(
    0.5, np.diag([4e-3, 1e-3, 9e-3]), wheel_radius=0.3, baseline=1.1, speed_gain=0.9, turn_gain=0.5
)


def logged(rng, model, n, environments=("a", "b", "c")) -> Transitions:
    states = rng.uniform(-2, 2, (n, model.state_dim))
    actions = rng.uniform(-3, 3, (n, model.action_dim))
    seen = Footprints(np.zeros((1, 16, 8), np.uint8), LABELS, SMALL)
    inputs = Inputs(states, actions, np.zeros(n), np.zeros(n, np.int64), seen)
    return Transitions(
        inputs, model.step(rng, states, actions), np.arange(n) % len(environments), environments
    )


@pytest.mark.parametrize("d", [1, 3, 6])
def test_any_linear_model_is_found_again(d, rng):
    factor = rng.normal(size=(d, d))
    truth = LinearGaussian(rng.normal(size=(d, d)), rng.normal(size=(d, 2)), 0.01 * factor @ factor.T)
    found = fit_linear(logged(rng, truth, 20_000))
    np.testing.assert_allclose(found.A, truth.A, atol=0.02)
    np.testing.assert_allclose(found.B, truth.B, atol=0.02)
    np.testing.assert_allclose(found.Q, truth.Q, atol=0.05 * np.abs(truth.Q).max())


def test_without_noise_the_fit_is_exact(rng):
    for truth, fit in (
        (replace(double_integrator(0.1), Q=np.zeros((4, 4))), fit_linear),
        (replace(WHEELS, Q=np.zeros((3, 3))), lambda logs: fit_unicycle(logs, 0.5)),
    ):
        found = fit(logged(rng, truth, 50))
        for name, array in truth.to_arrays().items():
            np.testing.assert_allclose(found.to_arrays()[name], array, atol=1e-12)


def test_the_gains_of_wheels_are_found_again(rng):
    found = fit_unicycle(logged(rng, WHEELS, 20_000), 0.5)
    np.testing.assert_allclose(found.G, WHEELS.G, atol=4e-3)
    np.testing.assert_allclose(found.Q, WHEELS.Q, atol=3e-4)


def test_velocity_undoes_displacement(rng):
    robot, actions = unicycle(0.5, np.eye(3)), rng.uniform(-6, 6, (50, 2))
    velocity = body_velocity(robot.displacement(actions), 0.5)
    np.testing.assert_allclose(velocity[:, [0, 2]], actions, atol=1e-12)
    np.testing.assert_allclose(velocity[:, 1], 0, atol=1e-12)


def test_each_environment_is_predicted_by_a_fit_to_the_others(rng):
    logs = logged(rng, WHEELS, 3000)
    odd = logs.environment == 1  # a place of its own, where the robot moves backwards
    backwards = replace(WHEELS, G=-WHEELS.G).step(rng, logs.inputs.states, logs.inputs.actions)
    logs = replace(logs, next_states=np.where(odd[:, None], backwards, logs.next_states))
    reports = held_out(lambda seen: fit_unicycle(seen, 0.5), logs)
    assert [(r.name, r.transitions) for r in reports] == [("a", 1000), ("b", 1000), ("c", 1000)]
    assert (reports[1].explained < 0).all()
    assert (reports[1].error > 2 * reports[1].expected).all()


def test_where_the_model_is_right_its_error_is_what_it_expects(rng):
    logs = logged(rng, WHEELS, 5000, environments=("yard",))
    reports = held_out(lambda seen: fit_unicycle(seen, 0.5), logs)
    assert [r.name for r in reports] == [f"block {k} of 5" for k in range(1, 6)]
    for report in reports:
        np.testing.assert_allclose(report.error, report.expected, rtol=0.15)
        assert (report.explained > 0.7).all()


def test_yaws_on_either_side_of_the_seam_are_close(rng):
    logs = logged(rng, WHEELS, 2000)
    wrapped = logs.next_states.copy()
    wrapped[:, 2] = (wrapped[:, 2] + np.pi) % (2 * np.pi) - np.pi
    seam = replace(logs, next_states=wrapped)
    np.testing.assert_allclose(fit_unicycle(seam, 0.5).Q, fit_unicycle(logs, 0.5).Q, rtol=1e-6, atol=1e-12)
    plain, other = (held_out(lambda seen: fit_unicycle(seen, 0.5), each) for each in (logs, seam))
    np.testing.assert_allclose(other[0].error, plain[0].error, rtol=1e-6)


def test_logs_that_cannot_tell_are_refused(rng):
    logs = logged(rng, WHEELS, 100)
    still = replace(logs, inputs=replace(logs.inputs, actions=logs.inputs.actions * [1, 0]))
    with pytest.raises(
        InputError, match="vary along too few directions, entry 1 never; allowed are more than 2"
    ):
        fit_unicycle(still, 0.5)
    alike = replace(logs, inputs=replace(logs.inputs, actions=logs.inputs.actions[:, [0, 0]]))
    with pytest.raises(InputError, match="100 transitions in which the 2 fitted entries"):
        fit_unicycle(alike, 0.5)
    with pytest.raises(InputError, match="5 transitions in which the 5 fitted entries"):
        fit_linear(logs.take(np.arange(5)))
    with pytest.raises(InputError, match="0 transitions"):
        fit_unicycle(logs.take(np.arange(0)), 0.5)
    with pytest.raises(InputError, match="dt is -1"):
        fit_unicycle(logs, -1)
    planar = logged(rng, double_integrator(0.1), 50)
    with pytest.raises(InputError, match=r"states of a unicycle has shape \(50, 4\); allowed is \(any, 3\)"):
        fit_unicycle(planar, 0.5)
