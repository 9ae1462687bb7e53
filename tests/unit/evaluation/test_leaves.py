"""Cells in words: the bounds are those of the tree, the views those of the footprints."""

from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import LABELS, SMALL, random_encoder, random_transitions
from tests.unit.calibrators.test_calibrators import MODEL, SLIPPERY, STATE_COV, calibrators, drifting

from ocular.calibrators import ocular
from ocular.evaluation.leaves import leaves
from ocular.partition import TreePartition, TreeSettings

ICE, ROAD, WALL = (LABELS.index(name) for name in ("LOW_FRICTION", "NOMINAL", "OCCUPIED"))


def icy_or_not():
    """Half of the footprints are all ice and half are all road; on ice the model is wrong."""
    found = random_transitions(np.random.default_rng(1), 4000, drifting, footprints=2)
    cells = np.stack([np.full((SMALL.angles, SMALL.ranges), label, np.uint8) for label in (ICE, ROAD)])
    inputs = replace(found.inputs, footprints=replace(found.inputs.footprints, cells=cells))
    rng = np.random.default_rng(2)
    slipped, plain = (m.step(rng, inputs.states, inputs.actions) for m in (SLIPPERY, MODEL))
    return replace(
        found, inputs=inputs, next_states=np.where(inputs.footprint_index[:, None] == 0, slipped, plain)
    )


@pytest.fixture(scope="module")
def logs():
    return icy_or_not()


@pytest.fixture(scope="module")
def calibration(logs):
    tree = TreeSettings(max_depth=3, min_leaf=250)
    return ocular(lambda footprints, seed: random_encoder(0), tree=tree).fit(logs, MODEL, STATE_COV, seed=0)


def test_ice_is_called_ice_and_the_largest_scale_comes_first(calibration, logs):
    found = leaves(calibration, 0.1, logs)
    assert [leaf.xi for leaf in found] == sorted((leaf.xi for leaf in found), reverse=True)
    assert found[0].words.startswith("low friction ahead (100 %, elsewhere ")
    assert "faster than" in found[0].words
    assert found[0].rule.startswith("latent ")
    assert any(leaf.words.startswith("nominal ahead (100 %") for leaf in found)
    assert sum(leaf.points for leaf in found) == len(calibration.scores.scores)
    assert {leaf.cell for leaf in found} == set(range(calibration.partition.n_cells))


def test_without_logs_latents_stay_numbers(calibration):
    found = leaves(calibration, 0.1)
    assert all(leaf.words == leaf.rule and leaf.views == () for leaf in found)
    assert any("latent " in leaf.words for leaf in found)


@pytest.mark.parametrize("name", calibrators())
def test_every_method_has_words(name, logs):
    calibration = calibrators()[name].fit(logs, MODEL, STATE_COV, seed=0)
    found = leaves(calibration, 0.1, logs)
    assert len(found) == calibration.partition.n_cells
    if name in ("nocp", "splitcp"):
        assert [leaf.words for leaf in found] == ["anything"]


def test_bounds_of_one_feature_are_joined(calibration):
    tree = TreePartition(  # speed: <= 0.4, then 0.4 to 0.9, beyond; then acceleration along
        n_features=9,
        feature=np.array([0, -1, 0, -1, 1, -1, -1], np.int32),
        threshold=np.array([0.4, 0, 0.9, 0, -0.25, 0, 0]),
        left=np.array([1, -1, 3, -1, 5, -1, -1], np.int32),
        right=np.array([2, -1, 4, -1, 6, -1, -1], np.int32),
        cell=np.array([-1, 0, -1, 1, -1, 2, 3], np.int32),
    )
    found = {leaf.cell: leaf.words for leaf in leaves(replace(calibration, partition=tree, scores=None), 0.1)}
    assert found == {
        0: "no faster than 0.4 m/s",
        1: "0.4 to 0.9 m/s fast",
        2: "faster than 0.9 m/s and acceleration along <= -0.25 m/s²",
        3: "faster than 0.9 m/s and acceleration along > -0.25 m/s²",
    }


def test_obstacles_are_counted_by_bearing(logs):
    cells = logs.inputs.footprints.cells.copy()
    cells[0, :, 3] = WALL  # one cell of eight, yet on every bearing
    walled = replace(
        logs, inputs=replace(logs.inputs, footprints=replace(logs.inputs.footprints, cells=cells))
    )
    tree = TreeSettings(max_depth=1, min_leaf=250)
    calibration = ocular(lambda footprints, seed: random_encoder(0), features="world", tree=tree).fit(
        walled, MODEL, STATE_COV, seed=0
    )
    first, last = leaves(calibration, 0.1, walled)
    assert (
        first.words == "low friction ahead (100 %, elsewhere 0 %) and obstacles ahead (100 %, elsewhere 0 %)"
    )
    assert last.words == "nominal ahead (100 %, elsewhere 0 %) and few obstacles ahead (0 %, elsewhere 100 %)"
