"""What a figure is, on the page and in print, and what all of them share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as PrintedFigure
from matplotlib.lines import Line2D

from ocular.report.style import in_order, look

Trace = dict[str, Any]  # of plotly

LEGEND_MARK, LEGEND_LETTER = 0.55, 0.063  # [inch], room for an entry of a legend
LEAST_WIDTH = 3.6  # [inch]: two legend entries fit
PRINT_RC: dict[Any, Any] = {
    "font.size": 8.0,
    "axes.titlesize": 9.0,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "ocular",  # the same rows give the same file
}


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes on the page."""

    title: str
    traces: list[Trace]
    x: dict[str, Any]  # plotly's axes; the titles bear the units
    y: dict[str, Any]
    shapes: list[dict[str, Any]] = field(default_factory=list)
    method: str | None = None  # the panel belongs to this method alone

    def spec(self) -> dict[str, Any]:
        """What the page's script draws."""
        axes = {"xaxis": self.x, "yaxis": self.y, "shapes": self.shapes}
        return {"title": self.title, "method": self.method, "data": self.traces, "layout": axes}


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels for each map that there is something to show of."""

    key: str
    title: str
    caption: str
    maps: dict[str, list[Panel]]
    legend: dict[str, tuple[str, str]] = field(default_factory=dict)  # text: (plotly's symbol, colour)
    narrow: bool = False  # panels that look well four abreast


def axis(title: str, **more: Any) -> dict[str, Any]:
    """A plotly axis; its title says what is on it, in which unit."""
    return {"title": {"text": title}, "zeroline": False, **more}


def rule(*, x: float | None = None, y: float | None = None) -> dict[str, Any]:
    """A thin line across a panel: what is wanted. On a logarithmic axis, positions are given as they are."""
    place = {"x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper"}
    if y is not None:
        place = {"x0": 0, "x1": 1, "xref": "paper", "y0": y, "y1": y}
    line = {"width": 1, "dash": "dot", "color": "#888888"}
    return {"type": "line", "layer": "below", "line": line, **place}


def line_of(method: str) -> dict[str, Any]:
    """How plotly draws a method's line."""
    how = look(method)
    return {"color": how.colour, "dash": how.dash, "width": 3 if method == "ocular" else 2}


def print_line(method: str) -> dict[str, Any]:
    """How matplotlib draws a method's line."""
    how = look(method)
    return {
        "color": how.colour,
        "linestyle": (0, how.dashes) if how.dashes else "-",
        "linewidth": 1.8 if method == "ocular" else 1.2,
    }


def grid_of(rows: int, columns: int, *, width: float, height: float) -> tuple[PrintedFigure, Any]:
    """A figure of rows x columns axes, each of this size [inch], with room for a legend below."""
    size = (max(width * columns, LEAST_WIDTH), height * rows + 0.5)
    figure = PrintedFigure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def legend_below(figure: PrintedFigure, handles: Iterable[Any]) -> None:
    """A legend outside of all axes, where it covers no data."""
    entries = list(handles)
    longest = max(len(str(entry.get_label())) for entry in entries)
    columns = max(1, int(figure.get_figwidth() / (LEGEND_MARK + LEGEND_LETTER * longest)))
    figure.legend(handles=entries, loc="outside lower center", ncols=min(len(entries), columns))


def method_handles(methods: Iterable[str], *, lines: bool) -> list[Line2D]:
    """Legend entries."""
    found = in_order(set(methods))
    if lines:
        return [Line2D([], [], label=look(m).name, **print_line(m)) for m in found]
    return [
        Line2D([], [], label=look(m).name, color=look(m).colour, marker=look(m).marker[1], linestyle="")
        for m in found
    ]


def label_axes(axes: Axes, title: str, x: str, y: str) -> None:
    """Title and units."""
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
