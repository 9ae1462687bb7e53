"""Scenes of solids, each of a semantic class, and the MJCF that says the same to MuJoCo and its viewer.

A geom's class is its name up to the slash: "dumpster/2". The route is in the sites "start", "subgoal/0", ...;
the scene covers the ground from (0, 0) to the `size` among the custom numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np

from ocular.errors import InputError, check_finite, check_shape
from ocular.footprint.camera import Camera
from ocular.records import Floats

Pair = tuple[float, float]
COLOURS = {
    # class: red, green, blue
    "asphalt": (0.22, 0.22, 0.24),
    "snow": (0.93, 0.95, 0.98),
    "pavement": (0.62, 0.60, 0.56),
    "kerb": (0.75, 0.74, 0.70),
    "building": (0.62, 0.38, 0.28),
    "dumpster": (0.10, 0.38, 0.22),
    "cone": (0.95, 0.42, 0.08),
    "car": (0.62, 0.10, 0.12),
    "snowbank": (0.84, 0.88, 0.93),
}
OTHER_COLOUR = (0.5, 0.5, 0.8)


@dataclass(frozen=True)
class Solid:
    """The convex hull of some points."""

    kind: str  # its semantic class
    vertices: Floats  # (n, 3) [m]

    def __post_init__(self) -> None:
        if not self.kind or "/" in self.kind:
            raise InputError(f"the class of a solid is {self.kind!r}; allowed is a name without a slash")
        check_shape(f"the vertices of a {self.kind}", self.vertices, (None, 3))
        check_finite(f"the vertices of a {self.kind}", self.vertices)
        if np.linalg.matrix_rank(self.vertices - self.vertices[:1]) < 3:
            raise InputError(
                f"a {self.kind} has the vertices {self.vertices.tolist()}; allowed is a body with volume"
            )


def hull(kind: str, points: Sequence[Sequence[float]]) -> Solid:
    """The convex hull of points (x, y, z) [m]."""
    return Solid(kind, np.asarray(points, float))


def prism(kind: str, outline: Sequence[Pair], z: Pair) -> Solid:
    """A convex outline on the ground, from z[0] to z[1] [m]."""
    return hull(kind, [(x, y, level) for level in z for x, y in outline])


def box(kind: str, x: Pair, y: Pair, z: Pair) -> Solid:
    """An upright box [m]."""
    return prism(kind, [(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])], z)


@dataclass(frozen=True)
class Scene:
    """Solids on the ground z = 0, and a route through them."""

    name: str
    size: Pair  # [m]
    solids: tuple[Solid, ...]
    start: Pair  # [m]
    subgoals: tuple[Pair, ...]  # in the order of driving [m]


def to_mjcf(scene: Scene, camera: Camera) -> str:
    """The scene as a model that MuJoCo opens, with the camera on a body that can be placed at will."""
    model = ElementTree.Element("mujoco", model=scene.name)
    width, height = scene.size
    ElementTree.SubElement(model, "compiler", inertiafromgeom="true")
    ElementTree.SubElement(
        model, "statistic", extent="50", center=_text([width / 2, height / 2, 0.0]), meansize="1"
    )
    visual = ElementTree.SubElement(model, "visual")
    ElementTree.SubElement(visual, "map", znear="0.0004", zfar="4")
    ElementTree.SubElement(visual, "headlight", ambient="0.5 0.5 0.5", diffuse="0.5 0.5 0.5")
    custom = ElementTree.SubElement(model, "custom")
    ElementTree.SubElement(custom, "numeric", name="size", data=_text(scene.size))
    _add_solids(model, scene.solids)
    world = model.find("worldbody")
    assert world is not None
    route = {"start": scene.start} | {f"subgoal/{i}": point for i, point in enumerate(scene.subgoals)}
    for name, point in route.items():
        ElementTree.SubElement(world, "site", name=name, pos=_text([*point, 0.0]), size="0.01")
    robot = ElementTree.SubElement(world, "body", name="robot", mocap="true", pos=_text([*scene.start, 0.0]))
    ElementTree.SubElement(robot, "camera", {"name": "camera", **_camera(camera)})
    ElementTree.indent(model)
    return ElementTree.tostring(model, encoding="unicode") + "\n"


def _add_solids(model: ElementTree.Element, solids: Sequence[Solid]) -> None:
    defaults = ElementTree.SubElement(model, "default")
    ElementTree.SubElement(defaults, "geom", type="mesh", contype="0", conaffinity="0")
    for kind in dict.fromkeys(solid.kind for solid in solids):
        rgba = _text([*COLOURS.get(kind, OTHER_COLOUR), 1.0])
        own = ElementTree.SubElement(defaults, "default", {"class": kind})
        ElementTree.SubElement(own, "geom", rgba=rgba)
    assets, world = ElementTree.SubElement(model, "asset"), ElementTree.SubElement(model, "worldbody")
    count: dict[str, int] = {}
    for solid in solids:
        name = f"{solid.kind}/{count.setdefault(solid.kind, 0)}"
        count[solid.kind] += 1
        ElementTree.SubElement(assets, "mesh", name=name, vertex=_text(solid.vertices.ravel()))
        ElementTree.SubElement(world, "geom", {"name": name, "class": solid.kind, "mesh": name})


def _camera(camera: Camera) -> dict[str, str]:
    """MuJoCo's cameras look along their -z, with x to the right and y up."""
    k = camera.intrinsics
    pixel = 1e-5  # [m]; only the ratios to the focal length matter
    return {
        "pos": _text([0.0, 0.0, camera.height]),
        "xyaxes": _text([0.0, -1.0, 0.0, np.sin(camera.pitch), 0.0, np.cos(camera.pitch)]),
        "resolution": f"{k.width} {k.height}",
        "sensorsize": _text([k.width * pixel, k.height * pixel]),
        "focalpixel": _text([k.fx, k.fy]),
        # Measured from the image's centre; its y points up.
        "principalpixel": _text([k.cx - k.width / 2, k.height / 2 - k.cy]),
    }


def _text(numbers: Sequence[float] | Floats) -> str:
    return " ".join(f"{number:.9g}" for number in numbers)
