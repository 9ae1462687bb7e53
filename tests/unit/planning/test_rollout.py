"""Compiled rollouts against the plain reference, and what infinite scales do."""

import numpy as np
import pytest
from tests.reference import mppi_reference
from tests.support.obstacles import Constant, corridor

from ocular.dynamics.linear import LinearGaussian, double_integrator
from ocular.errors import InputError
from ocular.planning.cost import CAMERA_WEIGHTS, PLANAR_WEIGHTS, CostWeights
from ocular.planning.ellipse import PARTS
from ocular.planning.noise import draw_indices, normals, perturb
from ocular.planning.rollout import Brake, Rollout

MODEL = double_integrator(0.05, floor=1e-6)
COV = 2e-5 * np.eye(4)
QUANTILE = 7.78
GOAL = np.array([1.5, 0.4])


class Uneven:
    """Scales that depend on everything a field is told."""

    @staticmethod
    def one(mean, heading, action):
        return 1.2 + 0.5 * np.sin(3 * mean[0]) + 0.3 * np.cos(heading) + 0.4 * action[1] ** 2

    def scales(self, means, headings, actions):
        return np.array([self.one(m, h, a) for m, h, a in zip(means, headings, actions, strict=True)])


@pytest.fixture(scope="module")
def actions():
    rng = np.random.default_rng(3)
    return np.clip(rng.standard_normal((9, 2, 12)), -0.9, 0.9).astype(np.float32)


@pytest.mark.parametrize("state", [[0.3, 0.4, 0.0, 0.0], [1.0, 0.68, 0.9, 0.1], [2.5, 0.2, 1.3, -0.2]])
@pytest.mark.parametrize("weights", [PLANAR_WEIGHTS, CAMERA_WEIGHTS])
def test_price_equals_the_reference(actions, state, weights):
    map_ = corridor(resolution=0.1)
    got = Rollout(MODEL, QUANTILE).price(np.array(state), COV, 0.3, actions, GOAL, map_, weights, Uneven())
    for s in range(actions.shape[2]):
        sequence = actions[:, :, s].astype(float)
        cost, collisions = mppi_reference.price(
            MODEL, QUANTILE, np.array(state), COV, 0.3, sequence, GOAL, map_, weights, Uneven.one
        )
        assert got.collisions[s] == collisions
        depths = weights.penetration / PARTS * collisions  # penetration is rounded up
        assert cost - 1e-3 <= got.costs[s] <= cost + depths + 1e-3 + 1e-6 * cost


