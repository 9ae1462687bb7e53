"""How well single test cases are covered: averages hide those that are not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure as PrintedFigure

from ocular.evaluation.recordings import CaseRecord
from ocular.records import Floats
from ocular.report.figures.base import (
    Figure,
    Panel,
    axis,
    grid_of,
    label_axes,
    legend_below,
    line_of,
    method_handles,
    print_line,
    rule,
)
from ocular.report.figures.volume import REGIONS
from ocular.report.results import WorldResults
from ocular.report.style import in_order, look

X, Y = "coverage of a case [%]", "cases with at most this [%]"
LEVELS = np.arange(0.0, 100.5, 0.5)  # [%]
VIEWS = {"": (0.0, 100.5), ", close up": (79.5, 100.5)}  # name: range of the coverage [%]


def figure(world: WorldResults) -> Figure | None:
    """Distribution functions, one panel a region."""
    if not world.cases:
        return None
    return Figure(
        "cases",
        "How well single cases are covered",
        "A curve tells which share of the test cases is covered at most this well. The best is a step at "
        "90 %: what lies left of it is badly covered, what lies right has regions larger than needed. "
        "The second panel of each pair looks closely at the well covered end.",
        {
            name: [_panel(record, region, view) for region in REGIONS for view in VIEWS]
            for name, record in world.cases.items()
        },
        narrow=True,
    )


def shares(coverage: npt.ArrayLike) -> Floats:
    """Share of cases [%] with a coverage of at most each of the levels."""
    percent = np.sort(100 * np.asarray(coverage, float))
    if not len(percent):
        return np.full(len(LEVELS), np.nan)
    # Shares of particles, written in single precision: a case of 90 % must not land above 90 by rounding.
    return np.asarray(100 * np.searchsorted(percent, LEVELS + 1e-4, side="right") / len(percent), float)


def _panel(record: CaseRecord, region: str, view: str) -> Panel:
    here = np.asarray(record.ood, bool) == (region == "OOD")
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": look(method).name,
            "meta": method,
            "x": LEVELS.tolist(),
            "y": np.round(shares(record.methods[method].coverage[here]), 2).tolist() if here.any() else [],
            "line": {**line_of(method), "shape": "hv"},
            "hovertemplate": "%{y:.1f} % of the cases are covered<br>to at most %{x:.1f} %",
        }
        for method in in_order(record.methods)
    ]
    title = region + view if view else REGIONS[region]
    return Panel(title, traces, axis(X, range=VIEWS[view]), axis(Y, range=[-2, 102]), [rule(x=90.0)])


def printed(world: WorldResults) -> PrintedFigure | None:
    """Maps across, ID above OOD, each whole and close up."""
    if not world.cases:
        return None
    views = [(region, view) for region in REGIONS for view in VIEWS]
    result, axes = grid_of(len(views), len(world.cases), width=1.9, height=1.7)
    for column, (name, record) in enumerate(world.cases.items()):
        for row, (region, view) in enumerate(views):
            panel, here = axes[row, column], np.asarray(record.ood, bool) == (region == "OOD")
            panel.axvline(90.0, color="#555555", linewidth=0.6, linestyle=":")
            for method in in_order(record.methods):
                y = shares(record.methods[method].coverage[here])
                panel.step(LEVELS, y, where="post", **print_line(method))
            panel.set_xlim(*VIEWS[view])
            label_axes(panel, f"map {name}, {region}{view}", X, Y)
            panel.label_outer(remove_inner_ticks=False)
            panel.tick_params(labelbottom=True)
    legend_below(result, method_handles({m for r in world.cases.values() for m in r.methods}, lines=True))
    return result
