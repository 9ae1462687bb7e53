"""Episodes: their outcomes, what they record, and that a seed decides everything."""

import numpy as np
import pytest
from tests.support.obstacles import Constant

from ocular.errors import InputError
from ocular.evaluation.episodes import Route, run_episode
from ocular.footprint import LabelGrid
from ocular.planning.belief import BeliefMap
from ocular.planning.mppi import MPPI, PlannerSettings
from ocular.records import FootprintGeometry
from ocular.worlds.map_file import PLANAR_LABELS, PlanarMap
from ocular.worlds.planar import PlanarWorld

OCCUPIED, NOMINAL, LOW_FRICTION = (PLANAR_LABELS.index(n) for n in ("OCCUPIED", "NOMINAL", "LOW_FRICTION"))
SETTINGS = PlannerSettings(samples=128, warmup=2)


def hall(*, ice=False, **options) -> PlanarWorld:
    """A free square of 2 m x 1 m behind walls, its right half icy where wanted."""
    labels = np.full((30, 50), OCCUPIED, np.uint8)
    labels[5:25, 5:45] = NOMINAL
    if ice:
        labels[5:25, 25:45] = LOW_FRICTION
    grid = LabelGrid(labels, PLANAR_LABELS, 0.05, (0.0, 0.0), "UNKNOWN")
    geometry = FootprintGeometry(angles=60, ranges=30)
    return PlanarWorld(PlanarMap("hall", grid, None, ()), geometry=geometry, **options)


def drive(world, subgoals, *, seed=0, xi=1.0, max_steps=200, start=(0.5, 0.75), make_field=None, **who):
    route = Route(np.array(start), np.array(subgoals, float))
    planner = MPPI(world.nominal, world.state_cov, SETTINGS)
    belief = BeliefMap(PLANAR_LABELS, 0.02)
    field = make_field or (lambda _: Constant(xi))
    return run_episode(world, route, planner, belief, field, seed, max_steps=max_steps, **who)


def test_reaching_all_subgoals_is_success():
    result = drive(hall(), [(1.2, 0.75), (1.8, 0.75)])
    assert result.outcome == "success"
    assert result.subgoals == 2
    assert np.linalg.norm(result.states[-1, :2] - (1.8, 0.75)) <= 0.3
    assert result.steps == len(result.actions) == len(result.step_ms) == len(result.states) - 1
    assert (abs(result.actions) <= 0.9).all()
    assert (result.step_ms > 0).all()


def test_hitting_a_wall_is_a_collision():
    """A planner that sees no danger in momentum, on ice that the model knows nothing of."""
    world = hall(ice=True, slip=6.0)
    results = [drive(world, [(2.1, 0.75), (0.4, 0.75)], seed=seed, max_steps=300) for seed in range(3)]
    assert "collision" in [r.outcome for r in results]
    for result in results:
        path = world.path_is_free(result.states[:-1, :2], result.states[1:, :2])
        assert path[:-1].all()
        assert path[-1] == (result.outcome != "collision")


def test_an_unreachable_subgoal_is_a_timeout():
    result = drive(hall(), [(2.0, 3.0)], xi=1.5, max_steps=60)
    assert (result.outcome, result.steps, result.subgoals) == ("timeout", 60, 0)


def test_regions_without_limit_keep_a_robot_where_it_is():
    result = drive(hall(), [(1.8, 0.75)], xi=np.inf, max_steps=60)
    assert result.outcome == "timeout"
    assert result.all_collide.all()
    assert not result.missed.any()
    assert np.linalg.norm(result.states[-1, :2] - result.states[0, :2]) < 0.2


def test_a_start_inside_an_obstacle_is_refused():
    with pytest.raises(InputError, match=r"the start \[0.1, 0.75\] m is not free"):
        drive(hall(), [(1.8, 0.75)], start=(0.1, 0.75))


