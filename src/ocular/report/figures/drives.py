"""Every drive of every method on every map, with speed as colour: the paper's Figs. 4, 5, 6 and 9."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure as PrintedFigure
from matplotlib.lines import Line2D

from ocular.evaluation.recordings import Trajectory
from ocular.records import Floats
from ocular.report.figures.base import grid_of, label_axes, legend_below
from ocular.report.ground import extent, ground, picture, png_data, route
from ocular.report.results import WorldResults
from ocular.report.style import LABEL_COLOURS, OUTCOME_MARKS, SPEED_COLOURS, in_order, look

PERIOD = {"planar": 0.05, "camera": 0.2}  # [s], between two control steps
SPEED_MAP = LinearSegmentedColormap.from_list("speed", SPEED_COLOURS)


def page_data(world: WorldResults) -> dict[str, Any]:
    """What the page's script draws: small whole numbers in base64, a few hundred bytes a drive."""
    found = {}
    for map_name, methods in world.drives.items():
        grid = ground(world.name, map_name)
        box = extent(grid) if grid is not None else _bounds(methods)
        found[map_name] = {
            "box": box,
            "ground": png_data(picture(grid)) if grid is not None else None,
            "route": route(world.name, map_name),
            "fastest": fastest(methods),
            "methods": {
                method: [_packed(n, drive, box) for n, drive in drives.items()]
                for method, drives in methods.items()
            },
        }
    return {"period": PERIOD[world.name], "maps": found}


def _packed(episode: int, drive: Trajectory, box: tuple[float, ...]) -> dict[str, Any]:
    """Positions as 16-bit fractions of the box, speeds [mm/s], scales in thousandths (0: none)."""
    x0, x1, y0, y1 = box
    across = (drive.states[:, :2] - (x0, y0)) / (x1 - x0, y1 - y0)
    scales = np.nan_to_num(np.append(drive.scales, np.nan))
    columns = (*(65535 * across.T), 1000 * speeds(drive), 1000 * scales)
    whole = np.stack([np.clip(np.round(c), 0, 65535) for c in columns]).astype("<u2")
    return {
        "episode": episode,
        "outcome": drive.outcome,
        "steps": len(drive.actions),
        "data": base64.b64encode(whole.tobytes()).decode(),
    }


def speeds(drive: Trajectory) -> Floats:
    """Speed at each of the T + 1 states [m/s]."""
    return np.asarray(np.hypot(drive.states[:, 2], drive.states[:, 3]), float)


def fastest(methods: Mapping[str, Mapping[int, Trajectory]]) -> float:
    """Where the colours end: the 99th percentile of all speeds [m/s], so that one dash does not grey all."""
    every = [speeds(drive) for drives in methods.values() for drive in drives.values()]
    return float(np.quantile(np.concatenate(every), 0.99)) if every else 1.0


def _bounds(methods: Mapping[str, Mapping[int, Trajectory]]) -> tuple[float, float, float, float]:
    points = np.concatenate([d.states[:, :2] for drives in methods.values() for d in drives.values()])
    (x0, y0), (x1, y1) = points.min(axis=0), points.max(axis=0)
    margin = 0.05 * max(x1 - x0, y1 - y0, 0.1)
    return float(x0 - margin), float(x1 + margin), float(y0 - margin), float(y1 + margin)


def printed(world: WorldResults) -> PrintedFigure | None:
    """Maps down, methods across."""
    if not world.drives:
        return None
    methods = in_order({m for found in world.drives.values() for m in found})
    result, axes = grid_of(len(world.drives), len(methods), width=1.55, height=1.6)
    norm = Normalize(0.0, max(fastest(found) for found in world.drives.values()))
    for row, (map_name, found) in enumerate(world.drives.items()):
        for column, method in enumerate(methods):
            panel = axes[row, column]
            draw_ground(panel, world.name, map_name)
            for drive in found.get(method, {}).values():
                draw_drive(panel, drive, norm)
            label_axes(panel, look(method).short if row == 0 else "", "x [m]", f"map {map_name}: y [m]")
            panel.label_outer()
            panel.grid(False)
    bar = ScalarMappable(norm, SPEED_MAP)
    result.colorbar(bar, ax=axes, label="speed [m/s]", shrink=0.6, aspect=40)
    legend_below(result, outcome_handles())
    return result


def draw_ground(panel: Axes, world: str, map_name: str) -> None:
    """The true map under a drive."""
    grid = ground(world, map_name)
    if grid is not None:
        panel.imshow(picture(grid), extent=extent(grid), interpolation="nearest")
    panel.set_aspect("equal")
    panel.set_rasterization_zorder(1.5)  # ground and drives become one image; marks and text stay drawings


def draw_drive(panel: Axes, drive: Trajectory, norm: Normalize, width: float = 0.7) -> None:
    """One drive, its end marked by how it ended."""
    points = drive.states[:, None, :2]
    segments = np.concatenate([points[:-1], points[1:]], axis=1)
    lines = LineCollection(
        list(segments), cmap=SPEED_MAP, norm=norm, linewidths=width, capstyle="round", zorder=1
    )
    lines.set_array(speeds(drive)[:-1])
    panel.add_collection(lines)
    marker, colour = OUTCOME_MARKS[drive.outcome]
    panel.plot(*drive.states[-1, :2], marker, color=colour, markersize=4.5 * width**0.5, markeredgewidth=0)


def outcome_handles() -> list[Line2D]:
    """Legend entries of outcomes and ground."""
    ends = [
        Line2D([], [], label=name, color=colour, marker=marker, linestyle="")
        for name, (marker, colour) in OUTCOME_MARKS.items()
    ]
    grounds = {"NOMINAL": "good ground", "LOW_FRICTION": "ice", "OCCUPIED": "obstacle"}
    squares = [
        Line2D([], [], label=text, color=LABEL_COLOURS[name][0], marker="s", linestyle="", markersize=8)
        for name, text in grounds.items()
    ]
    return [*ends, *squares]
