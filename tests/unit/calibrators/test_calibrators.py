"""All methods share one interface; what must not change a calibration does not change it."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2
from tests.conftest import LABELS, SMALL, random_encoder, random_transitions

from ocular.calibrators import METHODS, NoCP, SplitCP, lucca, ocular, ocular_no_encode
from ocular.calibrators.features import features
from ocular.dynamics import LinearGaussian, double_integrator
from ocular.errors import InputError
from ocular.partition import TreeSettings
from ocular.records import Gaussian

MODEL = double_integrator(0.05, floor=1e-6)
SLIPPERY = double_integrator(0.05, slip=1.3, floor=1e-6)
STATE_COV = 2e-5 * np.eye(4)
TREE = TreeSettings(max_depth=4, min_leaf=250)


def drifting(rng, states, actions):
    """Slips where x > 0, as on a map that is icy on one side."""
    start = states + rng.standard_normal(states.shape) * np.sqrt(2e-5)
    icy = start[:, :1] > 0
    return np.where(icy, SLIPPERY.step(rng, start, actions), MODEL.step(rng, start, actions))


def calibrators():
    encoder = random_encoder(0)
    return {
        "nocp": NoCP(),
        "splitcp": SplitCP(),
        "lucca": lucca(tree=TREE),
        "ocular": ocular(lambda footprints, seed: encoder, tree=TREE),
        "ocular_no_encode": ocular_no_encode(tree=TREE),
    }


@pytest.fixture(scope="module")
def logs():
    return random_transitions(np.random.default_rng(1), 6000, drifting)


@pytest.mark.parametrize("name", calibrators())
def test_every_method_gives_scales_and_regions_that_agree(name, logs):
    calibration = calibrators()[name].fit(logs, MODEL, STATE_COV, seed=0)
    fresh = random_transitions(np.random.default_rng(2), 3000, drifting)
    for alpha in (0.05, 0.1, 0.4):
        region = calibration.region(fresh.inputs, alpha)
        inside = region.contains(fresh.next_states)
        scale = calibration.scale(fresh.inputs, alpha)
        scaled = Gaussian(region.prediction.mean, scale[:, None, None] * region.prediction.cov)
        q = chi2.ppf(1 - alpha, 4)
        assert np.array_equal(inside, calibration.score(fresh) <= region.threshold)
        np.testing.assert_allclose(region.threshold, scale * q)
        np.testing.assert_allclose(scaled.cov[0], scale[0] * region.prediction.cov)
        if name != "nocp":
            assert inside.mean() > 1 - alpha - 0.03
    assert (calibration.scale(fresh.inputs, 0.1) == 1).all() == (name == "nocp")


@pytest.mark.parametrize("name", calibrators())
def test_same_seed_same_bytes_and_larger_alpha_no_larger(name, logs):
    first, second = (calibrators()[name].fit(logs, MODEL, STATE_COV, seed=3) for _ in range(2))
    assert first.scales(0.1).tobytes() == second.scales(0.1).tobytes()
    levels = [first.scale(logs.inputs, alpha) for alpha in (0.02, 0.1, 0.3, 0.6)]
    if name == "nocp":  # its scale is 1 at every level; its threshold is what shrinks
        levels = [first.thresholds(alpha) for alpha in (0.02, 0.1, 0.3, 0.6)]
    else:
        levels = [first.region(logs.inputs, alpha).threshold for alpha in (0.02, 0.1, 0.3, 0.6)]
    for wide, narrow in itertools.pairwise(levels):
        assert (narrow <= wide).all()


def test_rotating_the_world_with_the_robot_changes_nothing_in_the_body_frame(logs):
    calibration = calibrators()["ocular"].fit(logs, MODEL, STATE_COV, seed=0)
    for turn in (0.3, 1.7, -2.9):
        cos, sin = np.cos(turn), np.sin(turn)
        rotate = np.kron(np.eye(2), np.array([[cos, -sin], [sin, cos]]))
        turned = replace(
            logs.inputs,
            states=logs.inputs.states @ rotate.T,
            actions=logs.inputs.actions @ rotate[:2, :2].T,
            headings=logs.inputs.headings + turn,
        )
        np.testing.assert_allclose(
            features("body")(turned), features("body")(logs.inputs), rtol=1e-9, atol=1e-9
        )
        same = calibration.scale(turned, 0.1) == calibration.scale(logs.inputs, 0.1)
        assert same.mean() > 0.999  # rows within rounding of a split may change sides


def test_body_features_are_speed_and_acceleration_along_and_across():
    logs = random_transitions(np.random.default_rng(0), 1, drifting)
    inputs = replace(
        logs.inputs,
        states=np.array([[9.0, 9.0, 0.0, 2.0]]),
        actions=np.array([[0.5, -0.25]]),
        headings=np.array([np.pi / 2]),
    )
    np.testing.assert_allclose(features("body")(inputs), [[2.0, -0.25, -0.5]], atol=1e-12)
    np.testing.assert_allclose(features("position")(inputs), [[9, 9, 0, 2, 0.5, -0.25]])
    with pytest.raises(InputError, match="'polar'; allowed are 'position', 'world', 'body'"):
        features("polar")


def test_moving_the_map_changes_lucca_but_not_ocular(logs):
    moved = replace(logs.inputs, states=logs.inputs.states + np.array([5.0, 0, 0, 0]))
    fitted = {n: c.fit(logs, MODEL, STATE_COV, seed=0) for n, c in calibrators().items()}
    assert not np.array_equal(fitted["lucca"].scale(moved, 0.1), fitted["lucca"].scale(logs.inputs, 0.1))
    for name in ("ocular", "ocular_no_encode", "splitcp"):
        assert np.array_equal(fitted[name].scale(moved, 0.1), fitted[name].scale(logs.inputs, 0.1))


def test_relabelling_the_classes_with_the_encoder_changes_nothing(logs):
    encoder = random_encoder(0)
    order = np.array([2, 0, 3, 1])  # new index of each old label
    names = tuple(np.array(LABELS)[np.argsort(order)])
    first = np.ascontiguousarray(encoder.kernels[0][:, np.argsort(order)])
    renamed = replace(encoder, labels=names, kernels=(first, *encoder.kernels[1:]))
    footprints = logs.inputs.footprints
    relabelled = replace(
        logs,
        inputs=replace(
            logs.inputs,
            footprints=replace(footprints, cells=order.astype(np.uint8)[footprints.cells], labels=names),
        ),
    )
    plain = ocular(lambda f, s: encoder, tree=TREE).fit(logs, MODEL, STATE_COV, seed=0)
    other = ocular(lambda f, s: renamed, tree=TREE).fit(relabelled, MODEL, STATE_COV, seed=0)
    assert np.array_equal(plain.scale(logs.inputs, 0.1), other.scale(relabelled.inputs, 0.1))


def test_the_encoder_sees_the_partition_split_only(logs):
    own = replace(  # each transition looks at a footprint of its own
        logs,
        inputs=replace(
            logs.inputs,
            footprint_index=np.arange(len(logs)),
            footprints=replace(
                logs.inputs.footprints,
                cells=np.random.default_rng(0).integers(0, 4, (len(logs), 16, 8), dtype=np.uint8),
            ),
        ),
    )
    given = []

    def watch(footprints, _seed):
        given.append(len(footprints))
        return random_encoder(0)

    ocular(watch, tree=TREE).fit(own, MODEL, STATE_COV, seed=0)
    assert given == [round(0.7 * len(logs))]


def test_methods_are_those_of_the_paper():
    assert list(METHODS) == ["nocp", "splitcp", "lucca", "ocular", "ocular_same_map", "ocular_no_encode"]
    assert [m for m, spec in METHODS.items() if not spec.needs_test_map] == ["ocular", "ocular_no_encode"]


def test_bad_input_is_refused_before_any_work(logs):
    with pytest.raises(InputError, match="state_cov is not positive semidefinite"):
        SplitCP().fit(logs, MODEL, -STATE_COV, seed=0)
    with pytest.raises(InputError, match=r"state_cov has shape \(2, 2\); allowed is \(4, 4\)"):
        SplitCP().fit(logs, MODEL, np.eye(2), seed=0)
    three = LinearGaussian(np.eye(3), np.ones((3, 2)), np.eye(3))
    with pytest.raises(InputError, match=r"states has shape \(6000, 4\); allowed is \(any, 3\)"):
        SplitCP().fit(logs, three, np.eye(3), seed=0)
    with pytest.raises(InputError, match=r"partition_share is 1\.0"):
        replace(lucca(), partition_share=1.0)
    with pytest.raises(InputError, match="impossible under the model"):
        SplitCP().fit(logs, double_integrator(0.05), 0 * STATE_COV, seed=0)
    with pytest.raises(InputError, match="4200 points to grow a tree with 2500 points a leaf"):
        lucca(tree=TreeSettings(min_leaf=2500)).fit(logs, MODEL, STATE_COV, seed=0)


def test_footprints_of_another_kind_are_refused(logs):
    calibration = calibrators()["ocular"].fit(logs, MODEL, STATE_COV, seed=0)
    footprints = logs.inputs.footprints
    wider = replace(SMALL, field_of_view=2.5)
    with pytest.raises(InputError, match=r"geometry.*field_of_view=2\.5.*allowed is .*field_of_view=2\.0"):
        calibration.scale(replace(logs.inputs, footprints=replace(footprints, geometry=wider)), 0.1)
    swapped = ("UNKNOWN", "OCCUPIED", "NOMINAL", "LOW_FRICTION")
    with pytest.raises(InputError, match="labels"):
        calibration.scale(replace(logs.inputs, footprints=replace(footprints, labels=swapped)), 0.1)
