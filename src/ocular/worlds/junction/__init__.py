"""The camera world: a snowy T-junction in 3D, its scenes as MJCF, and what a camera on a robot sees of it."""

from ocular.worlds.junction.junction import CAMERA, CLASSES, GEOMETRY, JunctionWorld, open_junction
from ocular.worlds.junction.noise import CameraNoise
from ocular.worlds.junction.raycast import RayCamera, SceneModel
from ocular.worlds.junction.roads import ROADS, road
from ocular.worlds.junction.scene import Scene, Solid, box, hull, prism, to_mjcf

__all__ = [
    "CAMERA",
    "CLASSES",
    "GEOMETRY",
    "ROADS",
    "CameraNoise",
    "JunctionWorld",
    "RayCamera",
    "Scene",
    "SceneModel",
    "Solid",
    "box",
    "hull",
    "open_junction",
    "prism",
    "road",
    "to_mjcf",
]
