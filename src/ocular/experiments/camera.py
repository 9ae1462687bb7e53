"""The camera world of the paper's section 5.2, as the experiments see it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ocular.experiments.workshop import CalibrationSettings, Site
from ocular.planning.belief import BeliefMap
from ocular.planning.cost import CAMERA_WEIGHTS
from ocular.planning.mppi import PlannerSettings
from ocular.worlds.collect import GridSpec, InnerGridSpec
from ocular.worlds.junction import GEOMETRY, ROADS, CameraNoise, JunctionWorld, open_junction
from ocular.worlds.planar import PlanarWorld

MAPS = tuple(ROADS)
# As coarse as a footprint's cells are deep, so that one look leaves no holes between them.
MAP_RESOLUTION = 0.2  # [m]
FARTHEST = 4.0  # [m], beyond it distances to obstacles do not matter
CALIBRATION_GRID = GridSpec(positions=16, velocities=10, actions=4)
TEST_GRID = InnerGridSpec(positions=8, velocities=6, actions=4, max_speed=1.0, inset=2.0)


def _open(map_name: str, slip: float) -> JunctionWorld:
    return open_junction(map_name, slip=slip)


def _belief(truth: PlanarWorld) -> BeliefMap:
    width, height = truth.map.size
    return BeliefMap(
        truth.map.grid.names, MAP_RESOLUTION, extent=(0.0, 0.0, width, height), distance_cap=FARTHEST
    )


CAMERA = Site(
    name="camera",
    maps=MAPS,
    open=_open,
    geometry=GEOMETRY,
    belief=_belief,
    test_grid=TEST_GRID,
    planner=PlannerSettings(samples=4096, horizon=8, temperature=0.3, weights=CAMERA_WEIGHTS),
    reach=2.0,  # less than half of the narrowest road, as on the planar maps
    # Positions as fine as the map's cells; room for all that the samples of a control step reach, or they
    # would push each other out.
    rounding={"position_step": MAP_RESOLUTION, "heading_step": np.deg2rad(3.0), "capacity": 1024},
)


@dataclass(frozen=True, slots=True)
class CameraSettings(CalibrationSettings):
    """Everything that the camera world's calibrations depend on; the defaults are the paper's."""

    site: ClassVar[Site] = CAMERA
    grid: GridSpec = CALIBRATION_GRID
    camera_noise: float = 0.0  # relative error of each depth, and share of pixels of a wrong class

    def world(self, map_name: str) -> JunctionWorld:
        """The true world on one map, seen through this camera."""
        clean = _open(map_name, self.slip)
        if not self.camera_noise:
            return clean
        return replace(clean, camera_noise=CameraNoise(self.camera_noise, self.camera_noise, self.seed))
