"""The safety filter: what it lets pass, what it offers instead, and when it brakes."""

import numpy as np
import pytest
from tests.support.obstacles import FREE, UNKNOWN, Constant, corridor, obstacles

from ocular.dynamics.linear import double_integrator
from ocular.errors import InputError
from ocular.planning.safety import SafetyFilter

MODEL = double_integrator(0.2, floor=1e-6)
COV = 1e-4 * np.eye(4)
FILTER = SafetyFilter(MODEL, COV)
AHEAD = np.array([0.9, 0.3])


def test_a_clear_action_passes_unchanged():
    verdict = FILTER.check(np.array([1.0, 0.4, 0.3, 0.0]), 0.0, AHEAD, corridor(), Constant(1.0))
    assert verdict.clear
    assert verdict.action_clear
    np.testing.assert_array_equal(verdict.action, AHEAD)
    np.testing.assert_allclose(
        verdict.region.mean, MODEL.A @ [1.0, 0.4, 0.3, 0.0] + MODEL.B @ AHEAD, rtol=1e-6
    )
    np.testing.assert_allclose(verdict.region.cov, MODEL.A @ COV @ MODEL.A.T + MODEL.Q, rtol=1e-5, atol=1e-10)


def test_otherwise_the_nearest_clear_action_of_the_grid_is_offered():
    # The step ends within 1 cm of touching the wall at y = 0.8 unless the action points away from it.
    state, wish = np.array([1.0, 0.7, 0.0, 0.3]), np.array([0.45, 0.9])
    verdict = FILTER.check(state, 0.0, wish, corridor(), Constant(1.0))
    assert not verdict.clear
    assert verdict.action_clear
    axis = np.linspace(-0.9, 0.9, 9)
    clear = [
        (np.hypot(ax - wish[0], ay - wish[1]), ax, ay)
        for ax in axis
        for ay in axis
        if FILTER.check(state, 0.0, np.array([ax, ay]), corridor(), Constant(1.0)).clear
    ]
    assert 0 < len(clear) < 81
    np.testing.assert_allclose(np.hypot(*(verdict.action - wish)), min(clear)[0])


def test_when_nothing_is_clear_it_brakes_and_says_so():
    verdict = FILTER.check(np.array([1.0, 0.79, 0.6, 1.2]), 0.0, AHEAD, corridor(), Constant(1.0))
    assert not verdict.clear
    assert not verdict.action_clear
    np.testing.assert_allclose(verdict.action, [-0.45, -0.9])


def test_an_infinite_scale_clears_nothing_and_its_region_is_everything():
    empty = obstacles(np.full((10, 10), FREE))
    verdict = FILTER.check(np.zeros(4), 0.0, AHEAD, empty, Constant(np.inf))
    assert not verdict.clear
    assert not verdict.action_clear
    assert np.isinf(verdict.region.cov).all()
    np.testing.assert_array_equal(verdict.action, 0.0)


def test_unseen_ground_counts_only_where_asked():
    labels = np.full((100, 100), FREE)
    labels[:, 60:] = UNKNOWN
    map_ = obstacles(labels)
    state = np.array([0.57, 0.5, 0.0, 0.0])
    assert FILTER.check(state, 0.0, np.zeros(2), map_, Constant(1.0)).clear
    careful = SafetyFilter(MODEL, COV, seen_only=True)
    assert not careful.check(state, 0.0, np.zeros(2), map_, Constant(1.0)).clear
    assert careful.check(np.array([0.3, 0.5, 0, 0]), 0.0, np.zeros(2), map_, Constant(1.0)).clear


def test_larger_scales_never_clear_more():
    rng = np.random.default_rng(0)
    for _ in range(15):
        state = np.array([*rng.uniform([0, 0], [3, 0.8]), *rng.uniform(-0.6, 0.6, 2)])
        action = rng.uniform(-0.9, 0.9, 2)
        clear = [
            FILTER.check(state, 0.0, action, corridor(), Constant(xi)).clear for xi in (0.5, 1.0, 2.0, 4.0)
        ]
        assert clear == sorted(clear, reverse=True)


@pytest.mark.parametrize("change", [{"alpha": 0.0}, {"max_action": 0.0}, {"choices": 1}])
def test_settings_out_of_range_are_refused(change):
    with pytest.raises(InputError, match="allowed"):
        SafetyFilter(MODEL, COV, **change)


def test_an_action_that_is_not_finite_is_refused():
    with pytest.raises(InputError, match="action has 1 values"):
        FILTER.check(np.zeros(4), 0.0, np.array([np.nan, 0.0]), corridor(), Constant(1.0))
