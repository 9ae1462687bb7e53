"""Where the leaves of the tree lie: the scale xi as a function of speed and of what is ahead."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure as PrintedFigure
from matplotlib.lines import Line2D

from ocular.records import Floats
from ocular.report.figures.base import Figure, Panel, axis, grid_of, label_axes, legend_below, rule
from ocular.report.ground import LOOK_AHEAD, SURROUNDINGS, ground, surroundings
from ocular.report.results import WorldResults
from ocular.report.style import in_order, look

X, Y = "speed [m/s]", "ξ, factor on the covariance"
SPEED_STEP = 0.05  # [m/s], points are counted in columns this wide
TICKS = [0.5, 1, 2, 5, 10, 20, 50]

Counts = Counter[tuple[int, float, float]]  # (surroundings, speed, xi)


def figure(world: WorldResults) -> Figure | None:
    """One panel a method that scales the covariance."""
    maps = {name: panels for name in world.maps if (panels := _panels(world, name))}
    if not maps:
        return None
    return Figure(
        "leaves",
        "Where the leaves lie",
        "The scale ξ of each step driven and of each test case, by speed and by what is within "
        f"{LOOK_AHEAD[world.name]} m ahead; the larger the mark, the more often. A horizontal row of marks "
        "is a leaf of the tree. A good calibration trusts the model on good ground at any speed, on ice only "
        "when slow.",
        maps,
        {name: (symbol, colour) for name, (symbol, _, colour) in SURROUNDINGS.items()},
    )


def _panels(world: WorldResults, map_name: str) -> list[Panel]:
    counted = counts(world, map_name)
    fastest = max((speed for c in counted.values() for _, speed, _ in c), default=1.0)
    scales = [xi for c in counted.values() for _, _, xi in c]
    y = axis(Y, type="log", tickvals=TICKS, range=_log_range(scales))
    x = axis(X, range=[-0.05, 1.05 * fastest])
    return [Panel(look(m).name, _traces(c), x, y, [rule(y=1.0)], method=m) for m, c in counted.items() if c]


def _log_range(scales: list[float]) -> list[float]:
    return [float(np.log10(0.8 * min([1.0, *scales]))), float(np.log10(1.25 * max([2.0, *scales])))]


def counts(world: WorldResults, map_name: str) -> dict[str, Counts]:
    """How often each scale occurs, by method; NoCP's is always one and is left out."""
    grid = ground(world.name, map_name)
    found: dict[str, Counts] = {}
    for method, drives in world.drives.get(map_name, {}).items() if grid is not None else ():
        for drive in drives.values():
            states = drive.states[:-1]
            where = surroundings(world.name, grid, states, np.zeros(len(states)))
            _count(found.setdefault(method, Counter()), where, states, drive.scales)
    record = world.cases.get(map_name)
    if record is not None and "nocp" in record.methods:
        where = surroundings(world.name, grid, record.states, record.ood)
        one = record.methods["nocp"].relative_volume  # that of xi = 1: volumes go with xi^(d/2)
        for method, result in record.methods.items():
            scales = (result.relative_volume / one) ** (2 / record.states.shape[1])
            _count(found.setdefault(method, Counter()), where, record.states, scales)
    found.pop("nocp", None)
    return {method: found[method] for method in in_order(found)}


def _count(into: Counts, where: npt.NDArray[Any], states: Floats, scales: Floats) -> None:
    """Add points to the counts; steps without a scale have none to show."""
    speeds = np.round(np.hypot(states[:, 2], states[:, 3]) / SPEED_STEP) * SPEED_STEP
    for i in np.flatnonzero(np.isfinite(scales)):
        into[int(where[i]), round(float(speeds[i]), 2), float(f"{scales[i]:.3g}")] += 1


def _traces(counted: Counts) -> list[dict[str, Any]]:
    traces = []
    for kind, (name, (symbol, _, colour)) in enumerate(SURROUNDINGS.items()):
        points = sorted((speed, xi, n) for (k, speed, xi), n in counted.items() if k == kind)
        if points:
            x, y, n = zip(*points, strict=True)
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": name,
                    "x": x,
                    "y": y,
                    "customdata": n,
                    "marker": {
                        "color": colour,
                        "symbol": symbol,
                        "size": sizes(n),
                        "opacity": 0.7,
                        "line": {"width": 0},
                    },
                    "hovertemplate": "%{x:.2f} m/s, ξ = %{y:.2f}<br>%{customdata} times",
                }
            )
    return traces


def sizes(times: tuple[int, ...]) -> list[float]:
    """Marks grow with the logarithm of how often."""
    return [round(3.5 + 1.3 * float(np.log2(n)), 1) for n in times]


def printed(world: WorldResults) -> PrintedFigure | None:
    """Methods across, all maps together."""
    together: dict[str, Counts] = {}
    for name in world.maps:
        for method, counted in counts(world, name).items():
            together.setdefault(method, Counter()).update(counted)
    if not together:
        return None
    result, axes = grid_of(1, len(together), width=2.0, height=2.3)
    for panel, method in zip(axes[0], in_order(together), strict=True):
        panel.axhline(1.0, color="#555555", linewidth=0.6, linestyle=":")
        for trace, (_, marker, colour) in _marked(together[method]):
            area = [0.5 * size**2 for size in trace["marker"]["size"]]
            panel.scatter(
                trace["x"], trace["y"], s=area, marker=marker, color=colour, alpha=0.6, linewidths=0
            )
        panel.set_yscale("log")
        panel.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
        panel.minorticks_off()
        panel.set_ylim(*(10**v for v in _log_range([xi for c in together.values() for _, _, xi in c])))
        label_axes(panel, look(method).name, X, Y)
        panel.label_outer()
    legend_below(
        result,
        [
            Line2D([], [], label=name, color=colour, marker=marker, linestyle="")
            for name, (_, marker, colour) in SURROUNDINGS.items()
        ],
    )
    return result


def _marked(counted: Counts) -> list[tuple[dict[str, Any], tuple[str, str, str]]]:
    return [(trace, SURROUNDINGS[trace["name"]]) for trace in _traces(counted)]
