from dataclasses import replace

import numpy as np
import pytest

from ocular.calibrators import Calibration
from ocular.calibrators.features import features
from ocular.calibrators.levels import Levels
from ocular.conformal import CellScores
from ocular.dynamics import double_integrator
from ocular.encoding import ConvEncoder
from ocular.errors import InputError
from ocular.footprint import scan
from ocular.partition import TreePartition, TreeSettings
from ocular.planning.belief import BeliefMap
from ocular.planning.latent_field import LatentField
from ocular.planning.scale_field import ConstantScale, TreeScale, scale_field
from ocular.records import FootprintGeometry, Footprints, Inputs

NAMES = ("NOMINAL", "LOW_FRICTION", "OCCUPIED", "UNKNOWN")
GEOMETRY = FootprintGeometry(angles=16, ranges=8, max_range=0.5)
MAPS = ("position", "world", "body", "action", "state+action")


def samples(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States, headings and actions as a planner asks, in single precision."""
    rng = np.random.default_rng(seed)
    states = rng.uniform((0, 0, -2, -2), (1, 1, 2, 2), (n, 4)).astype(np.float32)
    return (
        states,
        rng.uniform(-np.pi, np.pi, n).astype(np.float32),
        rng.normal(size=(n, 2)).astype(np.float32),
    )


def inputs(
    states: np.ndarray, headings: np.ndarray, actions: np.ndarray, cells: np.ndarray | None = None
) -> Inputs:
    """The same as records, one footprint each or one blank for all."""
    blank = np.zeros((1, GEOMETRY.angles, GEOMETRY.ranges), np.uint8)
    rows = np.zeros(len(states), np.int64) if cells is None else np.arange(len(states))
    seen = Footprints(blank if cells is None else cells, NAMES, GEOMETRY)
    return Inputs(*(a.astype(np.float64) for a in (states, actions, headings)), rows, seen)


def random_encoder() -> ConvEncoder:
    rng = np.random.default_rng(0)
    inputs_ = (len(NAMES), 8, 16, 32)

    def weights(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    return ConvEncoder(
        labels=NAMES,
        geometry=GEOMETRY,
        kernels=tuple(weights(inputs_[n + 1], inputs_[n], 4, 4) * 2 for n in range(3)),
        biases=tuple(weights(inputs_[n + 1]) for n in range(3)),
        projection=weights(6, 64) * 8,
        offset=weights(6),
    )


def random_tree(rows: np.ndarray) -> TreePartition:
    """A tree over these rows; every feature is as likely as another to be split."""
    rng = np.random.default_rng(1)
    spread = (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-9)
    targets = np.sin(3 * spread).sum(axis=1) + rng.normal(size=len(rows)) * 0.1
    return TreePartition.fit(rows, targets, TreeSettings(max_depth=10, min_leaf=5), seed=0)


def calibration(
    feature_map: str | None, partition: TreePartition, encoder: ConvEncoder | None
) -> Calibration:
    rng = np.random.default_rng(2)
    cells = np.repeat(np.arange(partition.n_cells), 40)
    scores = CellScores.group(rng.chisquare(4, len(cells)) * (1 + cells), cells, partition.n_cells)
    chosen = None if feature_map is None else features(feature_map)
    model = double_integrator(0.05)
    return Calibration("any", model, np.eye(4), chosen, encoder, partition, scores)


def seen_map() -> BeliefMap:
    """A map with a bit of everything."""
    belief = BeliefMap(NAMES, 0.02)
    rng = np.random.default_rng(3)
    for _ in range(6):
        blotches = np.kron(rng.integers(0, 4, (4, 2)), np.ones((4, 4))).astype(np.uint8)
        belief.update(blotches, GEOMETRY, rng.uniform(0.2, 0.8, 2), rng.uniform(-3, 3))
    return belief


@pytest.mark.parametrize("name", MAPS)
def test_a_tree_without_images_agrees_with_the_calibration(name: str) -> None:
    partition = random_tree(features(name)(inputs(*samples(0, 600))))
    calibrated = calibration(name, partition, None)
    field = scale_field(calibrated, 0.1, BeliefMap(NAMES))
    asked = samples(5, 500)
    wanted = calibrated.scale(inputs(*asked), 0.1)
    np.testing.assert_array_equal(field.scales(*asked), wanted)
    assert len(np.unique(wanted)) > 5
    assert isinstance(field, TreeScale)
    np.testing.assert_array_equal(field.exact_scales(*asked), wanted)


@pytest.mark.parametrize("name", ["body", "world", None])
def test_exact_scales_agree_with_the_calibration_on_scanned_footprints(name: str | None) -> None:

    belief, encoder, asked = seen_map(), random_encoder(), samples(6, 600)
    cells = scan(belief.grid(), GEOMETRY, asked[0][:, :2].astype(np.float64), asked[1].astype(np.float64))
    records = inputs(*asked, cells)
    rows = encoder.encode(cells)
    if name is not None:
        rows = np.concatenate([features(name)(records), rows], axis=1)
    calibrated = calibration(name, random_tree(rows), encoder)
    field = scale_field(calibrated, 0.1, belief)
    assert isinstance(field, TreeScale)
    np.testing.assert_array_equal(field.exact_scales(*asked), calibrated.scale(records, 0.1))


def test_scales_are_raised_between_logged_speeds_as_the_calibration_does() -> None:
    asked = samples(12, 600)
    records = inputs(*asked)
    plain = calibration("body", random_tree(features("body")(records)), None)
    leveled = replace(plain, levels=Levels(0, np.array([0.0, 0.4, 0.9, 1.1, 2.0])))
    wanted = leveled.scale(records, 0.1)
    field = scale_field(leveled, 0.1, BeliefMap(NAMES))
    np.testing.assert_allclose(field.scales(*asked), wanted, rtol=1e-5)
    assert (wanted >= plain.scale(records, 0.1)).all()
    assert (wanted > plain.scale(records, 0.1)).mean() > 0.2


def test_rounding_costs_little_and_none_at_rounded_poses() -> None:
    belief, encoder = seen_map(), random_encoder()
    latents = LatentField(encoder, belief, position_step=0.02)
    states, headings, actions = samples(7, 600)
    positions, headings = latents.rounded(states[:, :2], headings)
    states = np.concatenate([positions, states[:, 2:]], axis=1)
    rows = np.concatenate(
        [features("body")(inputs(states, headings, actions)), latents.exact_latents(positions, headings)],
        axis=1,
    )
    partition = random_tree(rows)
    field = TreeScale(partition, np.arange(partition.n_cells) + 1.0, "body", latents)
    exact = field.exact_scales(states, headings, actions)
    np.testing.assert_array_equal(field.scales(states, headings, actions), exact)
    assert len(np.unique(exact)) > 10


def test_samples_that_share_a_pose_are_not_rounded() -> None:
    belief, encoder = seen_map(), random_encoder()
    latents = LatentField(encoder, belief, position_step=0.3)
    n = 200
    _, _, actions = samples(8, n)
    state = np.array([0.4567, 0.5432, 0.0, 0.0])  # at rest, where the heading is not the velocity's
    many = np.tile(state, (n, 1)), np.full(n, 0.77), actions
    positions = np.random.default_rng(9).uniform(0, 1, (400, 2))
    spread = np.concatenate([positions, np.zeros((400, 2))], axis=1)
    rows = np.concatenate(
        [
            features("body")(inputs(spread, np.full(400, 0.77), np.resize(actions, (400, 2)))),
            latents.exact_latents(positions, np.full(400, 0.77)),
        ],
        axis=1,
    )
    partition = random_tree(rows)
    field = TreeScale(partition, np.arange(partition.n_cells) + 1.0, "body", latents)
    np.testing.assert_array_equal(field.scales(*many), field.exact_scales(*many))
    assert latents.renewed == 0


def test_the_first_step_rests_on_what_is_really_seen() -> None:
    """The one-step promise is about real footprints; the map may show something else at the same pose."""
    belief, encoder = seen_map(), random_encoder()
    states, headings, actions = samples(10, 300)
    rng = np.random.default_rng(11)
    real = np.kron(rng.integers(0, 4, (300, 4, 2)), np.ones((1, 4, 4))).astype(np.uint8)
    records = inputs(states, headings, actions, real)
    partition = random_tree(np.concatenate([features("body")(records), encoder.encode(real)], axis=1))
    calibrated = calibration("body", partition, encoder)
    field = scale_field(calibrated, 0.1, belief)
    assert isinstance(field, TreeScale)
    differ = 0
    for i in range(40):
        here = np.tile(states[i], (5, 1)), np.repeat(headings[i], 5), actions[:5]
        from_map = field.scales(*here)
        field.refresh(real[i], states[i, :2].astype(np.float64), float(headings[i]))
        seen = inputs(here[0], here[1], here[2], np.repeat(real[i : i + 1], 5, axis=0))
        np.testing.assert_array_equal(field.scales(*here), calibrated.scale(seen, 0.1))
        differ += int((field.scales(*here) != from_map).any())
        moved = here[0] + np.float32(0.01), here[1], here[2]
        np.testing.assert_array_equal(field.scales(*moved), field.exact_scales(*moved))
    assert differ > 10


def test_infinite_scales_pass_through() -> None:
    partition = random_tree(features("body")(inputs(*samples(0, 600))))
    xi = np.full(partition.n_cells, np.inf)
    asked = samples(1, 20)
    assert np.isinf(TreeScale(partition, xi, "body").scales(*asked)).all()
    assert np.isinf(ConstantScale(np.inf).scales(*asked)).all()


def test_a_calibration_of_one_cell_gives_a_constant() -> None:
    plain = Calibration("nocp", double_integrator(0.05), np.eye(4))
    field = scale_field(plain, 0.1, BeliefMap(NAMES))
    assert isinstance(field, ConstantScale)
    np.testing.assert_allclose(field.scales(*samples(0, 7)), np.ones(7))


def test_refuses_what_does_not_fit() -> None:
    partition = random_tree(features("body")(inputs(*samples(0, 600))))
    xi = np.ones(partition.n_cells)
    with pytest.raises(InputError, match="features is 'polar'; allowed are 'position', 'world', 'body'"):
        TreeScale(partition, xi, "polar")
    with pytest.raises(InputError, match="the tree splits 3 features; allowed are the 4"):
        TreeScale(partition, xi, "world")
    with pytest.raises(InputError, match="xi has shape"):
        TreeScale(partition, xi[1:], "body")
    with pytest.raises(InputError, match=r"xi is -1\.0; allowed is a number of at least 0"):
        ConstantScale(-1.0)
    states, headings, actions = samples(0, 5)
    with pytest.raises(InputError, match=r"actions has shape \(4, 2\); allowed is \(5, 2\)"):
        TreeScale(partition, xi, "body").scales(states, headings, actions[1:])
