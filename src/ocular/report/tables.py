"""The paper's tables, ours beside theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from ocular.errors import InputError
from ocular.report.paper import REGIONS, maps_in_order, paper_number, paper_text, published
from ocular.report.style import in_order, look


@dataclass(frozen=True, slots=True)
class Table:
    """A title, a header and rows of text."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Metric:
    """One block of the coverage tables."""

    key: str  # column of the rows
    title: str
    factor: float
    decimals: int


METRICS = (
    Metric("coverage", "coverage [%]", 100.0, 1),
    Metric("volume", "median volume, relative to the oracle", 1.0, 2),
    Metric("gap", "gap: mean |case coverage - 90 %| [points]", 100.0, 1),
    Metric("undercovered", "cases that cover less than 85 % [%]", 100.0, 1),
)


def coverage_table(rows: Iterable[Mapping[str, Any]], world: str, metric_key: str) -> Table:
    """One metric: methods down, maps and regions across; the paper's figure in brackets where it has one.

    Rows of several seeds become their mean and standard deviation.
    """
    metric = next(m for m in METRICS if m.key == metric_key)
    cells: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        if row["world"] == world:
            value = metric.factor * float(row[metric.key])
            cells.setdefault((row["map"], row["method"], row["region"]), []).append(value)
    if not cells:
        raise InputError(f"no coverage rows of the world {world!r}; allowed is a file with at least one")
    maps = maps_in_order(world, {key[0] for key in cells})
    body = []
    for method in in_order({key[1] for key in cells}):
        line = [look(method).name]
        for map_name in maps:
            for region in REGIONS:
                mine = mean_and_spread(cells.get((map_name, method, region), []), metric.decimals)
                theirs = paper_number(world, metric.key, method, map_name, region)
                line.append(mine if theirs is None else f"{mine} ({theirs:.{metric.decimals}f})")
        body.append(tuple(line))
    header = ("method", *(f"{m} {region}" for m in maps for region in REGIONS))
    return Table(metric.title + (" (the paper's)" if published(world, metric.key) else ""), header, body)


def mean_and_spread(values: Sequence[float], decimals: int) -> str:
    """For a cell: the mean, and the standard deviation of more than one."""
    if not values:
        return "-"
    spread = f" ± {stdev(values):.{decimals}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{decimals}f}{spread}"


def planning_tables(rows: Sequence[Mapping[str, Any]], world: str) -> list[Table]:
    """Success, steps and the one-step promise in closed loop: methods down, maps across."""
    here = [row for row in rows if row["world"] == world]
    if not here:
        raise InputError(f"no planning rows of the world {world!r}; allowed is a file with at least one")
    maps = maps_in_order(world, {r["map"] for r in here})
    methods = in_order({r["method"] for r in here})
    runs = {(m, k): [r for r in here if r["map"] == m and r["method"] == k] for m in maps for k in methods}

    def table(title: str, cell: Callable[[list[Mapping[str, Any]]], str], paper_key: str | None) -> Table:
        body = []
        for method in methods:
            line = [look(method).name]
            for map_name in maps:
                theirs = paper_text(world, paper_key, method, map_name) if paper_key else None
                line.append(cell(runs[map_name, method]) + (f" ({theirs})" if theirs else ""))
            body.append(tuple(line))
        known = paper_key is not None and published(world, paper_key)
        return Table(title + (" (the paper's)" if known else ""), ("method", *maps), body)

    return [
        table("success [%]", _success, "success"),
        table("collision [%]", lambda episodes: _share(episodes, "collision"), None),
        table("steps of successful episodes, mean ± standard deviation", _steps, "steps"),
        table("real steps that left their one-step region, ID, OOD [%]", _left_region, None),
        table("time of a control step: median, 99th percentile [ms]", _step_time, None),
    ]


def _success(episodes: list[Mapping[str, Any]]) -> str:
    return _share(episodes, "success")


def _share(episodes: list[Mapping[str, Any]], outcome: str) -> str:
    if not episodes:
        return "-"
    share = 100 * fmean(episode["outcome"] == outcome for episode in episodes)
    return f"{share:.1f}"


def _steps(episodes: list[Mapping[str, Any]]) -> str:
    return mean_and_spread([float(e["steps"]) for e in episodes if e["outcome"] == "success"], 1)


