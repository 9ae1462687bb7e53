"""The coverage protocol on a world whose answers are known in closed form."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2
from tests.conftest import random_transitions

from ocular.calibrators import Calibration
from ocular.conformal import CellScores
from ocular.dynamics import double_integrator, unicycle
from ocular.errors import InputError
from ocular.evaluation.coverage import evaluate_coverage, summarise

MODEL = double_integrator(0.05, floor=1e-6)
STATE_COV = 2e-5 * np.eye(4)


PREDICTED_ROOT = np.linalg.cholesky(MODEL.A @ STATE_COV @ MODEL.A.T + MODEL.Q)


class Stretched:
    """A truth whose deviations are those of the model times sqrt(3)."""

    def draw(self, rng, states, actions):
        deviation = np.sqrt(3.0) * rng.standard_normal((len(states), 4)) @ PREDICTED_ROOT.T
        return states @ MODEL.A.T + actions @ MODEL.B.T + deviation


def one_cell(threshold):
    """A calibration whose threshold is this at every alpha of interest."""
    scores = CellScores(np.full(200, threshold), np.array([0, 200]))
    return Calibration("splitcp", MODEL, STATE_COV, scores=scores)


def test_each_case_of_a_robot_that_turns_has_a_covariance_of_its_own(rng):
    robot = unicycle(0.5, np.diag([4e-2, 1e-4, 1e-3]))  # far less certain ahead than sideways
    cases = random_transitions(rng, 70, lambda rng, s, a: s).inputs
    cases = replace(cases, states=cases.states[:, :3])

    class Robot:
        def draw(self, rng, states, actions):
            return robot.step(rng, states, actions)

    calibrations = {"nocp": Calibration("nocp", robot, np.zeros((3, 3)))}
    results = evaluate_coverage(Robot(), cases, calibrations, 0.1, 2000, rng)
    np.testing.assert_allclose(results["nocp"].coverage, 0.9, atol=0.03)
    np.testing.assert_allclose(results["nocp"].relative_volume, 1, atol=0.15)


def test_coverage_and_volume_match_the_closed_form():
    cases = random_transitions(np.random.default_rng(0), 50, lambda rng, s, a: s).inputs
    calibrations = {
        "nocp": Calibration("nocp", MODEL, STATE_COV),
        "exact": one_cell(3.0 * chi2.ppf(0.9, 4)),
    }
    results = evaluate_coverage(Stretched(), cases, calibrations, 0.1, 4000, np.random.default_rng(1))
    everything = np.ones(50, dtype=bool)
    nocp = summarise(results["nocp"], everything, 0.1)
    exact = summarise(results["exact"], everything, 0.1)
    assert nocp.coverage == pytest.approx(chi2.cdf(chi2.ppf(0.9, 4) / 3, 4), abs=0.005)
    assert nocp.volume == pytest.approx(1 / 9, rel=0.02)
    assert exact.coverage == pytest.approx(0.9, abs=0.003)
    assert exact.volume == pytest.approx(1.0, rel=0.02)
    assert exact.gap < 0.01 < nocp.gap
    assert (nocp.undercovered, exact.undercovered) == (1.0, 0.0)
    assert nocp.cases == 50


def test_methods_share_particles_and_do_not_disturb_each_other():
    cases = random_transitions(np.random.default_rng(0), 40, lambda rng, s, a: s).inputs
    nocp, other = Calibration("nocp", MODEL, STATE_COV), one_cell(5.0)
    alone = evaluate_coverage(Stretched(), cases, {"nocp": nocp}, 0.1, 100, np.random.default_rng(1))
    both = evaluate_coverage(
        Stretched(), cases, {"nocp": nocp, "other": other}, 0.1, 100, np.random.default_rng(1)
    )
    assert np.array_equal(alone["nocp"].coverage, both["nocp"].coverage)
    assert np.array_equal(alone["nocp"].relative_volume, both["nocp"].relative_volume)


def test_progress_is_told_and_bad_input_refused():
    cases = random_transitions(np.random.default_rng(0), 70, lambda rng, s, a: s).inputs
    nocp = {"nocp": Calibration("nocp", MODEL, STATE_COV)}
    told = []
    results = evaluate_coverage(
        Stretched(), cases, nocp, 0.1, 10, np.random.default_rng(1), lambda *done: told.append(done)
    )
    assert told[-1] == (70, 70)
    with pytest.raises(InputError, match="particles is 0"):
        evaluate_coverage(Stretched(), cases, nocp, 0.1, 0, np.random.default_rng(1))
    with pytest.raises(InputError, match="no test case"):
        summarise(results["nocp"], np.zeros(70, dtype=bool), 0.1)
