"""What a camera sees of an MJCF scene, by casting a ray through every pixel: no GL, no system package."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ocular.errors import InputError
from ocular.footprint.camera import Camera
from ocular.records import Floats, Labels

SKY = "sky"  # the class of what no ray meets
LIGHT = np.array([0.35, 0.5, 0.79])  # where the sun stands
Float32s = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Images:
    """What a camera took at one moment."""

    depth: Float32s  # (height, width), along the optical axis [m]; infinite beyond the range
    semantics: Labels  # (height, width), indices into classes
    classes: tuple[str, ...]


@dataclass(frozen=True)
class SceneModel:
    """A compiled MJCF scene as triangles, each with its class."""

    mujoco: Any  # the mujoco.MjModel

    @classmethod
    def of(cls, mjcf: str) -> SceneModel:
        """Compile the text of an MJCF file."""
        from mujoco import MjModel  # a fifth of a second, and only this world needs it

        try:
            model = MjModel.from_xml_string(mjcf)
        except ValueError as error:
            raise InputError(f"MuJoCo cannot read the scene: {error}") from error
        return cls(model)

    @classmethod
    def load(cls, path: str | Path) -> SceneModel:
        """Compile an MJCF file."""
        if not Path(path).is_file():
            raise InputError(f"there is no scene {str(path)!r}; allowed is an MJCF file")
        return cls.of(Path(path).read_text(encoding="utf-8"))

    @cached_property
    def geom_class(self) -> tuple[str, ...]:
        """The class of each geom."""
        return tuple(self.mujoco.geom(i).name.partition("/")[0] for i in range(self.mujoco.ngeom))

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """All classes of the scene, and at the end the sky."""
        return (*dict.fromkeys(self.geom_class), SKY)

    @cached_property
    def class_of_geom(self) -> Labels:
        """The number of each geom's class, and at the end the sky's."""
        return np.array([self.classes.index(name) for name in (*self.geom_class, SKY)], np.uint8)

    @cached_property
    def triangles(self) -> tuple[Floats, npt.NDArray[np.int32]]:
        """Corners (n, 3, 3) [m] of every triangle, and the geom that it is part of."""
        from mujoco import mjtGeom

        corners, geoms = [], []
        for i in range(self.mujoco.ngeom):
            geom = self.mujoco.geom(i)
            if geom.type[0] == mjtGeom.mjGEOM_MESH:
                local = self._mesh(geom.dataid[0])
            elif geom.type[0] == mjtGeom.mjGEOM_BOX:
                local = _box(geom.size)
            else:
                raise InputError(
                    f"the geom {geom.name!r} is of the type {mjtGeom(geom.type[0]).name}; "
                    "allowed in a camera's scene are meshes and boxes"
                )
            corners.append(local @ _rotation(geom.quat).T + geom.pos)
            geoms.append(np.full(len(local), i, np.int32))
        return np.concatenate(corners), np.concatenate(geoms)

    def _mesh(self, number: int) -> Floats:
        mesh = self.mujoco.mesh(number)
        vertices = self.mujoco.mesh_vert[mesh.vertadr[0] :][: mesh.vertnum[0]]
        faces = self.mujoco.mesh_face[mesh.faceadr[0] :][: mesh.facenum[0]]
        return np.asarray(vertices[faces], np.float64)

    @cached_property
    def _embree(self) -> tuple[Any, npt.NDArray[np.int32]]:
        from embreex.mesh_construction import TriangleMesh
        from embreex.rtcore_scene import EmbreeScene

        corners, geoms = self.triangles
        scene = EmbreeScene()
        TriangleMesh(scene, corners.astype(np.float32))
        return scene, geoms

    def cast(self, origins: Float32s, directions: Float32s) -> dict[str, Any]:
        """For each ray: `away` in lengths of its direction, infinite for a miss; `geom` or -1; `normal`."""
        scene, geoms = self._embree
        hits = scene.run(origins, directions, output=True)
        met = hits["primID"] >= 0
        return {
            "away": np.where(met, hits["tfar"], np.float32(np.inf)),
            "geom": np.where(met, geoms[hits["primID"]], np.int32(-1)),
            "normal": hits["Ng"],
        }

    def __getstate__(self) -> dict[str, Any]:
        return {"mujoco": self.mujoco}  # the ray caster does not travel to another process: it is made anew


class RayCamera:
    """A camera that casts rays. One is not to be shared by threads."""

    def __init__(self, model: SceneModel, camera: Camera, max_range: float) -> None:
        self.model, self.camera, self.max_range = model, camera, max_range
        self._rays = camera.rays.reshape(-1, 3)
        # Depth along the optical axis, at which each pixel's ray is as long as the range.
        self._farthest = (max_range / np.linalg.norm(self._rays, axis=1)).astype(np.float32)

    def take(self, position: Floats, heading: float) -> Images:
        """Depth and semantics from a robot at this position (2,) [m]."""
        hits = self._cast(position, heading)
        depth = hits["away"]
        depth[depth > self._farthest] = np.inf
        semantics = self.model.class_of_geom[hits["geom"]]
        size = self.camera.intrinsics.height, self.camera.intrinsics.width
        return Images(depth.reshape(size), semantics.reshape(size), self.model.classes)

    def picture(self, position: Floats, heading: float) -> Labels:
        """Colours (height, width, 3), for people to look at; no range ends them."""
        hits = self._cast(position, heading)
        normal = hits["normal"] / np.maximum(np.linalg.norm(hits["normal"], axis=1, keepdims=True), 1e-9)
        lit = 0.55 + 0.45 * np.abs(normal @ LIGHT)
        colours = np.concatenate([self.model.mujoco.geom_rgba[:, :3], [[0.68, 0.80, 0.92]]])
        lit[hits["geom"] < 0] = 1.0
        pixels = 255 * np.clip(colours[hits["geom"]] * lit[:, None], 0, 1)
        k = self.camera.intrinsics
        return np.asarray(pixels.reshape(k.height, k.width, 3), np.uint8)

    def _cast(self, position: Floats, heading: float) -> dict[str, Any]:
        turn = np.array(
            [[np.cos(heading), np.sin(heading), 0], [-np.sin(heading), np.cos(heading), 0], [0, 0, 1]]
        )
        directions = (self._rays @ turn).astype(np.float32)
        origin = np.array([*position, self.camera.height], np.float32)
        return self.model.cast(np.broadcast_to(origin, directions.shape).copy(), directions)


def _rotation(quat: Floats) -> Floats:
    from mujoco import mju_quat2Mat

    matrix = np.empty(9)
    mju_quat2Mat(matrix, np.asarray(quat, np.float64))
    return matrix.reshape(3, 3)


def _box(half: Floats) -> Floats:
    """The twelve triangles of a box."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return np.array([corners[list(t)] for a, b, c, d in faces for t in ((a, b, c), (a, c, d))])
