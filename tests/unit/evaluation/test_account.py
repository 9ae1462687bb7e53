"""The account of a calibration is what one would count by hand, and says what is wrong with the data."""

from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import random_encoder, random_transitions
from tests.unit.calibrators.test_calibrators import MODEL, SLIPPERY, STATE_COV, TREE, calibrators, drifting

from ocular.calibrators import NoCP, SplitCP, lucca, ocular
from ocular.errors import InputError
from ocular.evaluation.account import Performance, Spread, account, leave_out, outcomes
from ocular.evaluation.misses import evaluate
from ocular.partition import TreeSettings

PLACES = ("yard", "hall", "ice")


@pytest.fixture(scope="module")
def logs():
    """Three places of the same kind of ground, except that all of the last one is ice."""
    found = random_transitions(np.random.default_rng(1), 6000, drifting, environments=PLACES)
    rng = np.random.default_rng(7)
    start = found.inputs.states + rng.standard_normal(found.inputs.states.shape) * np.sqrt(2e-5)
    icy = (found.environment == 2)[:, None]
    slipped = SLIPPERY.step(rng, start, found.inputs.actions)
    plain = MODEL.step(rng, start, found.inputs.actions)
    return replace(found, next_states=np.where(icy, slipped, plain))


def counts(logs) -> dict[str, int]:
    """Transitions of each environment that has any."""
    return {name: n for k, name in enumerate(logs.environments) if (n := int((logs.environment == k).sum()))}


def test_a_spread_is_of_its_numbers_and_takes_infinity():
    assert Spread.of(np.array([3, 1, 2])) == Spread(1, 2, 3)
    assert Spread.of(np.array([np.inf, 1.0, np.inf, 5.0])) == Spread(1, 5, np.inf)


def test_the_account_counts(logs):
    calibration = ocular(lambda footprints, seed: random_encoder(0), tree=TREE).fit(
        logs, MODEL, STATE_COV, seed=0
    )
    found = account(calibration, counts(logs), 0.1)
    assert found.environments == counts(logs)
    assert found.points.least == calibration.scores.counts.min()
    assert found.thresholds.most == calibration.thresholds(0.1).max()
    assert found.scales.least == calibration.scales(0.1).min()
    assert (found.cells, found.transitions, found.warnings) == (calibration.partition.n_cells, 6000, ())


def test_an_environment_left_out_is_tested_by_a_calibration_that_never_saw_it(logs):
    blank = NoCP().fit(logs, MODEL, STATE_COV, seed=0)
    for name in PLACES:
        found = leave_out(name, SplitCP(), transitions=logs, like=blank, alpha=0.1, seed=0)
        own = logs.environment == PLACES.index(name)
        by_hand = SplitCP().fit(logs.take(~own), MODEL, STATE_COV, seed=0)
        inside = by_hand.region(logs.take(own).inputs, 0.1).contains(logs.take(own).next_states)
        assert found.tested.coverage == inside.mean()
        assert found.tested.missed == (~inside).sum()
        assert found.tested.volume == pytest.approx(by_hand.scales(0.1)[0] ** 2)
    assert found.environment == "ice"
    assert found.tested.coverage < 0.7  # no other place tells of ice
    warned = account(blank, counts(logs), 0.1, [found]).warnings
    assert ["'ice' is covered to" in text for text in warned] == [True]


def test_what_cannot_be_left_out_says_why(logs):
    blank = NoCP().fit(logs, MODEL, STATE_COV, seed=0)
    how = {"like": blank, "alpha": 0.1, "seed": 0}
    alone = logs.take(logs.environment == 0)
    assert "no other environment" in leave_out("yard", SplitCP(), transitions=alone, **how).reason
    assert "no transitions" in leave_out("ice", SplitCP(), transitions=alone, **how).reason
    greedy = lucca(tree=TreeSettings(min_leaf=1600))
    found = leave_out("ice", greedy, transitions=logs, **how)
    assert found.tested is None
    assert "1600 points a leaf" in found.reason


def test_the_account_warns(logs):
    alone = logs.take(logs.environment == 0)
    alone = replace(alone, environments=("yard",))
    few = alone.take(np.arange(60))
    found = account(SplitCP().fit(alone, MODEL, STATE_COV, seed=0), counts(alone), 0.1)
    assert ["'yard': the promise holds for that place alone" in text for text in found.warnings] == [True]
    found = account(SplitCP().fit(few, MODEL, STATE_COV, seed=0), counts(few), 0.01)
    texts = " | ".join(found.warnings)
    assert "environment 'yard' has 60 transitions: fewer than 100" in texts
    assert (
        "1 of 1 cells have fewer than the 99 points that alpha = 0.01 needs; 1 have regions without" in texts
    )
    assert found.thresholds.most == np.inf
    small = lucca(tree=TreeSettings(max_depth=8, min_leaf=20), fallback=True)
    found = account(small.fit(logs, MODEL, STATE_COV, seed=0), counts(logs), 0.1)
    assert any("they borrow" in text for text in found.warnings)


def test_unbounded_regions_are_counted_and_cover(logs):
    calibration = SplitCP().fit(logs.take(np.arange(5)), MODEL, STATE_COV, seed=0)
    found = Performance.of(*outcomes(calibration, logs, 0.1), calibration)
    assert (found.coverage, found.unbounded, found.volume) == (1, 1, np.inf)


@pytest.mark.parametrize("name", calibrators())
def test_misses_by_environment_and_by_cell_add_up(name, logs):
    calibration = calibrators()[name].fit(logs, MODEL, STATE_COV, seed=0)
    found = evaluate(calibration, logs, 0.2)
    outside = ~calibration.region(logs.inputs, 0.2).contains(logs.next_states)
    assert found.total.missed == outside.sum()
    for groups in (found.environments, found.cells):
        assert sum(group.missed for group in groups.values()) == found.total.missed
        assert sum(group.transitions for group in groups.values()) == len(logs)
    for k, place in enumerate(PLACES):
        assert found.environments[place].missed == outside[logs.environment == k].sum()
    cells = calibration.cells(logs.inputs)
    for cell, group in found.cells.items():
        assert group.missed == outside[cells == cell].sum()
    assert found.total.volume == pytest.approx(1) or name != "nocp"
    assert len(found.warnings) == 3  # the very logs that were calibrated on


def test_nothing_to_evaluate_on_is_refused(logs):
    calibration = SplitCP().fit(logs, MODEL, STATE_COV, seed=0)
    with pytest.raises(InputError, match="0 transitions to evaluate on"):
        evaluate(calibration, logs.take(np.arange(0)), 0.1)
