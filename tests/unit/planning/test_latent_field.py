import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocular.encoding import ConvEncoder
from ocular.errors import InputError
from ocular.footprint import LabelGrid, scan
from ocular.planning.belief import BeliefMap
from ocular.planning.latent_field import LatentField
from ocular.records import FootprintGeometry

NAMES = ("NOMINAL", "LOW_FRICTION", "OCCUPIED", "UNKNOWN")
# Fifteen and a bit, or exactly twelve, groups of rays make a turn.
OPEN = FootprintGeometry(angles=40, ranges=24, field_of_view=2.0, max_range=0.6)
CLOSED = FootprintGeometry(angles=32, ranges=16, field_of_view=2 * np.pi / 3, max_range=0.6)
NARROW = FootprintGeometry(angles=16, ranges=8, field_of_view=np.pi / 4, max_range=0.6)
ROUND = FootprintGeometry(angles=64, ranges=8, field_of_view=2 * np.pi, max_range=0.6)
GEOMETRIES = [OPEN, CLOSED, NARROW, ROUND]


def random_encoder(geometry: FootprintGeometry, dim: int = 6) -> ConvEncoder:
    rng = np.random.default_rng(0)
    inputs = (len(NAMES), 8, 16, 32)
    positions = (geometry.angles // 8) * (geometry.ranges // 8)

    def weights(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    return ConvEncoder(
        labels=NAMES,
        geometry=geometry,
        kernels=tuple(weights(inputs[n + 1], inputs[n], 4, 4) * 2 for n in range(3)),
        biases=tuple(weights(inputs[n + 1]) for n in range(3)),
        projection=weights(dim, 32 * positions),
        offset=weights(dim),
    )


def world() -> LabelGrid:
    """A corridor with a bend, ice and an obstacle, 2 m x 2 m."""
    labels = np.full((100, 100), 2, np.uint8)
    labels[10:45, 5:95] = 0
    labels[10:95, 55:95] = 0
    labels[30:70, 50:90][labels[30:70, 50:90] == 0] = 1
    labels[20:26, 30:34] = 2
    return LabelGrid(labels, NAMES, 0.02, (0.0, 0.0), "OCCUPIED")


def look(belief: BeliefMap, geometry: FootprintGeometry, position: np.ndarray, heading: float) -> None:
    cells = scan(world(), geometry, position[None], np.array([heading]))[0]
    belief.update(cells, geometry, position, heading)


def poses(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform((0.2, 0.3), (1.8, 0.8), (count, 2)), rng.uniform(-np.pi, np.pi, count)


def reference(field: LatentField, positions: np.ndarray, headings: np.ndarray) -> np.ndarray:
    """Footprint by footprint, by way of the encoder."""
    return field.exact_latents(*field.rounded(positions, headings))


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("dim", [1, 6, 11])
def test_equals_scanning_and_encoding_each_rounded_pose_bit_for_bit(
    geometry: FootprintGeometry, dim: int
) -> None:
    belief = BeliefMap(NAMES, 0.02)
    field = LatentField(random_encoder(geometry, dim), belief, heading_step=0.1)
    for n, (position, heading) in enumerate(zip(*poses(1, 12), strict=True)):
        look(belief, geometry, position, heading)
        asked = poses(n, 60)
        np.testing.assert_array_equal(field.latents(*asked), reference(field, *asked))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    geometry=st.sampled_from(GEOMETRIES),
    sensor=st.sampled_from([CLOSED, NARROW]),
    steps=st.lists(st.sampled_from(["look", "blink", "ask", "ask again"]), min_size=3, max_size=15),
)
def test_no_latent_is_stale_after_any_updates(
    seed: int, geometry: FootprintGeometry, sensor: FootprintGeometry, steps: list[str]
) -> None:
    rng = np.random.default_rng(seed)
    belief = BeliefMap(NAMES, 0.02)
    field = LatentField(random_encoder(geometry), belief, position_step=0.04, capacity=64)
    same = poses(seed, 40)
    for step in [*steps, "ask again"]:
        position, heading = rng.uniform((0.2, 0.3), (1.8, 0.8)), rng.uniform(-np.pi, np.pi)
        if step == "look":
            look(belief, sensor, position, heading)
        elif step == "blink":  # labels that come and go, anywhere
            cells = rng.integers(0, 4, (sensor.angles, sensor.ranges)).astype(np.uint8)
            belief.update(cells, sensor, position, heading)
        else:
            asked = same if step == "ask again" else poses(int(rng.integers(2**31)), 30)
            np.testing.assert_array_equal(field.latents(*asked), reference(field, *asked))


def test_nothing_is_renewed_unless_something_in_sight_changed() -> None:
    belief = BeliefMap(NAMES, 0.02, extent=(-4.0, -4.0, 4.0, 4.0))
    field = LatentField(random_encoder(CLOSED), belief, position_step=0.1)
    look(belief, CLOSED, np.array([0.5, 0.5]), 0.0)
    asked = np.tile([[0.5, 0.5]], (50, 1)), np.linspace(-0.1, 0.1, 50)
    field.latents(*asked)
    first = field.renewed
    assert 1 <= first <= 3  # many samples, few rounded poses
    field.latents(*asked)
    assert field.renewed == first
    look(belief, CLOSED, np.array([0.5, 0.5]), 0.0)  # the same view changes no label
    field.latents(*asked)
    assert field.renewed == first
    belief.update(np.zeros((32, 16), np.uint8), CLOSED, np.array([-3.0, -3.0]), 0.0)  # far away
    field.latents(*asked)
    assert field.renewed == first
    for _ in range(3):
        belief.update(np.ones((32, 16), np.uint8), CLOSED, np.array([0.5, 0.5]), 0.0)
    field.latents(*asked)
    assert field.renewed > first


def test_fine_rounding_approaches_the_exact_latents() -> None:
    belief = BeliefMap(NAMES, 0.02)
    for position, heading in zip(*poses(2, 12), strict=True):
        look(belief, FootprintGeometry(), position, heading)
    positions, headings = poses(3, 300)
    errors = []
    for step in (0.2, 0.04, 1e-9):
        field = LatentField(random_encoder(CLOSED), belief, position_step=step)
        turned = np.round(headings / field.heading_step) * field.heading_step
        errors.append(
            np.abs(field.latents(positions, turned) - field.exact_latents(positions, turned)).max(axis=1)
        )
    assert errors[0].mean() > 1.5 * errors[1].mean()
    assert (errors[2] < 1e-6).mean() > 0.99  # a ray that grazes a cell's corner may see either neighbour


def test_headings_round_to_whole_columns_nearest_the_wish() -> None:
    belief = BeliefMap(NAMES, 0.02)
    paper = LatentField(random_encoder(FootprintGeometry()), belief, capacity=2)
    assert np.isclose(np.rad2deg(paper.heading_step), 4.0)
    column = CLOSED.field_of_view / 4
    for wish, got in ((0.01, column), (column * 1.9, 2 * column)):
        assert np.isclose(LatentField(random_encoder(CLOSED), belief, heading_step=wish).heading_step, got)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_headings_a_turn_apart_are_the_same(geometry: FootprintGeometry) -> None:
    belief = BeliefMap(NAMES, 0.02)
    look(belief, CLOSED, np.array([0.5, 0.5]), 3.0)
    field = LatentField(random_encoder(geometry), belief)
    headings = np.array([-np.pi, -2.0, 0.0, 1.0, 3.1])
    positions = np.full((5, 2), 0.5)
    np.testing.assert_array_equal(
        field.latents(positions, headings + 1e-9), field.latents(positions, headings + 1e-9 + 4 * np.pi)
    )


def test_poses_off_the_map_see_what_is_unknown() -> None:
    belief = BeliefMap(NAMES, 0.02)
    look(belief, CLOSED, np.array([0.5, 0.5]), 0.0)
    field = LatentField(random_encoder(CLOSED), belief)
    blank = field.encoder.encode(np.full((1, 32, 16), 3, np.uint8))[0]
    far = np.array([[-50.0, 3.0], [1e6, -1e6], [0.5, 40.0]])
    np.testing.assert_array_equal(field.latents(far, np.zeros(3)), np.tile(blank, (3, 1)))
    edge = np.array([[1.0, 0.5], [-0.3, 0.5], [0.4, 1.3]]), np.array([0.0, 0.1, -1.5])
    np.testing.assert_array_equal(field.latents(*edge), reference(field, *edge))


def test_memory_is_bounded_and_forgetting_changes_nothing() -> None:
    belief = BeliefMap(NAMES, 0.02)
    small = LatentField(random_encoder(NARROW), belief, capacity=5)
    large = LatentField(random_encoder(NARROW), belief, capacity=400)
    for n in range(4):
        look(belief, CLOSED, np.array([0.5, 0.4 + 0.05 * n]), 0.3 * n)
        asked = poses(n, 80)
        for _ in range(2):  # the second time is new to the small one only
            np.testing.assert_array_equal(small.latents(*asked), large.latents(*asked))
    assert small.renewed > 1.5 * large.renewed


def test_threads_change_nothing() -> None:
    belief = BeliefMap(NAMES, 0.02)
    one = LatentField(random_encoder(OPEN), belief)
    two = LatentField(random_encoder(OPEN), belief, threads=2)
    for n in range(3):
        look(belief, OPEN, np.array([0.5, 0.5]), 0.5 * n)
        asked = poses(n, 200)
        np.testing.assert_array_equal(one.latents(*asked), two.latents(*asked))


def test_single_precision_poses_are_welcome() -> None:
    belief = BeliefMap(NAMES, 0.02)
    look(belief, CLOSED, np.array([0.5, 0.5]), 0.0)
    field = LatentField(random_encoder(CLOSED), belief)
    positions, headings = (array.astype(np.float32) for array in poses(4, 100))
    np.testing.assert_array_equal(field.latents(positions, headings), reference(field, positions, headings))


def test_refuses_what_it_cannot_serve() -> None:
    belief = BeliefMap(NAMES, 0.02)
    encoder = random_encoder(CLOSED)
    with pytest.raises(InputError, match="the belief map's labels are"):
        LatentField(encoder, BeliefMap(NAMES[::-1], 0.02))
    with pytest.raises(InputError, match=r"position_step=0\.0 m"):
        LatentField(encoder, belief, position_step=0.0)
    with pytest.raises(InputError, match="capacity=1, threads=1; allowed are capacity >= 2"):
        LatentField(encoder, belief, capacity=1)
    with pytest.raises(InputError, match="8 angles; allowed in a latent field are at least 16"):
        LatentField(random_encoder(FootprintGeometry(angles=8, ranges=8)), belief)
    field = LatentField(encoder, belief)
    with pytest.raises(InputError, match="positions has 1 values that are not finite"):
        field.latents(np.array([[np.inf, 0.0]]), np.zeros(1))
    with pytest.raises(InputError, match=r"headings has shape \(3,\); allowed is \(2\)"):
        field.latents(np.zeros((2, 2)), np.zeros(3))
