"""How long a control step takes, from footprint to action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure as PrintedFigure
from matplotlib.lines import Line2D

from ocular.report.figures.base import Figure, Panel, axis, grid_of, label_axes, legend_below, rule
from ocular.report.paper import maps_in_order
from ocular.report.results import WorldResults
from ocular.report.style import in_order, look

Y = "time of a control step [ms]"
QUANTILES = {"step_ms_p50": "median of a drive", "step_ms_p99": "99th percentile of a drive"}
TICKS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]  # [ms]
PERIOD_MS = {"planar": 50.0, "camera": 200.0}  # between two control steps


def figure(world: WorldResults) -> Figure | None:
    """A box is the drives of a method."""
    if not world.planning:
        return None
    maps = maps_in_order(world.name, {row["map"] for row in world.planning})
    return Figure(
        "timing",
        "How long a control step takes",
        "From footprint to action; a box holds the drives of a method. The thin line is the time between two "
        "control steps. Drives were made several at once, so a quiet machine is faster.",
        {m: [_panel(world, m, column) for column in QUANTILES] for m in maps},
    )


def _panel(world: WorldResults, map_name: str, column: str) -> Panel:
    times = _times(world.planning, map_name, column)
    traces = [
        {
            "type": "box",
            "name": look(method).short,
            "meta": method,
            "y": values,
            "boxpoints": "all",
            "jitter": 0.4,
            "pointpos": 0,
            "marker": {"color": look(method).colour, "size": 4},
            "line": {"width": 1.5},
        }
        for method, values in times.items()
    ]
    return Panel(
        QUANTILES[column],
        traces,
        axis("method"),
        axis(Y, type="log", tickvals=TICKS),
        [rule(y=PERIOD_MS[world.name])],
    )


def _times(rows: Sequence[Mapping[str, Any]], map_name: str, column: str) -> dict[str, list[float]]:
    here = [row for row in rows if row["map"] == map_name]
    return {
        m: [float(row[column]) for row in here if row["method"] == m]
        for m in in_order({row["method"] for row in here})
    }


def printed(world: WorldResults) -> PrintedFigure | None:
    """Maps across."""
    if not world.planning:
        return None
    maps = maps_in_order(world.name, {row["map"] for row in world.planning})
    result, axes = grid_of(1, len(maps), width=1.9, height=2.3)
    for panel, name in zip(axes[0], maps, strict=True):
        panel.axhline(PERIOD_MS[world.name], color="#555555", linewidth=0.6, linestyle=":")
        for column, offset, face in (("step_ms_p50", -0.16, True), ("step_ms_p99", 0.16, False)):
            for i, (method, values) in enumerate(_times(world.planning, name, column).items()):
                colour = look(method).colour
                panel.plot(
                    [i + offset] * len(values),
                    values,
                    linestyle="",
                    marker="o",
                    markersize=3,
                    alpha=0.6,
                    color=colour,
                    markerfacecolor=colour if face else "none",
                )
        methods = list(_times(world.planning, name, "step_ms_p50"))
        panel.set_xticks(range(len(methods)), [look(m).short for m in methods], rotation=60, ha="right")
        panel.set_yscale("log")
        low, high = panel.get_ylim()
        panel.set_yticks(TICKS, [str(tick) for tick in TICKS])
        panel.minorticks_off()
        panel.set_ylim(low, high)
        label_axes(panel, f"map {name}", "method", Y)
        if panel is not axes[0, 0]:
            panel.set_ylabel("")
    marks = [
        Line2D([], [], label=text, color="#555555", marker="o", linestyle="", markerfacecolor=face)
        for text, face in (
            (QUANTILES["step_ms_p50"], "#555555"),
            (QUANTILES["step_ms_p99"], "none"),
        )
    ]
    period = Line2D([], [], label="between two control steps", color="#555555", linewidth=0.6, linestyle=":")
    legend_below(result, [*marks, period])
    return result
