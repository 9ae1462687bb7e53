"""Monitor and policy: what they read from a step, what they decide, and that quiet ones change nothing."""

import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, kstest
from tests.conftest import LABELS, SMALL, random_encoder, random_transitions

from ocular.calibrators import NoCP, SplitCP, ocular, ocular_no_encode
from ocular.conformal import CellScores
from ocular.dynamics import double_integrator
from ocular.errors import InputError
from ocular.monitor import Monitor, Novelty, Policy, Responses, Step
from ocular.monitor.martingale import References
from ocular.monitor.monitor import ERRS, RIGHT, grounds_of, halves
from ocular.partition import TreeSettings
from ocular.planning.belief import BeliefMap
from ocular.planning.guarded_field import GuardedField
from ocular.planning.scale_field import scale_field
from ocular.records import Footprints, Gaussian

MODEL = double_integrator(0.05, floor=1e-6)
STATE_COV = 2e-5 * np.eye(4)
SPREAD = np.linalg.cholesky(MODEL.predict(Gaussian(np.zeros(4), STATE_COV), np.zeros(2)).cov)
TREE = TreeSettings(max_depth=3, min_leaf=200)


def world(error=2.0, fast=0.9):
    """Right below a speed on x, and `error` times noisier than the model above it."""

    def step(rng, states, actions):
        wrong = np.where(np.abs(states[:, 2:3]) > fast, error, 1.0)
        noise = wrong * rng.standard_normal(states.shape)
        return states @ MODEL.A.T + actions @ MODEL.B.T + noise @ SPREAD.T

    return step


@pytest.fixture(scope="module")
def calibration():
    logs = random_transitions(np.random.default_rng(0), 8000, world())
    return ocular_no_encode(tree=TREE).fit(logs, MODEL, STATE_COV, seed=0)


def steps(rng, n, truth):
    logs = random_transitions(rng, n, truth)
    inputs = logs.inputs
    for k in range(n):
        cells = inputs.footprints.cells[inputs.footprint_index[k]]
        yield Step(inputs.states[k], inputs.headings[k], inputs.actions[k], cells, logs.next_states[k])


def run(policy, truth, n=400, seed=1):
    return [policy.learn(step) for step in steps(np.random.default_rng(seed), n, truth)]


def test_grounds_are_told_apart_by_one_half_of_the_scores(calibration):
    grounds = Monitor(calibration).grounds
    assert set(grounds) == {RIGHT, ERRS}
    np.testing.assert_array_equal(grounds == ERRS, calibration.scales(0.1) > 1.25)  # far from it, all of them
    few = CellScores.group(np.arange(25.0), np.repeat([0, 1, 2], [9, 9, 7]), 3)
    assert grounds_of(few, 0.1, 8.5).tolist() == [RIGHT, ERRS, ERRS]  # 7 are too few to know


def test_halves_are_exclusive_and_keep_their_cells():
    rng = np.random.default_rng(0)
    whole = CellScores.group(rng.random(500), rng.integers(0, 7, 500), 7)
    parts = halves(whole, rng)
    for cell in range(7):
        together = np.sort(np.concatenate([part.of_cell(cell) for part in parts]))
        np.testing.assert_array_equal(together, whole.of_cell(cell))
    assert 200 < len(parts[0].scores) < 300


def test_the_grounds_owe_nothing_to_the_references():
    """Cells at the very limit: those that fall among the right ones must not look worse for it."""
    rng, p = np.random.default_rng(0), {RIGHT: [], ERRS: []}
    limit = np.quantile(rng.exponential(size=10**6), 0.9)
    for _ in range(400):
        known = CellScores.group(rng.exponential(size=200), np.arange(200) % 4, 4)
        looked_at, kept = halves(known, rng)
        grounds, references = grounds_of(looked_at, 0.1, limit), References(kept, rng)
        for cell in range(4):
            p[int(grounds[cell])].append(references.rank(cell, rng.exponential()))
    for values in p.values():
        assert kstest(values, "uniform").pvalue > 1e-3


