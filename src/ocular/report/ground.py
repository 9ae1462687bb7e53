"""The ground under the drives: the true map, as far as the package knows it."""

from __future__ import annotations

import base64
import io
from functools import cache

import numpy as np
import numpy.typing as npt
from PIL import Image

from ocular.footprint.grid import LabelGrid
from ocular.records import OCCUPIED, UNKNOWN, Floats
from ocular.report.style import LABEL_COLOURS, OTHER
from ocular.worlds.junction import ROADS, open_junction
from ocular.worlds.map_file import LOW_FRICTION, PlanarMap, load_map, packaged_maps

LOOK_AHEAD = {"planar": 0.3, "camera": 1.5}  # [m], a fraction of what the world's sensor reaches
MOST_PIXELS = 420  # along the longer side of a picture of the ground


@cache
def known_map(world: str, map_name: str) -> PlanarMap | None:
    """The true map; None for one that does not come with the package."""
    if world == "planar" and map_name in packaged_maps():
        return load_map(map_name)
    if world == "camera" and map_name in ROADS:
        return open_junction(map_name).map
    return None


def ground(world: str, map_name: str) -> LabelGrid | None:
    """The true labels, where they are known."""
    known = known_map(world, map_name)
    return None if known is None else known.grid


def route(world: str, map_name: str) -> list[tuple[float, float]]:
    """Start and subgoals [m], where they are known."""
    known = known_map(world, map_name)
    return [] if known is None or known.start is None else [known.start, *known.subgoals]


def picture(grid: LabelGrid, *, believed: bool = False) -> npt.NDArray[np.uint8]:
    """The labels in colour, (rows, cols, 3), the highest y first as in an image."""
    step = max(1, -(-max(grid.labels.shape) // MOST_PIXELS))
    return np.asarray(label_colours(grid.names, believed=believed)[grid.labels[::step, ::step][::-1]])


def label_colours(names: tuple[str, ...], *, believed: bool = False) -> npt.NDArray[np.uint8]:
    """The colour of each label, (labels, 3)."""
    return np.array([_rgb(_colour(name, believed)) for name in names], np.uint8)


def png_data(pixels: npt.NDArray[np.uint8]) -> str:
    """An image inside a page."""
    buffer = io.BytesIO()
    image = Image.fromarray(pixels).quantize(16)
    image.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def extent(grid: LabelGrid) -> tuple[float, float, float, float]:
    """x0, x1, y0, y1 [m]."""
    (x0, y0), (width, height) = grid.origin, grid.size
    return x0, x0 + width, y0, y0 + height


def _colour(name: str, believed: bool) -> str:
    return LABEL_COLOURS.get(name, (OTHER.colour,) * 2)[believed]


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


SURROUNDINGS = {
    # what is under and ahead of the robot: (plotly's symbol, matplotlib's, colour)
    "good ground, and ahead too": ("circle", "o", "#8f8a80"),
    "good ground, ice ahead": ("diamond", "D", "#56b4e9"),
    "ice": ("circle", "o", "#0072b2"),
    "an obstacle ahead": ("x", "X", "#d55e00"),
}


def surroundings(world: str, grid: LabelGrid | None, states: Floats, slippery: npt.ArrayLike) -> Floats:
    """Which of SURROUNDINGS each state (n, 4) is in, as an index; ahead is along the motion.

    Without a map, only what `slippery` tells is known: ice, or good ground.
    """
    if grid is None:
        return np.where(np.asarray(slippery, bool), 2, 0)
    direction = states[:, 2:] / np.maximum(np.hypot(*states[:, 2:].T), 1e-9)[:, None]
    here = grid.at(states[:, :2])
    way = [grid.at(states[:, :2] + share * LOOK_AHEAD[world] * direction) for share in (0.25, 0.5, 0.75, 1.0)]
    ahead = np.stack(way)
    blocked = np.isin(ahead, [grid.index(name) for name in (OCCUPIED, UNKNOWN)]).any(axis=0)
    icy = grid.index(LOW_FRICTION)
    result = np.where(here == icy, 2, np.where((ahead == icy).any(axis=0), 1, 0))
    return np.where(blocked & (here != icy), 3, result)
