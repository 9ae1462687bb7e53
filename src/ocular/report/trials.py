"""Tables of settings that were tried with one environment left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from ocular.report.tables import Table, mean_and_spread


def sensitivity_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Left-out environments and trees down; mean and standard deviation over the encoder's seeds."""
    runs: dict[tuple[str, int, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        key = (row["left_out"], int(row["max_depth"]), int(row["min_leaf"]))
        runs.setdefault(key, []).append(row)
    depths = {depth for _, depth, _ in runs}
    body = []
    for (place, depth, leaf), trials in sorted(runs.items()):

        def column(name: str, factor: float, decimals: int, of: Sequence[Mapping[str, Any]] = trials) -> str:
            return mean_and_spread([factor * float(row[name]) for row in of], decimals)

        body.append(
            (
                place,
                f"{leaf}" if len(depths) == 1 else f"{leaf}, {depth} levels",
                f"{len(trials)}",
                column("cells", 1, 0),
                column("coverage", 100, 1),
                column("gap", 100, 1),
                column("xi", 1, 2),
            )
        )
    return Table(
        "each place left out; mean ± standard deviation over seeds of the encoder",
        ("left out", "points a leaf", "seeds", "leaves", "coverage [%]", "gap [points]", "median xi"),
        body,
    )


def selection_table(selection: Mapping[str, Any]) -> Table:
    """What a choice of settings was made by: each tree where it is worst, and on average."""
    chosen = (selection["max_depth"], selection["min_leaf"])
    of_tree: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for trial in selection["trials"]:
        of_tree.setdefault((trial["max_depth"], trial["min_leaf"]), []).append(trial)
    body = []
    for (depth, leaf), trials in of_tree.items():
        worst = min(trials, key=_useful)
        body.append(
            (
                f"{leaf}",
                f"{depth}",
                f"{_useful(worst):.1%} ({worst['left_out']})",
                f"{fmean(100 * trial['gap'] for trial in trials):.1f}",
                f"{fmean(float(trial['xi']) for trial in trials):.2f}",
                "chosen" if (depth, leaf) == chosen else "",
            )
        )
    return Table(
        f"settings tried with each environment left out, alpha = {selection['alpha']:g}",
        ("points a leaf", "levels", "worst coverage", "gap [points]", "median xi", ""),
        body,
    )


def _useful(trial: Mapping[str, Any]) -> float:
    return float(trial["coverage"] - trial["unbounded"])