def test_regions_are_the_chained_predictions():
    sequence = np.array([[0.5, -0.2], [0.1, 0.9], [-0.9, 0.0]])
    state = np.array([0.2, 0.4, 0.3, 0.0])
    regions = Rollout(MODEL, QUANTILE).regions(
        state, COV, 0.0, np.ascontiguousarray(sequence[:, :, None], np.float32), Constant(2.5)
    )
    mean, cov = state, COV
    for h, action in enumerate(sequence):
        mean = MODEL.A @ mean + MODEL.B @ action
        cov = 2.5 * (MODEL.A @ cov @ MODEL.A.T + MODEL.Q)
        np.testing.assert_allclose(regions.mean[h], mean, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(regions.cov[h], cov, rtol=1e-5, atol=1e-10)


def test_any_linear_model_whose_state_begins_with_position_and_velocity(rng):
    model = LinearGaussian(rng.normal(size=(4, 4)), rng.normal(size=(4, 2)), np.diag([0.1, 0.2, 0.3, 0.4]))
    sequence = rng.normal(size=(2, 2, 1)).astype(np.float32)
    regions = Rollout(model, QUANTILE).regions(np.ones(4), COV, 0.0, sequence, Constant(1.0))
    cov = model.A @ (model.A @ COV @ model.A.T + model.Q) @ model.A.T + model.Q
    np.testing.assert_allclose(regions.cov[-1], cov, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("xi", [np.inf, np.nan, 1e30])
def test_a_scale_without_limit_is_unsafe_from_there_on_and_never_cheaper(actions, xi):
    class LateBlowUp(Constant):
        calls = 0

        def scales(self, means, headings, actions):  # noqa: ARG002
            self.calls += 1
            scales = np.ones(len(means))
            scales[0] = xi if self.calls == 7 else 1.0
            return scales

    rollout = Rollout(MODEL, QUANTILE)
    arguments = (np.array([0.5, 0.4, 0.1, 0.0]), COV, 0.0, actions, GOAL, corridor(), PLANAR_WEIGHTS)
    calm, blown = rollout.price(*arguments, Constant(1.0)), rollout.price(*arguments, LateBlowUp(1.0))
    assert calm.collisions[0] == 0
    assert blown.collisions[0] == 3
    assert np.isfinite(blown.costs).all()
    assert blown.costs[0] > calm.costs[0] + 2900
    np.testing.assert_array_equal(blown.costs[1:], calm.costs[1:])
    regions = rollout.regions(arguments[0], COV, 0.0, actions[:, :, :1], LateBlowUp(1.0))
    assert np.isfinite(regions.cov[:6]).all()
    assert np.isinf(regions.cov[6:]).all()


def test_headings_follow_the_velocity_and_stay_at_rest():
    heard = []

    class Listening(Constant):
        def scales(self, means, headings, actions):
            heard.append(headings.copy())
            return super().scales(means, headings, actions)

    still_then_up = np.zeros((4, 2, 1), np.float32)
    still_then_up[2, 1] = 0.5
    Rollout(MODEL, QUANTILE).regions(np.array([1.0, 0.4, 0, 0]), COV, 2.0, still_then_up, Listening(1.0))
    np.testing.assert_allclose(np.ravel(heard), [2.0, 2.0, 2.0, np.pi / 2], rtol=1e-6)


def test_without_a_scale_field_the_mean_alone_collides():
    rollout = Rollout(MODEL, QUANTILE)
    beside_the_wall = np.array([1.0, 0.79, 0.0, 0.0])
    sequence = np.zeros((5, 2, 1), np.float32)
    arguments = (beside_the_wall, COV, 0.0, sequence, GOAL, corridor(), PLANAR_WEIGHTS)
    assert rollout.price(*arguments, None).collisions[0] == 0
    assert rollout.price(*arguments, Constant(1.0)).collisions[0] == 5
    into_the_wall = (np.array([1.0, 0.79, 0.0, 1.0]), *arguments[1:])
    plain = rollout.price(*into_the_wall, None)
    assert plain.collisions[0] == 5
    distances = np.hypot(1.0 - GOAL[0], 0.79 + 0.05 * np.arange(1, 6) - GOAL[1])
    assert plain.costs[0] == pytest.approx(5000 + 0.8 * distances[:4].sum() + distances[4], rel=1e-6)


def test_braking_keeps_the_direction_and_the_bounds_and_ends_at_rest():
    brake = Brake(MODEL, 0.9)
    np.testing.assert_allclose(brake.sequence(np.array([0, 0, 2.0, -1.0]), 1), [[-0.9, 0.45]])
    np.testing.assert_array_equal(brake.sequence(np.zeros(4), 3), 0.0)
    state = np.array([0, 0, 0.1, 0.05])
    for action in brake.sequence(state, 4):
        assert (abs(action) <= 0.9).all()
        state = MODEL.A @ state + MODEL.B @ action
    np.testing.assert_allclose(state[2:], 0.0, atol=1e-8)


def test_noise_is_standard_normal_clipped_and_as_coloured_as_asked(rng):
    indices = draw_indices(rng, (6, 2, 20_000))
    white = normals(indices)
    assert abs(white.mean()) < 0.01
    assert abs(white.std() - 1) < 0.01
    nominal = np.full((6, 2), 0.1, np.float32)
    coloured = perturb(nominal, indices, std=0.5, correlation=0.6, bound=100.0)
    assert coloured.std() == pytest.approx(0.5, abs=0.01)
    steps = (coloured - 0.1).reshape(6, -1)
    assert np.corrcoef(steps[2], steps[3])[0, 1] == pytest.approx(0.6, abs=0.02)
    assert np.corrcoef(steps[2], steps[4])[0, 1] == pytest.approx(0.36, abs=0.02)
    clipped = perturb(nominal, indices, std=1.0, correlation=0.0, bound=0.9)
    np.testing.assert_allclose(clipped, np.clip(nominal[:, :, None] + white, -0.9, 0.9), atol=1e-6)


@pytest.mark.parametrize("bad", [-1.0, np.inf, np.nan])
def test_a_weight_must_be_finite_and_not_negative(bad):
    with pytest.raises(InputError, match=r"trace is .*allowed are finite numbers >= 0"):
        CostWeights(trace=bad)