def _left_region(episodes: list[Mapping[str, Any]]) -> str:
    shares = []
    for ground in ("id", "ood"):
        steps = sum(int(e[f"{ground}_steps"]) for e in episodes)
        left = sum(int(e[f"{ground}_left_region"]) for e in episodes)
        shares.append(f"{100 * left / steps:.1f}" if steps else "-")
    return ", ".join(shares)


def _step_time(episodes: list[Mapping[str, Any]]) -> str:
    if not episodes:
        return "-"
    middle = median(float(e["step_ms_p50"]) for e in episodes)
    return f"{middle:.0f}, {median(float(e['step_ms_p99']) for e in episodes):.0f}"


def guarded_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Drives on ice of other slip with a monitor that only reports, and with one whose policy acts."""
    of: dict[tuple[str, str], dict[str, list[Mapping[str, Any]]]] = {}
    for row in rows:
        of.setdefault((row["method"], row["slip"]), {}).setdefault(row["answer"], []).append(row)
    body = [
        (
            look(method).name,
            slip,
            *(_share(drives[answer], outcome) for outcome in ("collision", "success") for answer in _ANSWERS),
            *(_left_after(drives[answer]) for answer in _ANSWERS),
        )
        for (method, slip), drives in of.items()
    ]
    header = tuple(
        f"{what} [%]: {answer}"
        for what in ("collision", "success", "left region on ice after the alarm")
        for answer in _ANSWERS
    )
    return Table("drives with a monitor", ("method", "slip", *header), body)


_ANSWERS = ("keep", "adapt")


def _left_after(episodes: list[Mapping[str, Any]]) -> str:
    steps = sum(int(e["ood_steps_after"]) for e in episodes)
    return f"{100 * sum(int(e['ood_left_region_after']) for e in episodes) / steps:.1f}" if steps else "-"


def dataset_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """How many transitions and test cases each map has, the paper's in brackets where it tells."""

    def beside_paper(row: Mapping[str, Any], column: str) -> str:
        paper = published(row["world"], "datasets")
        known = column in paper and row["map"] in paper["maps"]
        theirs = f" ({paper[column][paper['maps'].index(row['map'])]:,})" if known else ""
        return f"{int(row[column]):,}{theirs}"

    maps = maps_in_order(rows[0]["world"], {row["map"] for row in rows})
    in_place = {name: place for place, name in enumerate(maps)}
    body = [
        (
            f"{row['map']}, seed {row['seed']}",
            beside_paper(row, "transitions"),
            f"{int(row['footprints']):,}",
            beside_paper(row, "test_cases"),
        )
        for row in sorted(rows, key=lambda row: (in_place[row["map"]], int(row["seed"])))
    ]
    return Table("data (the paper's)", ("map", "transitions", "distinct footprints", "test cases"), body)


def benchmark_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Speed as ratios, both sides measured in the same run."""
    body = [
        (
            row["name"],
            f"{float(row['ours']):.3g} {row['unit']}",
            f"{float(row['peer']):.3g} {row['unit']}",
            row["peer_name"],
            f"{float(row['ratio']):.2f}",
        )
        for row in rows
    ]
    return Table("speed", ("name", "ours", "alternative", "which", "ratio"), body)


def scale_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """What each stage of a calibration by parts costs: a line a stage, a column for what was measured."""
    logs = sorted({row["logs"] for row in rows}, key=lambda name: (name[0].isdigit(), len(name), name))
    stages: dict[tuple[str, str], dict[str, str]] = {
        (row["stage"], f"{row['unit']} a {row['per']}"): {} for row in rows
    }
    for row in rows:
        stages[row["stage"], f"{row['unit']} a {row['per']}"][row["logs"]] = f"{float(row['cost']):.3g}"
    body = [
        (f"{stage} [{unit}]", *(costs.get(name, "") for name in logs))
        for (stage, unit), costs in stages.items()
    ]
    return Table("cost on one core", ("stage", *logs), body)


def limits_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Figures that have a limit of their own."""
    body = [
        (
            row["name"],
            row["wanted"].replace(">=", "≥ ").replace("<=", "≤ "),
            f"{float(row['got']):.3g}",
            row["trials"],
        )
        for row in rows
    ]
    return Table("figures with limits", ("name", "wanted", "got", "trials"), body)


def print_table(table: Table) -> None:
    """To the terminal; whole, however narrow it is."""
    rich = RichTable(*table.header, title=table.title)
    for row in table.rows:
        rich.add_row(*row)
    Console(width=max(Console().width, 32 + 23 * (len(table.header) - 1))).print(rich)
