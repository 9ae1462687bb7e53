"""Coverage against volume: a method should cover what is wanted, with regions no larger than needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as PrintedFigure
from matplotlib.lines import Line2D

from ocular.report.figures.base import (
    Figure,
    Panel,
    axis,
    grid_of,
    label_axes,
    legend_below,
    method_handles,
    rule,
)
from ocular.report.paper import maps_in_order
from ocular.report.results import WorldResults
from ocular.report.style import in_order, look

X, Y = "median volume, oracle = 1", "coverage [%]"
REGIONS = {"ID": "in distribution (ID)", "OOD": "out of distribution (OOD)"}
WANTED = 90.0  # [%]
VIEWS = {  # name: range of the volume, its ticks, range of the coverage [%]
    "": ((0.008, 125.0), (0.01, 0.1, 1, 10, 100), (-3.0, 104.0)),
    ", close up": ((0.8, 1.25), (0.8, 0.9, 1, 1.1, 1.2), (83.5, 96.5)),
}


def figure(world: WorldResults) -> Figure | None:
    """One panel a region; a point is one seed."""
    if not world.coverage:
        return None
    maps = maps_in_order(world.name, {row["map"] for row in world.coverage})
    return Figure(
        "volume",
        "Coverage against volume",
        "The best place is where the two thin lines cross: 90 % coverage, with regions as small as the "
        "oracle's. Below the line, a method promises more than it keeps; to the right, it wastes space. "
        "A point is a seed; the second panel of each pair looks closely at the place where the lines cross.",
        {m: [_panel(world.coverage, m, region, v) for region in REGIONS for v in VIEWS] for m in maps},
        narrow=True,
    )


def _panel(rows: Sequence[Mapping[str, Any]], map_name: str, region: str, view: str) -> Panel:
    here = [row for row in rows if row["map"] == map_name and row["region"] == region]
    traces = []
    for method in in_order({row["method"] for row in here}):
        x, y = _points(here, method)
        how = look(method)
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": how.name,
                "meta": method,
                "x": x,
                "y": y,
                "marker": {"color": how.colour, "symbol": how.marker[0], "size": 11, "opacity": 0.85},
                "hovertemplate": "volume %{x:.2f}<br>coverage %{y:.1f} %",
            }
        )
    volumes, ticks, coverages = VIEWS[view]
    return Panel(
        region + view if view else REGIONS[region],
        traces,
        axis(X, type="log", range=[math.log10(v) for v in volumes], tickvals=ticks),
        axis(Y, range=coverages),
        [rule(y=WANTED), rule(x=1.0)],
    )


def _points(rows: Sequence[Mapping[str, Any]], method: str) -> tuple[list[float], list[float]]:
    mine = [row for row in rows if row["method"] == method]
    return [float(r["volume"]) for r in mine], [100 * float(r["coverage"]) for r in mine]


def printed(world: WorldResults) -> PrintedFigure | None:
    """Maps across; filled marks are ID, open ones OOD."""
    rows = world.coverage
    if not rows:
        return None
    maps = maps_in_order(world.name, {row["map"] for row in rows})
    result, axes = grid_of(len(VIEWS), len(maps), width=1.9, height=1.9)
    for row, view in enumerate(VIEWS):
        for panel, name in zip(axes[row], maps, strict=True):
            _print_panel(panel, [r for r in rows if r["map"] == name], view)
            label_axes(panel, f"map {name}{view}", X, Y)
            panel.label_outer(remove_inner_ticks=False)
            panel.tick_params(labelbottom=True)
    marks = [
        Line2D([], [], label=text, color="#555555", marker="o", linestyle="", markerfacecolor=face)
        for text, face in ((REGIONS["ID"], "#555555"), (REGIONS["OOD"], "none"))
    ]
    legend_below(result, [*method_handles({r["method"] for r in rows}, lines=False), *marks])
    return result


def _print_panel(panel: Axes, rows: Sequence[Mapping[str, Any]], view: str) -> None:
    volumes, ticks, coverages = VIEWS[view]
    panel.axhline(WANTED, color="#555555", linewidth=0.6, linestyle=":")
    panel.axvline(1.0, color="#555555", linewidth=0.6, linestyle=":")
    for method in in_order({row["method"] for row in rows}):
        how = look(method)
        for region in REGIONS:
            x, y = _points([r for r in rows if r["region"] == region], method)
            face = how.colour if region == "ID" else "none"
            panel.scatter(x, y, s=22, marker=how.marker[1], facecolors=face, edgecolors=how.colour)
    panel.set_xscale("log")
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    panel.set_xlim(*volumes)
    panel.set_ylim(*coverages)