def test_a_reading_is_that_of_the_calibration(calibration):
    encoder = random_encoder(0)
    logs = random_transitions(np.random.default_rng(0), 4000, world())
    seeing = ocular(lambda footprints, seed: encoder, tree=TREE).fit(logs, MODEL, STATE_COV, seed=0)
    for fitted in (calibration, seeing):
        monitor = Monitor(fitted)
        logged = random_transitions(np.random.default_rng(1), 20, world())
        for k, step in enumerate(steps(np.random.default_rng(1), 20, world())):
            reading = monitor.observe(step)
            assert reading.cell == fitted.cells(logged.inputs)[k]
            assert reading.score == pytest.approx(fitted.score(logged)[k])
            assert reading.ground == monitor.grounds[reading.cell]


def test_only_the_ground_that_changed_raises_an_alarm(calibration):
    policy = Policy(calibration, 0.1, delta=0.01)
    assert not any(any(reading.changed) for reading in run(policy, world()))
    readings = run(policy, world(error=4.0), n=200, seed=2)
    assert readings[-1].changed == (False, True)
    on_it = [reading for reading in readings if reading.ground == ERRS]
    assert sum(not reading.changed[ERRS] for reading in on_it) < 40


def test_a_model_without_logs_is_held_to_its_word():
    logs = random_transitions(np.random.default_rng(0), 100, world())
    monitor = Monitor(NoCP().fit(logs, MODEL, STATE_COV, seed=0))
    assert monitor.score(0, chi2.isf(0.2, 4)).p == pytest.approx(0.2)
    assert monitor.score(0, np.inf).p > 0
    for _ in range(20):
        reading = monitor.score(0, 100.0)
    assert reading.changed[RIGHT]


@pytest.mark.parametrize("answer", ["keep", "worst", "adapt", "stop"])
def test_answers_to_a_change(calibration, answer):
    calibrated = calibration.scales(0.1)
    policy = Policy(calibration, 0.1, responses=Responses(changed=answer))
    run(policy, world())
    np.testing.assert_array_equal(policy.scales, calibrated)
    run(policy, world(error=4.0), n=300, seed=2)
    errs = policy.monitor.grounds == ERRS
    np.testing.assert_array_equal(policy.scales[~errs], calibrated[~errs])
    wanted = {
        "keep": calibrated[errs],
        "worst": np.full(errs.sum(), calibrated.max()),
        "adapt": 1 + policy.factors[ERRS] * (calibrated[errs] - 1),
        "stop": np.full(errs.sum(), np.inf),
    }
    np.testing.assert_allclose(policy.scales[errs], wanted[answer])
    if answer == "adapt":  # variance 16 instead of 4, so the error beyond the noise is 5 times as large
        assert 2.5 < policy.factors[ERRS] < 10


def test_the_online_correction_keeps_its_promise_whatever_happens(calibration):
    """Scores chosen to be as bad as they can be, without any law."""
    rng = np.random.default_rng(0)
    for play in (lambda k: 40.0, lambda k: 200.0 * (k % 7 == 0), lambda k: rng.exponential(3.0 + k / 20)):
        policy = Policy(calibration, 0.1, delta=0.5)
        quantile, calibrated = chi2.isf(0.1, 4), calibration.scales(0.1)
        missed, needed = [], 1.0
        for k in range(600):
            cell = int(rng.integers(len(calibrated)))
            if policy.monitor.grounds[cell] != ERRS:
                continue
            score = float(play(k))
            limit = 1 + policy.factors[ERRS] * (calibrated[cell] - 1)
            missed.append(score > quantile * limit)
            needed = max(needed, (score / quantile - 1) / (calibrated[cell] - 1))
            policy.take(policy.monitor.score(cell, score))
        n = len(missed)
        assert np.mean(missed) <= 0.1 + np.log(needed) / (0.5 * n) + 1 / n


def test_scores_that_no_factor_covers_leave_the_scales_numbers(calibration):
    policy = Policy(calibration, 0.1)
    for _ in range(3000):
        policy.take(policy.monitor.score(0, np.inf))
    assert policy.monitor.changed[policy.monitor.grounds[0]]
    assert np.isfinite(policy.scales).all()


