import pickle
import subprocess
import sys

import numpy as np
import pytest

from ocular.errors import InputError
from ocular.footprint import project_reference
from ocular.records import OCCUPIED, UNKNOWN
from ocular.worlds.collect import GridSpec, collect_transitions, held_out_cases
from ocular.worlds.junction import ROADS, open_junction
from ocular.worlds.planar import heading


@pytest.fixture(scope="module")
def worlds():
    return {name: open_junction(name) for name in ROADS}


def free_poses(world, rng, count):
    poses = []
    while len(poses) < count:
        position = rng.uniform((0, 0), world.map.size)
        if world.is_free(position):
            poses.append((position, rng.uniform(-np.pi, np.pi)))
    return poses


def test_ground_and_routes_are_the_papers(worlds):
    for world in worlds.values():
        assert world.map.size == (40.0, 56.0)
        assert world.is_free(np.array([world.map.start, *world.map.subgoals])).all()
        assert not world.is_free(np.array([[28.0, 10.0], [38.0, 10.0], [20.0, 26.0], [20.0, 32.0]])).any()
    points = np.array([[33.0, 44.0], [33.0, 46.0], [33.0, 20.0], [30.0, 20.0], [26.0, 28.0], [10.0, 30.0]])
    ood = {name: world.region(points).tolist() for name, world in worlds.items()}
    assert ood["icyMain"] == [True, False, False, False, False, False]
    assert ood["icyMiddle"] == [False, False, True, True, True, False]
    assert ood["icySide"] == [False, False, False, False, True, True]


def test_dynamics_are_those_of_the_camera_world(worlds):
    world = worlds["icySide"]
    assert world.dt == 0.2
    assert np.array_equal(world.state_cov, 1e-3 * np.eye(4))
    B = world.nominal.B
    assert np.allclose(world.nominal.Q, 0.1 * B @ B.T)
    assert np.linalg.matrix_rank(world.nominal.Q) == 2


def seen_from_above(world, position, looking):
    """The footprint by brute force: a ray from the sky onto every cell, one from the camera to it."""
    geometry, scene = world.geometry, world.scene
    bearings = looking + geometry.bearings[:, None]
    ground = np.stack(
        [
            position[0] + geometry.distances * np.cos(bearings),
            position[1] + geometry.distances * np.sin(bearings),
            np.zeros((geometry.angles, geometry.ranges)),
        ],
        axis=-1,
    ).reshape(-1, 3)
    down = np.broadcast_to([0.0, 0.0, -1.0], ground.shape)
    kinds = scene.cast((ground - 50 * down).astype(np.float32), down.astype(np.float32))["geom"]
    size = geometry.angles, geometry.ranges
    cells = world.table.numbers(scene.classes)[scene.class_of_geom[kinds]].reshape(size)
    eye = np.broadcast_to([*position, world.camera.height], ground.shape)
    sight = scene.cast(eye.astype(np.float32), (ground - eye).astype(np.float32))["away"].reshape(size)
    near = np.hypot(geometry.distances, world.camera.height) <= geometry.max_range
    occupied, unknown = (world.map.grid.index(name) for name in (OCCUPIED, UNKNOWN))
    for line, seen in zip(cells, (sight > 0.97) & near, strict=True):
        end = int(np.argmax(line == occupied)) if (line == occupied).any() else len(line)
        line[:end][~seen[:end]] = unknown
        line[end + 1 :] = unknown
        if end < len(line) and not near[end]:
            line[end] = unknown
    return cells


def test_project_agrees_with_brute_force_on_98_percent_of_visible_cells(worlds):
    rng = np.random.default_rng(0)
    agreeing = visible = 0
    for world in worlds.values():
        unknown = world.map.grid.index(UNKNOWN)
        for position, looking in free_poses(world, rng, 167):
            cells = world.observe(position[None], np.array([looking]))[0]
            truth = seen_from_above(world, position, looking)
            either = (cells != unknown) | (truth != unknown)
            agreeing += np.count_nonzero((cells == truth)[either])
            visible += np.count_nonzero(either)
    assert agreeing / visible >= 0.98


def test_the_compiled_projection_is_the_reference_on_real_images(worlds):
    rng = np.random.default_rng(1)
    for world in worlds.values():
        for position, looking in free_poses(world, rng, 20):
            images = world.eye.take(position, looking)
            arguments = images.depth, images.semantics, images.classes
            np.testing.assert_array_equal(
                world.projector(*arguments), project_reference(world.projector, *arguments)
            )


def test_the_ground_under_the_robot_is_seen(worlds):
    """Else no encoder could know which dynamics hold."""
    rng = np.random.default_rng(2)
    for world in worlds.values():
        for position, looking in free_poses(world, rng, 60):
            ahead = position + world.geometry.distances[0] * np.array([np.cos(looking), np.sin(looking)])
            label = world.map.grid.at(ahead)
            cells = world.observe(position[None], np.array([looking]))[0]
            nearest = cells[world.geometry.angles // 2, 0]
            clear = (world.map.grid.at(ahead + 0.15 * rng.normal(size=(20, 2))) == label).all()
            assert nearest == label or not clear


def test_depth_ends_with_the_range_and_stands_for_true_points(worlds):
    world = worlds["icyMain"]
    images = world.eye.take(np.array([30.5, 30.0]), -np.pi / 2)
    along_rays = images.depth * np.linalg.norm(world.camera.rays, axis=-1)
    assert along_rays[np.isfinite(along_rays)].max() <= 12.0 + 1e-4
    dumpster = images.semantics == images.classes.index("dumpster")
    ahead = (images.depth * world.camera.rays[..., 0])[dumpster & np.isfinite(images.depth)]
    assert ahead.min() == pytest.approx(30.0 - 22.4, abs=1e-3)


def test_cases_that_look_over_the_edge_are_left_out(worlds):
    world = worlds["icyMain"]
    positions = np.tile([[33.0, 6.0]], (2, 1))
    assert world.knows_view(positions, np.array([np.pi / 2, -np.pi / 2])).tolist() == [True, False]
    cases, ood = held_out_cases(world, GridSpec(positions=6, velocities=2, actions=2))
    looking = heading(cases.states, np.zeros(len(cases)))
    ahead = cases.states[:, :2] + 12.0 * np.stack([np.cos(looking), np.sin(looking)], axis=1)
    assert len(cases) == len(ood) > 0
    assert ((ahead >= 0) & (ahead <= (40.0, 56.0))).all()
    logged = collect_transitions(world, GridSpec(6, 2, 2), np.random.default_rng(0)).inputs
    assert world.knows_view(logged.states[:, :2], logged.headings).all()


def test_bad_poses_are_refused(worlds):
    world = worlds["icyMain"]
    with pytest.raises(InputError, match="positions has shape"):
        world.observe(np.zeros((1, 3)), np.zeros(1))
    with pytest.raises(InputError, match="not finite"):
        world.observe(np.full((1, 2), np.nan), np.zeros(1))


def test_a_world_travels_to_another_process_and_sees_the_same(worlds):
    world = worlds["icySide"]
    pose = np.array([[5.0, 30.0]]), np.array([0.2])
    seen = world.observe(*pose)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(world)).observe(*pose), seen)


def test_importing_the_package_loads_neither_simulator_nor_ray_caster():
    code = (
        "import sys, ocular, ocular.worlds, ocular.worlds.junction, ocular.cli; "
        "assert not {'mujoco', 'embreex', 'OpenGL', 'glfw'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
