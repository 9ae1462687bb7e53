"""The paper's three roads: one T-junction, with the snow and the obstacles that each name stands for.

The geometry is read off the published pictures, to half a metre; what stands beside the road is free choice,
and so are the subgoals between the published ones, which lead around corners and obstacles: a planner that
looks 1.6 s ahead stops in front of them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from ocular.errors import check_choice
from ocular.worlds.junction.scene import Pair, Scene, Solid, box, hull, prism

SIZE = (40.0, 56.0)  # [m]
KERB_HEIGHT, KERB_WIDTH = 0.18, 0.15
KERB_NOSE = 0.01  # [m], over the edge, so that no face of it lies in one of the pavement
PAVEMENT_HEIGHT = 0.15
SNOW_HEIGHT = 0.01

# Main road: x from 28.8 to 37.2. The side road comes from the left, narrows, and flares into the junction.
LOWER_EDGE: tuple[Pair, ...] = ((0, 28.5), (14, 27.0), (24.4, 27.0), (28.8, 23.5), (28.8, 0))
UPPER_EDGE: tuple[Pair, ...] = ((0, 38.3), (14, 31.5), (24.4, 31.5), (28.8, 35.0), (28.8, 56))
RIGHT_EDGE: tuple[Pair, ...] = ((37.2, 0), (37.2, 56))
PAVEMENTS: tuple[tuple[Pair, ...], ...] = (
    ((0, 0), (14, 0), (14, 27), (0, 28.5)),
    ((14, 0), (24.4, 0), (24.4, 27), (14, 27)),
    ((24.4, 0), (28.8, 0), (28.8, 23.5), (24.4, 27)),
    ((0, 38.3), (14, 31.5), (14, 56), (0, 56)),
    ((14, 31.5), (24.4, 31.5), (24.4, 56), (14, 56)),
    ((24.4, 31.5), (28.8, 35), (28.8, 56), (24.4, 56)),
    ((37.2, 0), (40, 0), (40, 56), (37.2, 56)),
)


def junction() -> tuple[Solid, ...]:
    """What the three roads share: asphalt, pavements, kerbs, buildings, banks of cleared snow."""
    solids = [box("asphalt", (0, SIZE[0]), (0, SIZE[1]), (-0.5, 0))]
    solids += [prism("pavement", outline, (-0.2, PAVEMENT_HEIGHT)) for outline in PAVEMENTS]
    solids += kerb(LOWER_EDGE, side=-1) + kerb(UPPER_EDGE, side=1) + kerb(RIGHT_EDGE, side=-1)
    solids += [
        box("building", (2, 11), (14, 24), (0, 7)),
        box("building", (14, 25), (10, 23), (0, 9)),
        box("building", (15, 26), (1, 8), (0, 6)),
        box("building", (2, 12), (42, 54), (0, 8)),
        box("building", (15, 25.5), (36, 53), (0, 10)),
        box("building", (39, 40), (2, 30), (0, 8)),
        box("building", (39, 40), (33, 54), (0, 6)),
    ]
    solids += [bank(*spot) for spot in ((27.6, 14), (38.3, 20), (38.3, 44), (27.4, 48), (18, 33), (8, 26.4))]
    return tuple(solids)


def kerb(edge: tuple[Pair, ...], side: int) -> list[Solid]:
    """A kerb along each stretch of a road's edge, on the left of its direction (side 1) or on the right."""
    solids = []
    for start, end in pairwise(edge):
        along = np.subtract(end, start) / np.hypot(*np.subtract(end, start))
        out = side * np.array([-along[1], along[0]])
        near, far = -KERB_NOSE * out, KERB_WIDTH * out
        outline = [tuple(np.add(a, b)) for a, b in ((start, near), (end, near), (end, far), (start, far))]
        solids.append(prism("kerb", outline, (-0.2, KERB_HEIGHT)))
    return solids


def bank(x: float, y: float, radius: float = 0.9, height: float = 0.8) -> Solid:
    """A heap of snow."""
    turns = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    foot = [(x + radius * np.cos(t), y + radius * np.sin(t), 0.0) for t in turns]
    top = [(x + 0.4 * radius * np.cos(t), y + 0.4 * radius * np.sin(t), height) for t in turns]
    return hull("snowbank", foot + top)


def cone(x: float, y: float) -> Solid:
    """A traffic cone, eight-sided."""
    turns = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    foot = [(x + 0.2 * np.cos(t), y + 0.2 * np.sin(t), 0.0) for t in turns]
    return hull("cone", [*foot, (x, y, 0.75)])


def car(x: float, y: float) -> list[Solid]:
    """A parked car, lengthwise along y: body and cabin."""
    return [
        box("car", (x - 0.85, x + 0.85), (y - 2.1, y + 2.1), (0.0, 0.85)),
        box("car", (x - 0.75, x + 0.75), (y - 1.2, y + 1.2), (0.85, 1.45)),
    ]


def snow(x: Pair, y: Pair) -> Solid:
    """Snow on the road; pavements stand out of it."""
    return box("snow", x, y, (-0.01, SNOW_HEIGHT))


def icy_main() -> Scene:
    """Snow on the main road up to y = 45; dumpsters take up its left half."""
    own = [
        snow((28.8, 37.2), (0, 45)),
        box("dumpster", (28.8, 31.1), (16.8, 22.4), (0, 1.6)),
        box("dumpster", (31.1, 33.5), (16.8, 22.4), (0, 1.5)),
        *(cone(x, y) for x in (29.4, 31.2, 33.0) for y in (16.2, 23.0)),
        *car(38.6, 31.5),
    ]
    subgoals = ((29.7, 25.6), (35.3, 23.0), (35.3, 16.0), (29.7, 12.0))
    return Scene("icyMain", SIZE, (*junction(), *own), (30.5, 46.8), subgoals)


def icy_middle() -> Scene:
    """Snow where the roads meet; a dumpster narrows the way into the side road."""
    own = [
        snow((24.4, 37.2), (11.5, 29)),
        box("dumpster", (21.8, 23.8), (30.3, 31.5), (0, 1.3)),
        *car(38.6, 31.5),
    ]
    subgoals = ((32.1, 20.0), (30.5, 27.8), (22.5, 28.5), (11.0, 30.5), (1.5, 34.5))
    return Scene("icyMiddle", SIZE, (*junction(), *own), (32.1, 8.4), subgoals)


def icy_side() -> Scene:
    """Snow on the side road; a car stands on the main road."""
    own = [snow((6.8, 29), (23.5, 35)), *car(36.3, 6.0), cone(35.2, 3.6), cone(35.2, 8.4), *car(38.6, 31.5)]
    return Scene("icySide", SIZE, (*junction(), *own), (4.0, 29.6), ((29.7, 28.0), (32.0, 3.5)))


ROADS: dict[str, Callable[[], Scene]] = {"icyMain": icy_main, "icyMiddle": icy_middle, "icySide": icy_side}


def road(name: str) -> Scene:
    """One of the paper's roads by its name."""
    check_choice("road", name, ROADS)
    return ROADS[name]()