def test_something_new_in_view_is_answered_while_it_is_there(calibration):
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 3, (60, 16, 8), dtype=np.uint8)
    novelty = Novelty.fit(Footprints(cells, LABELS, SMALL), seed=0)
    new = np.full((16, 8), 3, np.uint8)
    for answer, wanted in (("stop", np.inf), ("worst", calibration.scales(0.1).max())):
        responses = Responses(new=answer, new_below=0.04)
        policy = Policy(calibration, 0.1, responses=responses, novelty=novelty)
        policy.see(new)
        assert policy.new_in_view
        assert (policy.scales == wanted).all()
        policy.see(cells[0])
        np.testing.assert_array_equal(policy.scales, calibration.scales(0.1))
    keeping = Policy(calibration, 0.1, novelty=novelty)
    keeping.see(new)
    np.testing.assert_array_equal(keeping.scales, calibration.scales(0.1))


def test_a_guarded_field_is_the_field_with_the_scales_of_the_policy(calibration, rng):
    belief = BeliefMap(LABELS, 0.1)
    policy = Policy(calibration, 0.1, responses=Responses(changed="stop"))
    guarded = GuardedField(calibration, 0.1, belief, policy)
    means, headings = rng.uniform(-1.5, 1.5, (300, 4)), rng.uniform(-3, 3, 300)
    actions = rng.uniform(-0.9, 0.9, (300, 2))
    alone = scale_field(calibration, 0.1, belief).scales(means, headings, actions)
    assert guarded.scales(means, headings, actions).tobytes() == alone.tobytes()
    run(policy, world(error=6.0))
    assert policy.monitor.changed[ERRS]
    stopped = guarded.scales(means, headings, actions)
    np.testing.assert_array_equal(np.isinf(stopped), alone > 1.25)
    np.testing.assert_array_equal(stopped[alone <= 1.25], alone[alone <= 1.25])


def test_a_single_scale_is_guarded_too(rng):
    logs = random_transitions(np.random.default_rng(0), 2000, world(error=1.0))
    single = SplitCP().fit(logs, MODEL, STATE_COV, seed=0)
    policy = Policy(single, 0.1)
    guarded = GuardedField(single, 0.1, BeliefMap(LABELS, 0.1), policy)
    where = rng.uniform(-1, 1, (5, 4)), np.zeros(5), np.zeros((5, 2))
    np.testing.assert_array_equal(guarded.scales(*where), single.scales(0.1).repeat(5))
    run(policy, world(error=3.0, fast=0.0))
    assert (guarded.scales(*where) > 2 * single.scales(0.1)).all()


def test_a_step_costs_little(calibration):
    """A fraction of a millisecond, measured in processor time, as the machine may be busy."""
    policy = Policy(calibration, 0.1)
    known = list(steps(np.random.default_rng(1), 300, world()))
    policy.learn(known[0])
    began = time.process_time()
    for step in known:
        policy.learn(step)
    assert (time.process_time() - began) / len(known) < 1e-3


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda c: Monitor(c, delta=0.0), "delta is 0.0"),
        (lambda c: Monitor(c, bets="all"), "bets is 'all'; allowed are 'power', 'linear', 'step', 'mixture'"),
        (lambda c: Monitor(c).score(99, 1.0), "the cell is 99"),
        (lambda c: References(c.scores, np.random.default_rng(0), room=-1), "room is -1"),
        (lambda c: Monitor(c).score(0, np.nan), "the score is nan"),
        (lambda c: Responses(changed="flee"), "changed is 'flee'"),
        (lambda c: Responses(new="adapt"), "new is 'adapt'; allowed are 'keep', 'worst', 'stop'"),
        (lambda c: Responses(new_below=1.0), "new_below is 1.0"),
    ],
)
def test_what_is_wrong_is_said(calibration, make, complaint):
    with pytest.raises(InputError, match=complaint):
        make(calibration)


def test_a_calibration_with_starved_cells_is_watched_too(calibration):
    empty = replace(calibration.scores, scores=np.empty(0), offsets=np.zeros_like(calibration.scores.offsets))
    starved = replace(calibration, scores=empty)
    monitor = Monitor(starved)
    assert (monitor.grounds == ERRS).all()
    assert 0 < monitor.score(0, 3.0).p <= 1


def test_the_footprint_is_not_looked_at_without_an_encoder(calibration):
    step = next(steps(np.random.default_rng(1), 1, world()))
    blind = replace(step, cells=np.empty((0, 0), np.uint8))
    assert Monitor(calibration).observe(blind).score == Monitor(calibration).observe(step).score