def test_a_route_needs_a_subgoal():
    with pytest.raises(InputError, match="0 subgoals"):
        Route(np.zeros(2), np.zeros((0, 2)))


def test_the_seed_decides_the_drive():
    first, again, other = (drive(hall(), [(1.8, 0.75)], seed=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.states, again.states)
    np.testing.assert_array_equal(first.actions, again.actions)
    assert not np.array_equal(first.states, other.states)


def test_misses_are_split_by_the_ground_and_honest():
    """On good ground the model is right, so a tenth of the next states leave; on strong ice nearly all do."""
    results = [drive(hall(ice=True, slip=2.0), [(1.8, 0.75), (0.5, 0.75)], seed=seed) for seed in range(4)]
    good = np.sum([r.misses(slippery=False) for r in results], axis=0)
    icy = np.sum([r.misses(slippery=True) for r in results], axis=0)
    assert good.sum() + icy.sum() - good[0] - icy[0] == sum(r.steps for r in results)
    assert 0.03 < good[0] / good[1] < 0.2
    assert icy[0] / icy[1] > 0.5


def test_a_field_that_observes_is_shown_each_real_footprint():
    world, shown = hall(), []

    class Observing(Constant):
        def refresh(self, cells, position, heading):
            shown.append((cells, position, heading))

    result = drive(world, [(1.0, 0.75)], make_field=lambda _: Observing(1.0))
    assert len(shown) == result.steps
    for (cells, position, heading), wanted in zip(shown, result.headings, strict=True):
        assert heading == wanted
        np.testing.assert_array_equal(cells, world.observe(position[None], np.array([heading]))[0])


def test_planning_without_uncertainty_needs_no_field():
    world = hall()
    route = Route(np.array([0.5, 0.75]), np.array([[1.2, 0.75]]))
    planner = MPPI(world.nominal, world.state_cov, SETTINGS)
    assert run_episode(world, route, planner, BeliefMap(PLANAR_LABELS, 0.02), None, 0).outcome == "success"


def test_a_watcher_sees_every_step_and_changes_none():
    moments = []
    watched, alone = (drive(hall(), [(1.0, 0.75)], xi=2.5, watch=w) for w in (moments.append, None))
    np.testing.assert_array_equal(watched.states, alone.states)
    assert [moment.step for moment in moments] == list(range(watched.steps))
    for moment, state, action in zip(moments, watched.states, watched.actions, strict=False):
        np.testing.assert_array_equal(moment.truth, state)
        np.testing.assert_array_equal(moment.plan.action, action)
    np.testing.assert_allclose(watched.scales, 2.5, rtol=1e-5)
    assert [moment.scale for moment in moments] == watched.scales.tolist()


def test_a_learner_is_told_what_came_of_each_step_and_changes_none():
    steps, moments = [], []
    told, alone = (drive(hall(), [(1.0, 0.75)], xi=2.5, **who) for who in ({"learn": steps.append}, {}))
    again = drive(hall(), [(1.0, 0.75)], xi=2.5, watch=moments.append)
    assert told.states.tobytes() == alone.states.tobytes() == again.states.tobytes()
    np.testing.assert_array_equal([step.next_state for step in steps], told.states[1:])
    np.testing.assert_array_equal([step.action for step in steps], told.actions)
    for step, moment in zip(steps, moments, strict=True):
        np.testing.assert_array_equal(step.state, moment.estimate)
        np.testing.assert_array_equal(step.cells, moment.cells)
        assert step.heading == moment.heading


def test_a_drive_without_uncertainty_has_no_scale():
    world = hall()
    route = Route(np.array([0.5, 0.75]), np.array([[1.2, 0.75]]))
    planner = MPPI(world.nominal, world.state_cov, SETTINGS)
    result = run_episode(world, route, planner, BeliefMap(PLANAR_LABELS, 0.02), None, 0, max_steps=5)
    assert np.isnan(result.scales).all()
