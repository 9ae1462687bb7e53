"""Settings are chosen by places left out, and by nothing that thresholds are made of."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import random_encoder, random_transitions

from ocular.calibrators import Selecting, load, ocular, ocular_no_encode, save
from ocular.calibrators.base import split_rows
from ocular.calibrators.selection import TOLERANCE, choose
from ocular.calibrators.trials import HANDFUL, Trial, Trials
from ocular.dynamics import double_integrator
from ocular.errors import InputError
from ocular.partition import TreeSettings
from ocular.records import Gaussian, LogPart, Logs, concatenate

MODEL = double_integrator(0.05, floor=1e-6)
STATE_COV = 2e-5 * np.eye(4)
SPREAD = np.linalg.cholesky(MODEL.predict(Gaussian(np.zeros(4), STATE_COV), np.zeros(2)).cov)
TREES = (TreeSettings(1, 80), TreeSettings(2, 80))
PLACES = ("yard", "hall", "dock")


def noisier(times):
    """Errors that are larger where |vx| is large: one split of a tree sees half of that."""

    def step(rng, states, actions):
        noise = rng.standard_normal(states.shape) @ SPREAD.T * np.where(np.abs(states[:, 2:3]) > 1.2, 3, 1)
        return states @ MODEL.A.T + actions @ MODEL.B.T + times * noise

    return step


def logs_of(seed=0, n=1200, noise=(1.0, 1.0, 1.0)):
    rng = np.random.default_rng(seed)
    return concatenate(
        [
            random_transitions(rng, n, noisier(times), environments=(place,))
            for place, times in zip(PLACES, noise, strict=False)
        ]
    )


def fit(logs, calibrator=None, trees=TREES, seed=0):
    calibrator = calibrator or ocular_no_encode(tree=TREES[0])
    return Selecting(calibrator, trees, 0.1).fit(logs, MODEL, STATE_COV, seed=seed)


def trial(tree, coverage, xi, *, unbounded=0.0, left_out="here"):
    return Trial(left_out, 0, tree, 5, 1000, coverage, unbounded, 0.0, xi)


def test_the_smallest_regions_are_chosen_of_those_that_hold():
    a, b, c = TreeSettings(1), TreeSettings(2), TreeSettings(3)
    assert choose([trial(a, 0.95, 3.0), trial(b, 0.9, 2.0), trial(c, 0.85, 1.0)], 0.1) == b
    assert choose([trial(a, 0.95, 3.0), trial(b, 0.9 - TOLERANCE, 2.0)], 0.1) == b
    one_place_lacks = [trial(b, 0.99, 2.0), trial(b, 0.8, 2.0, left_out="there")]
    assert choose([trial(a, 0.89, 3.0), *one_place_lacks], 0.1) == a
    assert choose([trial(a, 0.7, 1.0), trial(b, 0.8, 9.0), trial(c, 0.75, 1.0)], 0.1) == b
    assert choose([trial(a, 0.9, 2.0), trial(b, 0.9, 2.0)], 0.1) == a


def test_regions_without_bounds_do_not_count_as_covered():
    a, b = TreeSettings(1), TreeSettings(2)
    assert choose([trial(a, 0.9, 3.0), trial(b, 1.0, 1.0, unbounded=0.4)], 0.1) == a
    assert choose([trial(a, 0.9, np.inf), trial(b, 0.9, 1.0)], 0.1) == b


def test_the_calibration_is_that_of_the_chosen_settings():
    logs = logs_of()
    chosen = fit(logs)
    record = chosen.provenance["selection"]
    tree = TreeSettings(record["max_depth"], record["min_leaf"])
    plain = ocular_no_encode(tree=tree).fit(logs, MODEL, STATE_COV, seed=0)
    assert tree == TREES[1]
    assert np.array_equal(chosen.scores.scores, plain.scores.scores)
    assert chosen.provenance == {**plain.provenance, "selection": record}


def test_no_score_of_the_conformal_split_takes_part_in_the_choice():
    logs = logs_of()
    _, conformal = split_rows(len(logs), 0.7, 0)
    ruined = logs.next_states.copy()
    ruined[conformal] += np.random.default_rng(0).standard_normal(ruined[conformal].shape)
    again = fit(replace(logs, next_states=ruined))
    assert again.provenance["selection"] == fit(logs).provenance["selection"]
    assert again.scales(0.1).min() > 100  # the thresholds do look at it


def test_a_trial_is_a_calibration_without_the_place():
    logs = logs_of(noise=(1.0, 1.0, 1.6))
    calibrator = ocular(lambda _, seed: random_encoder(seed % 1000), tree=TREES[0])
    seen = calibrator.look(Logs.of(logs), MODEL, STATE_COV, seed=3)
    trials = Trials(calibrator, seen, np.arange(len(logs)), 0.1, seed=3)
    found = trials.without("dock", TREES, encoder_seed=3)
    rest, dock = logs.take(logs.environment != 2), logs.take(logs.environment == 2)
    for one, tree in zip(found, TREES, strict=True):
        by_hand = replace(calibrator, tree=tree).fit(rest, MODEL, STATE_COV, seed=3)
        covered = by_hand.region(dock.inputs, 0.1).contains(dock.next_states)
        assert (one.left_out, one.tree, one.steps) == ("dock", tree, len(dock))
        assert one.cells == by_hand.partition.n_cells
        assert one.coverage == covered.mean()
        assert one.xi == pytest.approx(np.median(by_hand.scale(dock.inputs, 0.1)), rel=0.05)
        cells = by_hand.cells(dock.inputs)
        gaps = [abs(covered[cells == k].mean() - 0.9) for k in cells]
        assert one.gap == pytest.approx(np.mean(gaps))
        assert one.coverage < 0.8  # no other place is as noisy


def test_one_encoder_serves_all_trees_of_a_place():
    asked = []

    def source(_, seed):
        asked.append(seed)
        return random_encoder(0)

    fit(logs_of(), ocular(source))
    assert len(asked) == len(PLACES) + 1


def test_part_by_part_the_choice_and_the_bytes_are_the_same(tmp_path):
    logs = logs_of()
    parts = tuple(
        LogPart(len(part), lambda part=part: part)
        for part in (logs.take(rows) for rows in np.array_split(np.arange(len(logs)), 4))
    )
    calibrator = ocular(lambda _, __: random_encoder(0))
    for name, source in (("whole", logs), ("parts", Logs(parts, logs.environments)), ("again", logs)):
        save(fit(source, calibrator), tmp_path / name)
    whole = (tmp_path / "whole").read_bytes()
    assert (tmp_path / "parts").read_bytes() == whole
    assert (tmp_path / "again").read_bytes() == whole
    record = load(tmp_path / "whole").provenance["selection"]
    assert record == json.loads(json.dumps(record))
    assert {t["left_out"] for t in record["trials"]} == set(PLACES)
    assert len(record["trials"]) == len(PLACES) * len(TREES)
    assert record["holds"]


def test_what_is_wrong_is_said_before_an_encoder_is_trained():
    def never(_, __):
        raise AssertionError("trained")

    logs, calibrator = logs_of(), ocular(never)
    with pytest.raises(InputError, match=r"\d+ points to grow a tree with 900 points a leaf; allowed are"):
        fit(logs, calibrator, trees=(TreeSettings(min_leaf=900),))
    with pytest.raises(InputError, match="2520 points to grow a tree with 1500"):
        replace(calibrator, tree=TreeSettings(min_leaf=1500)).fit(logs, MODEL, STATE_COV, seed=0)
    alone = logs.take(logs.environment == 1)
    with pytest.raises(InputError, match=f"hall 840, dock 0; allowed are at least 2.* at least {HANDFUL}"):
        fit(alone, calibrator)
    with pytest.raises(InputError, match=r"trees to choose among: .*; allowed are different ones"):
        fit(logs, trees=(TREES[0], TREES[0]))
    with pytest.raises(InputError, match=r"alpha is 1\.5"):
        Selecting(calibrator, TREES, 1.5)


def test_small_places_calibrate_but_are_not_left_out():
    logs = logs_of()
    keep = np.flatnonzero((logs.environment != 2) | (np.cumsum(logs.environment == 2) <= HANDFUL))
    record = fit(logs.take(keep)).provenance["selection"]
    assert {t["left_out"] for t in record["trials"]} == {"yard", "hall"}
