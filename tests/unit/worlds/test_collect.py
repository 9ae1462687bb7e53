from dataclasses import replace

import numpy as np
import pytest

from ocular.errors import InputError
from ocular.footprint import scan_reference
from ocular.records import FootprintGeometry
from ocular.worlds import (
    CALIBRATION_GRID,
    TEST_GRID,
    GridSpec,
    PlanarWorld,
    collect_transitions,
    grid_cases,
    held_out_cases,
    load_map,
)

COARSE = FootprintGeometry(angles=12, ranges=8)  # counts do not depend on it, and it is quick


def world(name):
    return PlanarWorld(load_map(name), geometry=COARSE)


@pytest.mark.parametrize(
    ("name", "transitions", "poses", "cases"),
    [
        ("S", 79_913, 86 * 52, 4_096),
        ("L", 71_262, None, 2_816),
        ("H", 92_079, None, 4_096),
        ("U", 146_943, None, 6_656),
    ],
)
def test_the_grids_have_the_paper_s_sizes(name, transitions, poses, cases):
    got = collect_transitions(world(name), CALIBRATION_GRID, np.random.default_rng(0))
    assert len(got) == pytest.approx(transitions, rel=0.003)
    assert got.environments == (name,)
    if poses is not None:
        assert len(got.inputs.footprints) == poses
    inputs, ood = held_out_cases(world(name), TEST_GRID)
    assert len(inputs) == len(ood) == cases
    assert 0.4 < ood.mean() < 0.8


def test_a_case_is_every_combination_once():
    states, actions = grid_cases(world("S"), GridSpec(3, 2, 2))
    rows = np.hstack([states, actions])
    assert len(np.unique(rows, axis=0)) == len(rows) == 9 * 4 * 4
    assert np.unique(states[:, 0]) == pytest.approx([0.0, 2.1, 4.2])
    assert np.unique(states[:, 3]).tolist() == [-1.8, 1.8]
    assert np.unique(actions).tolist() == [-0.9, 0.9]


def test_kept_transitions_start_and_end_free_and_see_what_their_pose_sees():
    small = world("H")
    got = collect_transitions(small, GridSpec(9, 5, 2), np.random.default_rng(3))
    assert small.is_free(got.inputs.states[:, :2]).all()
    assert small.is_free(got.next_states[:, :2]).all()
    rows = np.random.default_rng(0).choice(len(got), 200)
    inputs = got.inputs.take(rows)
    expected = scan_reference(small.map.grid, COARSE, inputs.states[:, :2], inputs.headings)
    seen = inputs.footprints.cells[inputs.footprint_index]
    # The shared pose is rounded in the twelfth digit: a sample on an edge of a cell may change sides.
    assert np.mean(seen != expected) < 1e-3


@pytest.mark.parametrize("velocities", [9, 16])  # with zero among them, and with many collinear ones
def test_one_pose_has_one_footprint(velocities):
    inputs, _ = held_out_cases(world("S"), GridSpec(5, velocities, 2))
    poses = np.column_stack([inputs.states[:, :2], np.cos(inputs.headings), np.sin(inputs.headings)])
    distinct = np.unique(np.round(poses, 6) + 0.0, axis=0)
    assert len(np.unique(inputs.footprint_index)) == len(distinct)


def test_the_same_seed_gives_the_same_bytes_whatever_the_threads():
    spec = GridSpec(6, 4, 2)
    one, two = (
        collect_transitions(world("U"), spec, np.random.default_rng(5), threads=threads) for threads in (1, 2)
    )
    assert one.next_states.tobytes() == two.next_states.tobytes()
    assert one.inputs.footprints.cells.tobytes() == two.inputs.footprints.cells.tobytes()
    other = collect_transitions(world("U"), spec, np.random.default_rng(6))
    assert other.next_states.tobytes() != one.next_states.tobytes()


def test_cases_are_told_apart_by_the_ground_they_start_on():
    small = world("L")
    inputs, ood = held_out_cases(small)
    x, y = inputs.states[:, 0], inputs.states[:, 1]
    assert np.array_equal(ood, (x >= 1.6) & (y >= 1.6))
    no_ice = replace(small, slip=1.0)
    assert len(held_out_cases(no_ice)[0]) >= len(inputs)  # without slip fewer run into walls


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"positions": 1}, "positions=1.*allowed are at least 2"),
        ({"max_speed": np.nan}, "max_speed=nan.*allowed are positive"),
        ({"max_action": 0.0}, "max_action=0.0.*allowed are positive"),
    ],
)
def test_a_bad_grid_says_what_is_allowed(bad, message):
    with pytest.raises(InputError, match=message):
        GridSpec(**bad)
