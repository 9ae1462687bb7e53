"""The planner: its update, its choices when nothing is clear, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
from tests.reference import mppi_reference
from tests.support.obstacles import FREE, OCCUPIED, Constant, corridor, obstacles

from ocular.dynamics.linear import LinearGaussian, double_integrator
from ocular.errors import InputError
from ocular.planning.mppi import MPPI, PlannerSettings, softmin
from ocular.planning.noise import draw_indices, normals

MODEL = double_integrator(0.05, floor=1e-6)
COV = 2e-5 * np.eye(4)
SMALL = PlannerSettings(samples=64, iterations=1, warmup=0, correlation=0.0)
GOAL = np.array([2.5, 0.4])


def plan(state, settings=SMALL, *, field=None, map_=None, seed=0, planner=None):
    planner = planner or MPPI(MODEL, COV, settings)
    rng = np.random.default_rng(seed)
    return planner.plan(np.array(state, float), 0.0, GOAL, map_ or corridor(), field or Constant(1.0), rng)


def test_one_update_equals_the_reference():
    state, map_ = np.array([1.0, 0.5, 0.8, 0.3]), corridor(resolution=0.1)
    planner = MPPI(MODEL, COV, replace(SMALL, samples=32))
    planner.plan(state, 0.0, GOAL, map_, Constant(1.3), np.random.default_rng(1))
    first = planner.plan(state, 0.0, GOAL, map_, Constant(1.3), np.random.default_rng(2))
    nominal = np.concatenate([first.nominal[1:], np.zeros((1, 2))])  # what the next update starts from
    got = planner.plan(state, 0.0, GOAL, map_, Constant(1.3), np.random.default_rng(3))

    noise = normals(draw_indices(np.random.default_rng(3), (9, 2, 32))).astype(float).transpose(2, 0, 1)
    noise[0], noise[1], noise[2] = -nominal, planner.brake.sequence(state, 9) - nominal, 0.0

    def cost(sequence):
        return mppi_reference.price(
            MODEL,
            planner.quantile,
            state,
            COV,
            0.0,
            sequence,
            GOAL,
            map_,
            planner.settings.weights,
            lambda *_: 1.3,
        )[0]

    wanted = mppi_reference.update(nominal, noise, 0.9, 0.25, cost)
    assert got.collisions == 0
    np.testing.assert_allclose(got.nominal, wanted, atol=2e-4)
    np.testing.assert_array_equal(got.action, got.nominal[0])


def test_weights_sum_to_one_and_favour_the_cheap():
    weights = softmin(np.array([3.0, 1.0, 1.25, 5000.0], np.float32), 0.25)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[2] / weights[1] == pytest.approx(np.exp(-1), rel=1e-5)
    assert weights[3] == 0


def test_it_drives_to_the_goal_along_a_free_corridor():
    planner, state, rng = (
        MPPI(MODEL, COV, PlannerSettings(samples=256)),
        np.array([0.3, 0.4, 0, 0]),
        np.random.default_rng(0),
    )
    for _ in range(120):
        decided = planner.plan(state, 0.0, GOAL, corridor(), Constant(1.0), rng)
        assert decided.collisions == 0
        assert (abs(decided.nominal) <= 0.9).all()
        state = MODEL.A @ state + MODEL.B @ decided.action
        if np.linalg.norm(state[:2] - GOAL) < 0.3:
            return
    pytest.fail(f"still at {state} after 120 steps")


def test_when_every_sample_collides_it_brakes_and_does_not_chase_the_goal():
    state = [1.0, 0.4, 1.0, 0.5]
    decided = plan(state, field=Constant(8.0))
    assert decided.all_collide
    assert decided.collisions > 0
    np.testing.assert_allclose(decided.action, [-0.9, -0.45], atol=1e-6)
    speeds = np.linalg.norm(decided.regions.mean[:, 2:], axis=1)
    assert (np.diff(speeds) < 0).all()


def test_an_infinite_threshold_is_never_safe():
    decided = plan([1.0, 0.4, 0.0, 0.0], field=Constant(np.inf), map_=obstacles(np.full((9, 9), FREE)))
    assert decided.all_collide
    assert decided.collisions == SMALL.horizon
    np.testing.assert_array_equal(decided.action, 0.0)  # at rest already


def test_from_inside_an_obstacle_it_brakes():
    decided = plan([-0.03, 0.4, 0.0, 0.2])
    assert decided.all_collide
    assert decided.action[1] < 0


def test_after_braking_it_drives_on_once_plans_are_clear_again():
    planner = MPPI(MODEL, COV, replace(SMALL, samples=256))
    assert plan([1.0, 0.4, 0.5, 0.0], planner=planner, field=Constant(8.0)).all_collide
    freed = plan([1.0, 0.4, 0.2, 0.0], planner=planner)
    assert not freed.all_collide
    assert freed.collisions == 0


def test_the_plan_is_clear_wherever_a_clear_sample_exists():
    """Left and right of a pillar are clear; their mean is not."""
    labels = np.full((200, 200), FREE)
    labels[95:105, 70:80] = OCCUPIED
    map_ = obstacles(labels)
    for seed in range(20):
        planner = MPPI(MODEL, COV, replace(SMALL, samples=128))
        decided = planner.plan(
            np.array([0.35, 1.0, 0.8, 0.0]),
            0.0,
            np.array([1.5, 1.0]),
            map_,
            Constant(1.0),
            np.random.default_rng(seed),
        )
        assert decided.all_collide or decided.collisions == 0


def test_leaving_the_map_is_allowed_where_nothing_is_known():
    decided = plan([30.0, -4.0, 0.5, 0.0])
    assert not decided.all_collide
    assert decided.collisions == 0


def test_the_same_seed_gives_the_same_plan_and_reset_forgets():
    one, other = plan([0.5, 0.4, 0.3, 0.0], seed=5), plan([0.5, 0.4, 0.3, 0.0], seed=5)
    np.testing.assert_array_equal(one.nominal, other.nominal)
    np.testing.assert_array_equal(one.costs, other.costs)
    planner = MPPI(MODEL, COV, SMALL)
    plan([0.5, 0.4, 0.3, 0.0], seed=7, planner=planner)
    planner.reset()
    np.testing.assert_array_equal(plan([0.5, 0.4, 0.3, 0.0], seed=5, planner=planner).nominal, one.nominal)


def test_without_a_scale_field_the_regions_are_points():
    planner = MPPI(MODEL, COV, SMALL)
    decided = planner.plan(
        np.array([0.5, 0.4, 0.3, 0]), 0.0, GOAL, corridor(), None, np.random.default_rng(0)
    )
    assert (decided.regions.cov == 0).all()
    assert decided.collisions == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"samples": 3}, "samples is 3; allowed is at least 4"),
        ({"horizon": 0}, "horizon is 0; allowed is at least 1"),
        ({"temperature": 0.0}, "temperature is 0.0; allowed is a positive number"),
        ({"correlation": 1.0}, "correlation is 1.0; allowed is 0 <= correlation < 1"),
        ({"alpha": 1.5}, "alpha is 1.5"),
    ],
)
def test_settings_out_of_range_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        PlannerSettings(**change)


def test_a_state_that_is_not_finite_is_refused():
    with pytest.raises(InputError, match="state has 1 values that are not finite"):
        plan([0.0, np.nan, 0.0, 0.0])


def test_a_model_of_another_size_is_refused():
    with pytest.raises(InputError, match="the model has 3 states and 1 actions; allowed are the 4 states"):
        MPPI(LinearGaussian(np.eye(3), np.ones((3, 1)), np.eye(3)), np.eye(3), SMALL)
