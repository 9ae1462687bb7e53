"""The camera world of the paper's section 5.2: the planar world's robot in a scene, with a camera."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from ocular.errors import InputError, check_finite, check_shape
from ocular.footprint import Camera, ClassTable, Intrinsics, LabelGrid, Projector
from ocular.records import OCCUPIED, UNKNOWN, Floats, FootprintGeometry, Labels
from ocular.worlds.junction.noise import CameraNoise, NoisyCamera
from ocular.worlds.junction.raycast import SKY, Images, RayCamera, SceneModel
from ocular.worlds.junction.roads import ROADS, road
from ocular.worlds.junction.scene import to_mjcf
from ocular.worlds.map_file import LOW_FRICTION, NOMINAL, PLANAR_LABELS, PlanarMap
from ocular.worlds.planar import Flags, PlanarWorld

CLASSES = ClassTable(
    {
        "asphalt": NOMINAL,
        "snow": LOW_FRICTION,
        "pavement": OCCUPIED,
        "kerb": OCCUPIED,
        "building": OCCUPIED,
        "dumpster": OCCUPIED,
        "cone": OCCUPIED,
        "car": OCCUPIED,
        "snowbank": OCCUPIED,
        SKY: UNKNOWN,
    },
    PLANAR_LABELS,
)
# 45 degrees close a turn with whole columns of the encoder, which a planner's latent field makes use of.
GEOMETRY = FootprintGeometry(angles=120, ranges=64, field_of_view=np.deg2rad(45.0), max_range=12.0)
# The horizon lies near the image's top, and its bottom sees the ground right under the robot: a transition
# depends on that ground, which a camera of 44 degrees both ways would not see. Along the horizon the camera
# is as wide as the footprint.
CAMERA = Camera(
    Intrinsics.of_field_of_view(240, 240, np.deg2rad(62.0), np.deg2rad(94.0)),
    height=1.0,
    pitch=np.deg2rad(45.0),
)
TRUTH_RESOLUTION = 0.05  # [m]
ABOVE = 100.0  # [m]


class Eye(Protocol):
    """Takes depth and semantic images: by ray casting, or by MuJoCo's own renderer."""

    def take(self, position: Floats, heading: float) -> Images:
        """Depth and semantics from a robot at this position (2,) [m]."""


@dataclass(frozen=True)
class JunctionWorld(PlanarWorld):
    """The ground of the map is the scene's, seen from above; what the robot knows of it is its camera's."""

    dt: float = 0.2
    noise_floor: float = 0.0
    state_variance: float = 1e-3
    geometry: FootprintGeometry = GEOMETRY
    scene: SceneModel = field(kw_only=True)
    camera: Camera = CAMERA
    table: ClassTable = CLASSES
    camera_noise: CameraNoise | None = None

    def observe(self, positions: Floats, headings: Floats, *, threads: int = 1) -> Labels:  # noqa: ARG002
        """Footprints (n, angles, ranges) seen from positions (n, 2) [m] and headings (n,) [rad]."""
        check_shape("positions", positions, (None, 2))
        check_shape("headings", headings, (len(positions),))
        check_finite("positions", positions)
        check_finite("headings", headings)
        out = np.empty((len(positions), self.geometry.angles, self.geometry.ranges), np.uint8)
        for cells, position, heading in zip(out, positions, headings, strict=True):
            images = self.eye.take(position, float(heading))
            cells[:] = self.projector(images.depth, images.semantics, images.classes)
        return out

    def knows_view(self, positions: Floats, headings: Floats) -> Flags:
        """Whether the ground ahead is within the map: of what lies beyond there is no truth."""
        ahead = positions + self.geometry.max_range * np.stack([np.cos(headings), np.sin(headings)], axis=-1)
        return np.asarray(((ahead >= 0) & (ahead <= self.map.size)).all(axis=-1))

    @cached_property
    def eye(self) -> RayCamera:
        """The camera."""
        camera = RayCamera(self.scene, self.camera, self.geometry.max_range)
        return camera if self.camera_noise is None else NoisyCamera(camera, self.camera_noise)

    @cached_property
    def projector(self) -> Projector:
        """From its images to footprints."""
        return Projector(self.camera, self.geometry, self.table)


def open_junction(name_or_path: str | Path, *, slip: float = 1.3) -> JunctionWorld:
    """One of the paper's roads by its name, or any scene by the path of its MJCF file."""
    if str(name_or_path) in ROADS:
        scene = SceneModel.of(to_mjcf(road(str(name_or_path)), CAMERA))
        return JunctionWorld(map_of(str(name_or_path), scene), slip=slip, scene=scene)
    if not Path(name_or_path).is_file():
        raise InputError(
            f"there is no road {str(name_or_path)!r}; allowed are {', '.join(ROADS)} "
            "or the path of a scene (MJCF)"
        )
    scene = SceneModel.load(name_or_path)
    return JunctionWorld(map_of(Path(name_or_path).stem, scene), slip=slip, scene=scene)


def map_of(name: str, scene: SceneModel, table: ClassTable = CLASSES) -> PlanarMap:
    """The scene from above: each cell has the label of what a ray from the sky meets first."""
    try:
        size = scene.mujoco.numeric("size").data
        start = scene.mujoco.site("start").pos[:2]
    except KeyError as error:
        raise InputError(
            f"the scene {name} lacks an entry: {error}; allowed is a scene with a custom numeric "
            "'size' and a site 'start'"
        ) from error
    columns, rows = (round(length / TRUTH_RESOLUTION) for length in size)
    y, x = np.meshgrid(np.arange(rows) + 0.5, np.arange(columns) + 0.5, indexing="ij")
    origins = np.stack([TRUTH_RESOLUTION * x, TRUTH_RESOLUTION * y, np.full_like(x, ABOVE)], axis=-1)
    origins = origins.reshape(-1, 3).astype(np.float32)
    down = np.broadcast_to(np.array([0, 0, -1], np.float32), origins.shape).copy()
    kinds = scene.class_of_geom[scene.cast(origins, down)["geom"]]
    labels = table.numbers(scene.classes)[kinds].reshape(rows, columns)
    names = [scene.mujoco.site(i).name for i in range(scene.mujoco.nsite)]
    goals = sorted((n for n in names if n.startswith("subgoal/")), key=lambda n: int(n.partition("/")[2]))
    return PlanarMap(
        name=name,
        grid=LabelGrid(labels, PLANAR_LABELS, TRUTH_RESOLUTION, (0.0, 0.0), outside=OCCUPIED),
        start=(float(start[0]), float(start[1])),
        subgoals=tuple((float(p[0]), float(p[1])) for p in (scene.mujoco.site(n).pos for n in goals)),
    )
