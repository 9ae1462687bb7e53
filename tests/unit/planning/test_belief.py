import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import distance_transform_edt

from ocular.errors import InputError
from ocular.planning.belief import TILE, BeliefMap
from ocular.records import FootprintGeometry

NAMES = ("NOMINAL", "LOW_FRICTION", "OCCUPIED", "UNKNOWN")
OCCUPIED, UNKNOWN = 2, 3
GEOMETRY = FootprintGeometry(angles=16, ranges=8, max_range=0.3)


def looks(seed: int, count: int, spread: float = 0.4) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Random footprints, mostly of one label so that votes meet, from random poses."""
    rng = np.random.default_rng(seed)
    return [
        (
            rng.choice(4, size=(16, 8), p=[0.4, 0.2, 0.2, 0.2]).astype(np.uint8),
            rng.uniform(-spread, spread, 2),
            rng.uniform(-np.pi, np.pi),
        )
        for _ in range(count)
    ]


def counted(
    seen: list[tuple[np.ndarray, np.ndarray, float]], resolution: float
) -> dict[tuple[int, int], list[int]]:
    """Votes by brute force: cell (column, row) counted from the point (0, 0) -> votes per label."""
    votes: dict[tuple[int, int], list[int]] = {}
    for cells, position, heading in seen:
        for a, bearing in enumerate(GEOMETRY.bearings):
            for k, distance in enumerate(GEOMETRY.distances):
                if cells[a, k] != UNKNOWN:
                    point = position + distance * np.array(
                        [np.cos(heading + bearing), np.sin(heading + bearing)]
                    )
                    column, row = np.floor(point / resolution).astype(int)
                    votes.setdefault((column, row), [0] * 4)[cells[a, k]] += 1
    return votes


def majority(votes: list[int]) -> int:
    """The label with most votes; at a tie OCCUPIED, else the first."""
    best = max(votes)
    return OCCUPIED if votes[OCCUPIED] == best else votes.index(best)


def labels_at(belief: BeliefMap, column: int, row: int) -> int:
    point = (np.array([column, row]) + 0.5) * belief.resolution
    return int(belief.grid().at(point))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 12), spread=st.floats(0.01, 1.0))
def test_labels_are_the_majority_of_a_brute_force_count(seed: int, count: int, spread: float) -> None:
    seen = looks(seed, count, spread)
    belief = BeliefMap(NAMES, resolution=0.05)
    for cells, position, heading in seen:
        belief.update(cells, GEOMETRY, position, heading)
    votes = counted(seen, 0.05)
    assert votes
    for (column, row), per_label in votes.items():
        assert labels_at(belief, column, row) == majority(per_label)
    assert np.count_nonzero(belief.labels != UNKNOWN) == len(votes)


def test_order_of_votes_does_not_matter() -> None:
    seen = looks(3, 10, 0.2)
    extent = (-1.0, -1.0, 1.0, 1.0)
    forwards, backwards = BeliefMap(NAMES, 0.05, extent=extent), BeliefMap(NAMES, 0.05, extent=extent)
    for cells, position, heading in seen:
        forwards.update(cells, GEOMETRY, position, heading)
    for cells, position, heading in reversed(seen):
        backwards.update(cells, GEOMETRY, position, heading)
    np.testing.assert_array_equal(forwards.labels, backwards.labels)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    cap=st.sampled_from([0.05, 0.1, 0.35, 1.0, 3.0]),
    count=st.integers(1, 8),
)
def test_distance_is_that_of_the_whole_map_after_every_update(seed: int, cap: float, count: int) -> None:
    belief = BeliefMap(NAMES, resolution=0.05, distance_cap=cap)
    for cells, position, heading in looks(seed, count, 0.8):
        belief.update(cells, GEOMETRY, position, heading)
        occupied = belief.labels == OCCUPIED
        expected = np.full(belief.labels.shape, cap)
        if occupied.any():
            expected = np.minimum(distance_transform_edt(~occupied) * 0.05, cap)
        np.testing.assert_allclose(belief.obstacle_distance, expected, atol=1e-6)


def test_distance_grows_again_where_an_obstacle_is_outvoted() -> None:
    belief = BeliefMap(NAMES, resolution=0.05)
    wall = np.full((16, 8), UNKNOWN, np.uint8)
    wall[:, 4] = OCCUPIED
    belief.update(wall, GEOMETRY, np.zeros(2), 0.0)
    assert belief.obstacle_distance.min() == 0
    for _ in range(2):
        belief.update(np.zeros((16, 8), np.uint8), GEOMETRY, np.zeros(2), 0.0)
    np.testing.assert_array_equal(belief.obstacle_distance, np.float32(1.0))


@pytest.mark.parametrize("direction", [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1)])
def test_growing_keeps_what_was_known(direction: tuple[int, int]) -> None:
    roomy = BeliefMap(NAMES, 0.05, extent=(-5.0, -5.0, 5.0, 5.0))
    growing = BeliefMap(NAMES, 0.05)
    for n, (cells, _, heading) in enumerate(looks(5, 12)):
        position = np.array(direction) * 0.35 * n
        for belief in (roomy, growing):
            belief.update(cells, GEOMETRY, position, heading)
    offset = np.round((np.array(growing.origin) - roomy.origin) / 0.05).astype(int)
    rows, columns = growing.labels.shape
    window = np.s_[offset[1] : offset[1] + rows, offset[0] : offset[0] + columns]
    np.testing.assert_array_equal(growing.labels, roomy.labels[window])
    np.testing.assert_array_equal(growing.obstacle_distance, roomy.obstacle_distance[window])
    tiles = np.s_[offset[1] // TILE :, offset[0] // TILE :]
    tile_rows, tile_columns = growing.tile_version.shape
    np.testing.assert_array_equal(growing.tile_version, roomy.tile_version[tiles][:tile_rows, :tile_columns])
    assert np.count_nonzero(growing.labels != UNKNOWN) == np.count_nonzero(roomy.labels != UNKNOWN)


def test_growing_is_rare() -> None:
    belief = BeliefMap(NAMES, 0.05)
    shapes = set()
    for n in range(200):
        belief.update(np.zeros((16, 8), np.uint8), GEOMETRY, np.array([0.1 * n, 0.0]), 0.0)
        shapes.add(belief.labels.shape)
    assert len(shapes) < 12


def test_tiles_remember_when_a_label_last_changed() -> None:
    belief = BeliefMap(NAMES, 0.05, extent=(-1.0, -1.0, 1.0, 1.0))
    for cells, position, heading in looks(7, 15, 0.6):
        before, versions = belief.labels.copy(), belief.tile_version.copy()
        belief.update(cells, GEOMETRY, position, heading)
        changed = (belief.labels != before).reshape(
            belief.labels.shape[0] // TILE, TILE, belief.labels.shape[1] // TILE, TILE
        )
        tiles = changed.any(axis=(1, 3))
        assert (belief.tile_version[tiles] == belief.version).all()
        untouched = belief.tile_version == versions
        assert (untouched | (belief.tile_version == belief.version)).all()
        assert not tiles[untouched].any()


def test_grid_shares_memory_and_names_the_outside() -> None:
    belief = BeliefMap(NAMES, 0.05, extent=(0.0, 0.0, 1.0, 1.0))
    grid = belief.grid()
    assert np.shares_memory(grid.labels, belief.labels)
    belief.update(np.zeros((16, 8), np.uint8), GEOMETRY, np.array([0.5, 0.5]), 0.0)
    assert grid.at(np.array([0.6, 0.5])) == 0
    assert grid.at(np.array([70.0, 0.5])) == UNKNOWN


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"resolution": 0.0}, "map resolution is 0.0 m; allowed is a positive number"),
        ({"resolution": 0.1, "distance_cap": 0.01}, "distance_cap is 0.01 m; allowed is 0.1 m"),
        ({"extent": (1.0, 0.0, 0.0, 1.0)}, "allowed is .x0, y0, x1, y1. with x0 < x1"),
        ({"names": ("NOMINAL",)}, "255 distinct names"),
    ],
)
def test_refuses_settings_that_make_no_map(settings_: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        BeliefMap(**{"names": NAMES, **settings_})


def test_refuses_footprints_that_do_not_fit() -> None:
    belief = BeliefMap(NAMES, 0.05)
    with pytest.raises(InputError, match=r"footprint cells has shape \(3, 3\); allowed is \(16, 8\)"):
        belief.update(np.zeros((3, 3), np.uint8), GEOMETRY, np.zeros(2), 0.0)
    with pytest.raises(InputError, match="up to 9; allowed are uint8 up to 3, the last of"):
        belief.update(np.full((16, 8), 9, np.uint8), GEOMETRY, np.zeros(2), 0.0)
    with pytest.raises(InputError, match="pose has 1 values that are not finite"):
        belief.update(np.zeros((16, 8), np.uint8), GEOMETRY, np.array([np.nan, 0.0]), 0.0)
    assert belief.version == 0


def test_a_map_that_forgot_is_as_good_as_new() -> None:
    old, new = (BeliefMap(NAMES, 0.02, extent=(-1.0, -1.0, 1.0, 1.0)) for _ in range(2))
    for cells, position, heading in looks(3, 4):
        old.update(cells, GEOMETRY, position, heading)
    old.forget()
    assert (old.labels == UNKNOWN).all()
    assert (old.tile_version == old.version).all()
    for cells, position, heading in looks(4, 4):
        old.update(cells, GEOMETRY, position, heading)
        new.update(cells, GEOMETRY, position, heading)
        assert np.array_equal(old.labels, new.labels)
        assert np.array_equal(old.obstacle_distance, new.obstacle_distance)


def test_a_count_of_votes_that_is_full_does_not_begin_again_at_zero() -> None:
    belief = BeliefMap(NAMES, 0.05)
    seen = np.full((16, 8), OCCUPIED, np.uint8)
    belief.update(seen, GEOMETRY, np.zeros(2), 0.0)
    belief._votes[belief._votes > 0] = 2**32 - 2
    belief._votes[:, :, 0] = 2**31
    for _ in range(3):
        belief.update(seen, GEOMETRY, np.zeros(2), 0.0)
        belief.update(np.full_like(seen, 0), GEOMETRY, np.zeros(2), 0.0)
    assert (belief.labels[belief._votes[:, :, OCCUPIED] > 0] == OCCUPIED).all()


def test_a_leap_too_far_for_any_map_is_refused_and_leaves_the_map_as_it_was():
    belief = BeliefMap(NAMES, 0.05)
    cells = np.zeros((16, 8), np.uint8)
    belief.update(cells, GEOMETRY, np.zeros(2), 0.0)
    labels, origin = belief.labels.copy(), belief.origin
    with pytest.raises(InputError, match=r"a map of .* cells of 0.05 m; allowed are"):
        belief.update(cells, GEOMETRY, np.array([9e5, -9e5]), 0.0)
    assert belief.origin == origin
    np.testing.assert_array_equal(belief.labels, labels)
