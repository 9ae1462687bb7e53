"""Over redrawn calibration sets, the realised coverage follows split conformal's exact Beta law.

For continuous scores, the coverage of the rank-k threshold of n scores is Beta(k, n + 1 - k): neither
"about 1 - alpha" nor "at least 1 - alpha on average", but this very distribution. Floating-point ranks
(n = 9, 19, 29 at alpha = 0.1) or interpolated quantiles break it. Seeds are fixed; the many p-values are
held against a Bonferroni bound.
"""

import numpy as np
import pytest
from scipy.stats import beta, chi2, kstest
from tests.conftest import random_transitions

from ocular.calibrators import SplitCP, lucca, ocular_no_encode
from ocular.conformal import CellScores, conformal_rank
from ocular.dynamics import double_integrator
from ocular.partition import TreeSettings
from ocular.records import Gaussian

REDRAWS = 1500
LEVEL = 1e-3  # chance that a right implementation fails any test of this file's families
SIZES = (9, 19, 29, 39, 99, 250)
ALPHAS = (0.1, 0.05, 0.3)
MODEL = double_integrator(0.05, floor=1e-6)
STATE_COV = 2e-5 * np.eye(4)


def pairs():
    return [(n, a) for n in SIZES for a in ALPHAS if conformal_rank(n, a) <= n]


@pytest.mark.parametrize(("n", "alpha"), pairs())
def test_threshold_coverage_is_beta(n, alpha):
    rng = np.random.default_rng([n, round(1000 * alpha)])
    covered = np.array(
        [
            CellScores.group(rng.random(n), np.zeros(n, dtype=np.int64), 1).thresholds(alpha)[0]
            for _ in range(REDRAWS)
        ]
    )  # uniform scores: the threshold is its own coverage
    k = conformal_rank(n, alpha)
    assert kstest(covered, beta(k, n + 1 - k).cdf).pvalue > LEVEL / len(pairs())
    assert covered.mean() >= 1 - alpha - 4 * covered.std() / np.sqrt(REDRAWS)


def test_the_law_would_notice_a_rank_that_is_off_by_one():
    """The test above can fail: the neighbouring ranks, and interpolation, are told apart."""
    rng = np.random.default_rng(0)
    samples = np.sort(rng.random((REDRAWS, 19)), axis=1)
    law = beta(18, 2).cdf
    assert kstest(samples[:, 17], law).pvalue > LEVEL
    for wrong in (samples[:, 16], samples[:, 18], np.quantile(samples, 0.9, axis=1)):
        assert kstest(wrong, law).pvalue < 1e-6


def truth(rng, states, actions):
    """The calibrated system: noisier than the model, with its mean, so that scores have a known law."""
    start = states + rng.standard_normal(states.shape) * np.sqrt(2e-5)
    return start @ MODEL.A.T + actions @ MODEL.B.T + rng.standard_normal(states.shape) @ noise_factor().T


def noise_factor():
    # Twice the model's predicted variance in total: scores are 2 chi2(4), whatever state and action.
    predicted = MODEL.predict(Gaussian(np.zeros(4), STATE_COV), np.zeros(2)).cov
    return np.linalg.cholesky(2 * predicted - MODEL.A @ STATE_COV @ MODEL.A.T)


def coverage_of(thresholds):
    return chi2.cdf(thresholds / 2, 4)


@pytest.mark.parametrize("n", [19, 99])
def test_splitcp_end_to_end_is_beta(n):
    rng = np.random.default_rng(n)
    covered = [
        coverage_of(
            SplitCP().fit(random_transitions(rng, n, truth), MODEL, STATE_COV, seed=i).thresholds(0.1)
        )[0]
        for i in range(1000)
    ]
    k = conformal_rank(n, 0.1)
    assert kstest(covered, beta(k, n + 1 - k).cdf).pvalue > LEVEL / 2


@pytest.mark.parametrize("make", [lucca, ocular_no_encode], ids=["lucca", "ocular_no_encode"])
def test_every_cell_of_a_local_calibrator_is_beta(make):
    """Given its number of points, each cell's coverage has its own Beta law: their cdf values are uniform."""
    rng = np.random.default_rng(7)
    calibrator = make(tree=TreeSettings(max_depth=3, min_leaf=60))
    levels = []
    for i in range(1000):
        calibration = calibrator.fit(random_transitions(rng, 700, truth), MODEL, STATE_COV, seed=i)
        n = calibration.scores.counts
        ranks = np.array([conformal_rank(int(count), 0.1) for count in n])
        cells = rng.integers(len(n))  # one cell a redraw keeps the p-values independent
        levels.append(
            beta.cdf(
                coverage_of(calibration.thresholds(0.1)[cells]), ranks[cells], n[cells] + 1 - ranks[cells]
            )
        )
    assert kstest(levels, "uniform").pvalue > LEVEL / 2


def test_a_wrong_model_is_still_covered_and_nocp_is_not():
    """A drifting truth that the model knows nothing of: the promise holds over fresh transitions."""

    def heavy(rng, states, actions):
        slip = 1 + 0.6 * (states[:, :1] > 0)
        moved = states @ MODEL.A.T + slip * (actions @ MODEL.B.T)
        return moved + 0.02 * rng.standard_t(3, states.shape) * slip

    rng = np.random.default_rng(3)
    covered = []
    for i in range(200):
        calibration = SplitCP().fit(random_transitions(rng, 99, heavy), MODEL, STATE_COV, seed=i)
        fresh = random_transitions(rng, 50, heavy)
        covered.append((calibration.score(fresh) <= calibration.thresholds(0.1)[0]).mean())
    assert abs(np.mean(covered) - 0.9) < 0.01
