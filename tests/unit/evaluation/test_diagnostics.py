"""Diagnostics: leaves and environments that are known to be sound, or not."""

import numpy as np
import pytest
from tests.conftest import random_transitions

from ocular.calibrators import NoCP, SplitCP, ocular_no_encode
from ocular.dynamics import double_integrator
from ocular.errors import InputError
from ocular.evaluation.diagnostics import diagnose, holm
from ocular.partition import TreeSettings
from ocular.records import Gaussian, concatenate

MODEL = double_integrator(0.05, floor=1e-6)
STATE_COV = 2e-5 * np.eye(4)
SPREAD = np.linalg.cholesky(MODEL.predict(Gaussian(np.zeros(4), STATE_COV), np.zeros(2)).cov)
TREE = TreeSettings(max_depth=3, min_leaf=200)


def noisier(times):
    def step(rng, states, actions):
        return states @ MODEL.A.T + actions @ MODEL.B.T + times * rng.standard_normal(states.shape) @ SPREAD.T

    return step


def logs(seed, *noise):
    """One environment for each noise."""
    rng = np.random.default_rng(seed)
    return concatenate(
        [
            random_transitions(rng, 2000, noisier(times), environments=(f"place {k}",))
            for k, times in enumerate(noise)
        ]
    )


def fitted(data, calibrator=None, seed=0):
    return (calibrator or ocular_no_encode(tree=TREE)).fit(data, MODEL, STATE_COV, seed=seed)


def test_environments_of_one_law_agree():
    alarms = 0
    for seed in range(10):
        data = logs(seed, 1.0, 1.0, 1.0)
        calibration = fitted(data, seed=seed)
        leaves = diagnose(calibration, data, 0.1)
        assert [leaf.points for leaf in leaves] == calibration.scores.counts.tolist()
        np.testing.assert_array_equal([leaf.xi for leaf in leaves], calibration.scales(0.1))
        assert all(0.8 < leaf.coverage < 1.0 for leaf in leaves)
        alarms += any(leaf.disagreement < 0.05 for leaf in leaves)
    assert alarms <= 3


def test_an_environment_of_another_law_is_noticed():
    data = logs(0, 1.0, 1.0, 1.6)
    leaves = diagnose(fitted(data), data, 0.1)
    assert all(leaf.disagreement < 1e-3 for leaf in leaves)
    assert np.mean([leaf.coverage for leaf in leaves]) < 0.87


def test_a_single_cell_is_diagnosed_on_all_its_points():
    data = logs(0, 1.0, 1.0)
    (leaf,) = diagnose(fitted(data, SplitCP()), data, 0.1)
    assert (leaf.points, leaf.environments) == (4000, 2)
    assert leaf.disagreement > 1e-3


def test_holm_is_between_nothing_and_bonferroni():
    p = np.array([0.01, 0.04, 0.03, 0.5])
    np.testing.assert_allclose(holm(p), [0.04, 0.09, 0.09, 0.5])
    assert (holm(np.ones(3)) == 1).all()


def test_what_is_wrong_is_said():
    data = logs(0, 1.0, 1.0)
    with pytest.raises(InputError, match="'nocp' has no scores"):
        diagnose(fitted(data, NoCP()), data, 0.1)
    with pytest.raises(InputError, match="4000 transitions of place 0, place 1; allowed are the logs that"):
        diagnose(fitted(logs(0, 1.0)), data, 0.1)
    with pytest.raises(InputError, match="give other scores"):
        diagnose(fitted(data), logs(1, 1.0, 1.0), 0.1)
    alone = logs(0, 1.0)
    with pytest.raises(InputError, match="at least 2 environments"):
        diagnose(fitted(alone), alone, 0.1)
