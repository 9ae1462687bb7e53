"""The camera world: one observation, Project() alone, and a whole control step with the paper's samples."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np

from benchmarks.timing import Comparison, compare
from ocular.evaluation.episodes import run_episode
from ocular.experiments.camera import CAMERA, CameraSettings
from ocular.experiments.planning import route_of
from ocular.experiments.workshop import Workshop
from ocular.footprint import Projector, project_reference
from ocular.planning.mppi import MPPI
from ocular.planning.scale_field import scale_field
from ocular.worlds.junction import JunctionWorld, open_junction

WORK = Path("out/work")
POSITIONS = np.array([[30.5, 30.0], [33.0, 46.8], [30.1, 22.0], [33.0, 8.0], [26.0, 29.0]])
HEADINGS = np.array([-1.6, -1.2, 2.3, 0.9, 0.1])


def observe_camera(report: Callable[[str, str, float, int], None]) -> Comparison:
    """Images and footprint from one pose, against MuJoCo's own ray casting, which needs no GL either."""
    world = open_junction("icyMain")
    model, data = world.scene.mujoco, mujoco.MjData(world.scene.mujoco)
    mujoco.mj_forward(model, data)
    rays = world.camera.rays.reshape(-1, 3)
    lengths = np.linalg.norm(rays, axis=1)
    geom, away, normals = np.empty(len(rays), np.int32), np.empty(len(rays)), np.empty(3 * len(rays))

    def peer() -> None:
        for position, looking in zip(POSITIONS, HEADINGS, strict=True):
            cosine, sine = np.cos(looking), np.sin(looking)
            turn = np.array([[cosine, sine, 0], [-sine, cosine, 0], [0, 0, 1]])
            directions = (rays @ turn / lengths[:, None]).ravel()
            origin = np.array([*position, world.camera.height])
            cutoff = world.geometry.max_range
            mujoco.mj_multiRay(
                *(model, data, origin, directions, None, True, -1, geom, away, normals, len(rays), cutoff)
            )
            depth = np.where(geom < 0, np.inf, away / lengths).astype(np.float32)
            size = world.camera.intrinsics.height, world.camera.intrinsics.width
            kinds = world.scene.class_of_geom[geom]
            world.projector(depth.reshape(size), kinds.reshape(size), world.scene.classes)

    found = compare(
        "observe_camera",
        lambda: world.observe(POSITIONS, HEADINGS),
        peer,
        "MuJoCo's mj_multiRay",
        unit="ms",
        per=1e-3 * len(POSITIONS),
        rounds=15,
    )
    report("observe_camera_ms", "<=15", found.ours, 15 * len(POSITIONS))
    return found


def project(report: Callable[[str, str, float, int], None]) -> Comparison:
    """Project() alone, compiled, against NumPy that works out each pixel's geometry for every image."""
    found = _project("project", "NumPy", lambda projector: replace(projector))
    report("project_times_faster_than_numpy", ">=20", found.ratio, 50 * len(POSITIONS))
    return found


def project_tables_kept() -> Comparison:
    """The same against NumPy that keeps the tables of the geometry, as we do."""
    return _project("project_tables_kept", "NumPy, tables kept", lambda projector: projector)


def _project(name: str, peer_name: str, prepared: Callable[[Projector], Projector]) -> Comparison:
    world = open_junction("icyMain")
    images = [world.eye.take(*pose) for pose in zip(POSITIONS, HEADINGS.tolist(), strict=True)]

    def all_of(function: Callable[..., object]) -> None:
        for image in images:
            function(image.depth, image.semantics, image.classes)

    return compare(
        name,
        lambda: all_of(world.projector),
        lambda: all_of(lambda *image: project_reference(prepared(world.projector), *image)),
        peer_name,
        unit="ms",
        per=1e-3 * len(images),
        rounds=50,
    )


class Observed(JunctionWorld):
    """A world that times its observations."""

    spent: list[float]

    def observe(self, positions, headings, *, threads=1):
        """As the world does."""
        start = time.perf_counter()
        cells = super().observe(positions, headings, threads=threads)
        self.spent.append(1e3 * (time.perf_counter() - start))
        return cells


def camera_step(report: Callable[[str, str, float, int], None]) -> Comparison:
    """A whole drive of icySide by OCULAR, images and map update included, against the robot's time step."""
    settings = CameraSettings()
    workshop = Workshop.under(WORK, settings)
    for name in settings.site.maps:
        workshop.collect(name)
    calibration = workshop.calibration("icySide", "ocular")
    plain = open_junction("icySide")
    truth = Observed(plain.map, scene=plain.scene)
    object.__setattr__(truth, "spent", [])
    result = run_episode(
        truth,
        route_of(truth.map, CAMERA.reach),
        MPPI(calibration.model, calibration.state_cov, CAMERA.planner),
        CAMERA.belief(truth),
        lambda belief: scale_field(calibration, CAMERA.planner.alpha, belief, threads=2, **CAMERA.rounding),
        0,
    )
    warm = result.step_ms[1:] + np.array(truth.spent[1:])  # the first step has ten more updates
    report("camera_step_ms_p50", "<=200", float(np.median(warm)), len(warm))
    report("camera_step_ms_p99", "<=200", float(np.quantile(warm, 0.99)), len(warm))
    return Comparison("camera_step", float(np.median(warm)), 1e3 * truth.dt, "the robot's time step", "ms")
