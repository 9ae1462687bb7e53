"""Why settings are chosen within the partition split: scores that have chosen cannot count any more.

The law is the same everywhere, so all settings are equally right, and whichever promises the smallest regions
was lucky. Luck in the scores that thresholds are made of is bought with coverage; luck in others costs
nothing, and each cell then covers k / (n + 1) on average, the mean of its exact Beta law.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import random_transitions
from tests.statistical.test_beta_law import MODEL, STATE_COV, coverage_of, truth

from ocular.calibrators import Selecting, ocular_no_encode
from ocular.calibrators.base import split_rows
from ocular.calibrators.calibration import quiet_thresholds
from ocular.conformal import conformal_rank
from ocular.partition import TreeSettings
from ocular.records import Logs

REDRAWS, LOGGED, ALPHA = 120, 340, 0.3
TREES = tuple(TreeSettings(depth, leaf) for depth in (2, 4) for leaf in (10, 12, 15, 18, 22))
CALIBRATOR = ocular_no_encode()


def lack(fitted, fresh):
    """How far the coverage of fresh steps lies from the mean of the cells' Beta laws."""
    counts = fitted.scores.counts
    promised = np.array([min(conformal_rank(int(n), ALPHA) / (n + 1), 1) for n in counts])
    return (coverage_of(quiet_thresholds(fitted, ALPHA)) - promised)[fitted.cells(fresh)].mean()


def mean_threshold(fitted, inputs):
    """Of processed inputs."""
    return np.mean(fitted.look_up(inputs, quiet_thresholds(fitted, ALPHA)))


@pytest.fixture(scope="module")
def lacks():
    """For each redraw: of all settings on average, of the naive choice, and of the one within the split."""
    rng, found = np.random.default_rng(11), []
    fresh = random_transitions(rng, 1000, truth).inputs
    for seed in range(REDRAWS):
        logs = random_transitions(rng, LOGGED, truth, footprints=1, environments=("a", "b"))
        logs = replace(logs, environment=np.arange(LOGGED) % 2)
        seen = CALIBRATOR.look(Logs.of(logs), MODEL, STATE_COV, seed=seed)
        split = split_rows(len(logs), CALIBRATOR.partition_share, seed)
        every = [replace(CALIBRATOR, tree=tree).draw(seen, *split, seed) for tree in TREES]
        naive = min(every, key=lambda fitted: mean_threshold(fitted, seen.inputs[split[1]]))
        honest = Selecting(CALIBRATOR, TREES, ALPHA).fit(logs, MODEL, STATE_COV, seed=seed)
        each = np.array([lack(fitted, fresh) for fitted in every])
        found.append((each.mean(), lack(naive, fresh), lack(honest, fresh)))
    return np.array(found).T


def mean_and_error(values):
    return values.mean(), values.std() / np.sqrt(len(values))


def test_choosing_by_the_conformal_split_costs_coverage(lacks):
    every, naive, _ = lacks
    mean, error = mean_and_error(naive - every)  # what all settings have in common scatters more, and cancels
    assert mean < -4 * error
    assert mean < -0.005


def test_choosing_within_the_partition_split_costs_nothing(lacks):
    every, _, honest = lacks
    for values in (honest, honest - every):
        mean, error = mean_and_error(values)
        assert abs(mean) < 3 * error
    assert 3 * error < 0.005  # less than what the naive choice lacks: it would have been noticed
