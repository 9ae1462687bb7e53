"""The score and its inverse belong together, for singular covariances too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from ocular.conformal import Region, squared_mahalanobis
from ocular.dynamics import double_integrator
from ocular.errors import InputError
from ocular.records import Gaussian


def random_gaussian(rng, d, rank, n=20):
    factor = rng.standard_normal((d, rank))
    return Gaussian(rng.standard_normal((n, d)), factor @ factor.T), factor


@given(st.integers(0, 10**6), st.integers(1, 6))
def test_agrees_with_the_textbook_formula(seed, d):
    rng = np.random.default_rng(seed)
    gaussian, _ = random_gaussian(rng, d, d + 3)
    outcomes = rng.standard_normal((20, d))
    inverse = np.linalg.inv(gaussian.cov)
    deviation = outcomes - gaussian.mean
    expected = np.einsum("ni,ij,nj->n", deviation, inverse, deviation)
    np.testing.assert_allclose(squared_mahalanobis(gaussian, outcomes), expected, rtol=1e-6)


@given(st.integers(0, 10**6), st.integers(2, 6), st.data())
def test_singular_scores_are_the_norm_of_the_hidden_noise(seed, d, data):
    rank = data.draw(st.integers(1, d - 1))
    rng = np.random.default_rng(seed)
    gaussian, factor = random_gaussian(rng, d, rank)
    hidden = rng.standard_normal((20, rank))
    outcomes = gaussian.mean + hidden @ factor.T
    np.testing.assert_allclose(
        squared_mahalanobis(gaussian, outcomes), (hidden**2).sum(axis=1), rtol=1e-4, atol=1e-9
    )
    outside = np.linalg.svd(factor)[0][:, -1]
    assert np.isinf(squared_mahalanobis(gaussian, outcomes + 0.1 * outside)).all()


@given(st.integers(0, 10**6), st.integers(1, 5), st.floats(0.01, 50))
def test_region_is_the_inverse_of_the_score(seed, d, threshold):
    rng = np.random.default_rng(seed)
    gaussian, _ = random_gaussian(rng, d, d + 2, n=1)
    region = Region(gaussian, np.array([threshold]))
    lengths, directions = region.semi_axes()
    on_sphere = rng.standard_normal((200, d))
    on_sphere /= np.linalg.norm(on_sphere, axis=1, keepdims=True)
    boundary = gaussian.mean + (on_sphere * lengths) @ directions[..., :, :].squeeze().reshape(d, d).T
    np.testing.assert_allclose(squared_mahalanobis(gaussian, boundary), threshold, rtol=1e-6)
    inward = gaussian.mean + 0.999 * (boundary - gaussian.mean)
    outward = gaussian.mean + 1.001 * (boundary - gaussian.mean)
    assert region.contains(inward).all()
    assert not region.contains(outward).any()


@given(st.floats(0.1, 5), st.floats(0.1, 5), st.floats(0.1, 20))
def test_volume_in_the_plane_is_the_ellipse_area(a, b, threshold):
    region = Region(Gaussian(np.zeros((1, 2)), np.diag([a**2, b**2])), np.array([threshold]))
    np.testing.assert_allclose(region.volume(), np.pi * a * b * threshold, rtol=1e-12)


def test_scaling_the_covariance_scales_the_volume_by_xi_to_half_the_dimension():
    cov = np.diag([1.0, 2, 3, 4])
    q = np.array([chi2.ppf(0.9, 4)])
    plain = Region(Gaussian(np.zeros((1, 4)), cov), q).volume()
    scaled = Region(Gaussian(np.zeros((1, 4)), 7.74 * cov), q).volume()
    np.testing.assert_allclose(scaled / plain, 7.74**2)


def test_infinite_threshold_is_the_whole_space():
    singular = np.diag([1.0, 0.0])
    region = Region(Gaussian(np.zeros((1, 2)), singular), np.array([np.inf]))
    assert region.contains(np.array([[1e300, 1e300]])).all()
    assert region.volume() == np.inf
    assert np.isinf(region.semi_axes()[0]).all()


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.floats(0.1, 20))
def test_the_shadow_on_the_position_contains_whatever_the_region_contains(seed, threshold):
    rng = np.random.default_rng(seed)
    gaussian, _ = random_gaussian(rng, 4, 6, n=1)
    region = Region(gaussian, np.array([threshold]))
    outcomes = gaussian.mean + 3 * rng.standard_normal((500, 4))
    inside = region.contains(outcomes)
    assert region.marginal((0, 1)).contains(outcomes[inside][:, :2]).all()


def test_a_marginal_is_tight():
    """The boundary of the shadow is reached by a point of the region."""
    cov = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, 0.2], [0.3, 0.2, 0.7]])
    region = Region(Gaussian(np.zeros((1, 3)), cov), np.array([4.0]))
    u = np.array([0.6, 0.8, 0.0])  # support point of the ellipsoid in a direction of the plane
    support = cov @ u * np.sqrt(4.0 / (u @ cov @ u))
    assert squared_mahalanobis(region.prediction, support[None]) == pytest.approx(4.0)
    shadow = region.marginal((0, 1))
    assert squared_mahalanobis(shadow.prediction, support[None, :2]) == pytest.approx(4.0)


def test_scores_of_the_true_model_follow_chi2():
    model = double_integrator(0.2)  # Q is singular
    assert np.linalg.matrix_rank(model.Q) == 2
    rng = np.random.default_rng(0)
    states, actions = rng.standard_normal((20_000, 4)), rng.standard_normal((20_000, 2))
    prediction = model.predict(Gaussian(states, np.zeros((4, 4))), actions)
    scores = squared_mahalanobis(prediction, model.step(rng, states, actions))
    assert abs((scores <= chi2.ppf(0.9, 2)).mean() - 0.9) < 0.01


@pytest.mark.parametrize(
    ("cov", "message"),
    [
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "not symmetric"),
        (np.diag([1.0, -0.5]), "lowest eigenvalue is -0.5"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "not finite"),
    ],
)
def test_bad_covariances_are_refused(cov, message):
    with pytest.raises(InputError, match=message):
        squared_mahalanobis(Gaussian(np.zeros((1, 2)), cov), np.zeros((1, 2)))


def test_bad_thresholds_and_outcomes_are_refused():
    gaussian = Gaussian(np.zeros((1, 2)), np.eye(2))
    with pytest.raises(InputError, match="thresholds run down to -1"):
        Region(gaussian, np.array([-1.0]))
    with pytest.raises(InputError, match="thresholds"):
        Region(gaussian, np.array([np.nan]))
    with pytest.raises(InputError, match=r"outcomes has 1 values that are not finite.*\(0, 1\)"):
        squared_mahalanobis(gaussian, np.array([[0.0, np.inf]]))


@pytest.mark.parametrize("condition", [1e3, 1e8, 1e12])
def test_ill_conditioned_covariances_keep_their_outcomes(condition):
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    spread = np.geomspace(1.0, 1.0 / condition, 4)
    cov = (basis * spread) @ basis.T
    cov = (cov + cov.T) / 2
    outcomes = (rng.standard_normal((5000, 4)) * np.sqrt(spread)) @ basis.T
    scores = squared_mahalanobis(Gaussian(np.zeros((1, 4)), cov), outcomes)
    assert abs((scores <= chi2.ppf(0.9, 4)).mean() - 0.9) < 0.02
