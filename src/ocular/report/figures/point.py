"""The point in one picture: without calibration the robot collides, with it it slows down and arrives."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure as PrintedFigure

from ocular.report.figures.base import grid_of, label_axes, legend_below, method_handles, print_line
from ocular.report.figures.drives import (
    PERIOD,
    SPEED_MAP,
    draw_drive,
    draw_ground,
    fastest,
    outcome_handles,
    speeds,
)
from ocular.report.results import Drives, WorldResults
from ocular.report.style import look

METHODS = ("nocp", "ocular")
FAVOURITE = "U"  # the map of the paper's first figure
HEADLINES = {"nocp": "trusts the model everywhere", "ocular": "is calibrated on other maps"}


def printed(world: WorldResults) -> PrintedFigure | None:
    """Two maps, and speed over time."""
    both = [m for m, found in world.drives.items() if all(found.get(k) for k in METHODS)]
    if not both:
        return None
    map_name = FAVOURITE if FAVOURITE in both else both[0]
    drives = {method: world.drives[map_name][method] for method in METHODS}
    result, axes = grid_of(1, 3, width=3.1, height=3.0)
    norm = Normalize(0.0, fastest(drives))
    for panel, method in zip(axes[0], METHODS, strict=False):
        draw_ground(panel, world.name, map_name)
        for drive in drives[method].values():
            draw_drive(panel, drive, norm, width=1.1)
        headline = f"{look(method).name} {HEADLINES[method]}:\n{_outcome(drives[method])}"
        label_axes(panel, headline, "x [m]", "y [m]")
        panel.grid(False)
    result.colorbar(ScalarMappable(norm, SPEED_MAP), ax=list(axes[0, :2]), label="speed [m/s]", shrink=0.75)
    _speeds(axes[0, 2], drives, PERIOD[world.name])
    legend_below(
        result,
        [*method_handles(METHODS, lines=True), *(h for h in outcome_handles() if h.get_label() != "timeout")],
    )
    return result


def _outcome(drives: Drives) -> str:
    arrived = sum(drive.outcome == "success" for drive in drives.values())
    collided = sum(drive.outcome == "collision" for drive in drives.values())
    if arrived >= collided:
        return f"{arrived} of {len(drives)} arrive"
    return f"{collided} of {len(drives)} collide"


def _speeds(panel: Any, drives: dict[str, Drives], period: float) -> None:
    """Speed over time, a line a drive."""
    for method, found in drives.items():
        for drive in found.values():
            how = {**print_line(method), "linewidth": 0.9, "alpha": 0.6}
            panel.plot(np.arange(len(drive.states)) * period, speeds(drive), **how)
    panel.set_xlim(left=0)
    panel.set_ylim(bottom=0)
    label_axes(panel, "Speed", "time [s]", "speed [m/s]")
