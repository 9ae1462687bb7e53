"""What every stored model must do, run over all of them: add an example of yours."""

import numpy as np
import pytest

from ocular.dynamics import MODELS, LinearGaussian, StoredModel, Unicycle
from ocular.dynamics.stored import model_arrays, model_from_arrays
from ocular.errors import InputError, check_covariance
from ocular.records import Gaussian

EXAMPLES = {
    "linear": LinearGaussian(
        np.array([[1, 0.1], [-0.2, 0.9]]), np.array([[0.0], [0.3]]), np.diag([0.1, 0.2])
    ),
    "unicycle": Unicycle(0.4, np.array([[0.9, 0.1], [0.0, 0.2], [-0.1, 0.7]]), np.diag([0.01, 0.02, 0.03])),
}
every = pytest.mark.parametrize("kind", MODELS)


def batch(model, n=20, seed=0):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((model.state_dim, model.state_dim))
    states = Gaussian(rng.normal(size=(n, model.state_dim)), 0.01 * factor @ factor.T)
    return states, rng.normal(size=(n, model.action_dim))


@every
def test_arrays_say_it_all(kind):
    model = EXAMPLES[kind]
    assert isinstance(model, StoredModel)
    name, arrays = model_arrays(model)
    again = model_from_arrays(name, arrays)
    states, actions = batch(model)
    assert name == kind
    assert type(again) is type(model)
    assert np.array_equal(again.predict(states, actions).mean, model.predict(states, actions).mean)
    assert np.array_equal(again.predict(states, actions).cov, model.predict(states, actions).cov)


@every
def test_rows_do_not_influence_each_other_and_one_state_will_do(kind):
    model = EXAMPLES[kind]
    states, actions = batch(model)
    together = model.predict(states, actions)
    check_covariance("cov", together.cov)
    for n in range(len(actions)):
        alone = model.predict(Gaussian(states.mean[n], states.cov), actions[n])
        np.testing.assert_allclose(together.mean[n], alone.mean, atol=1e-14)
        cov = np.broadcast_to(together.cov, (len(actions), *alone.cov.shape))[n]
        np.testing.assert_allclose(cov, alone.cov, atol=1e-14)
        assert alone.angles == together.angles


@every
def test_uncertainty_of_the_state_passes_through_the_slope_of_the_mean(kind):
    model = EXAMPLES[kind]
    states, actions = batch(model)
    certain = np.zeros_like(states.cov)
    h = 1e-6
    slope = np.stack(
        [
            model.predict(Gaussian(states.mean + d, certain), actions).mean
            - model.predict(Gaussian(states.mean - d, certain), actions).mean
            for d in h * np.eye(model.state_dim)
        ],
        axis=-1,
    ) / (2 * h)
    noise = model.predict(Gaussian(states.mean, certain), actions).cov
    wanted = slope @ states.cov @ np.swapaxes(slope, -1, -2) + noise
    cov = np.broadcast_to(model.predict(states, actions).cov, wanted.shape)
    np.testing.assert_allclose(cov, wanted, rtol=1e-6, atol=1e-9)


@every
def test_other_shapes_are_refused(kind):
    model = EXAMPLES[kind]
    states, actions = batch(model)
    with pytest.raises(InputError, match="allowed are"):
        model.predict(states, np.concatenate([actions, actions], axis=1))


def test_an_unknown_kind_is_named():
    with pytest.raises(InputError, match="model is 'balloon'; allowed are 'linear', 'unicycle'"):
        model_from_arrays("balloon", {})
