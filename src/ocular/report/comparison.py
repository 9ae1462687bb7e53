"""The paper's tables and ours, cell by cell: how far apart, in which direction, and why where it is known."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from statistics import fmean
from typing import Any, Literal

from ocular.report.paper import REGIONS, maps_in_order, paper_number, paper_text
from ocular.report.style import in_order
from ocular.report.tables import mean_and_spread

Verdict = Literal["same", "nearer", "farther", "alone"]
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What a metric is compared by."""

    key: str  # of the rows and of the paper's block
    title: str
    factor: float
    decimals: int
    ideal: float  # what one would wish for
    wish: str  # the ideal in words
    tolerance: float  # differences up to this count as none
    relative: bool = False  # the tolerance is a share of the paper's figure


COVERAGE = (
    Yardstick("coverage", "Marginal coverage [%]", 100.0, 1, 90.0, "the 90 % wanted", 1.0),
    Yardstick(
        "volume",
        "Median volume of the regions, relative to the oracle's",
        1.0,
        2,
        1.0,
        "the oracle",
        0.05,
        True,
    ),
)
ALONE = (
    Yardstick("gap", "Mean distance of a case's own coverage from 90 % [points]", 100.0, 1, 0.0, "none", 0.0),
    Yardstick("undercovered", "Cases that cover less than 85 % [%]", 100.0, 1, 0.0, "none", 0.0),
)
SUCCESS = Yardstick("success", "Success [%]", 100.0, 1, 100.0, "always arriving", 5.0)
STEPS = Yardstick("steps", "Steps of successful episodes", 1.0, 1, 0.0, "fewer", 0.05, True)


@dataclass(frozen=True, slots=True)
class Cell:
    """Ours, the paper's, and what to make of the difference."""

    ours: str
    paper: str | None
    verdict: Verdict
    why: str
    difference: str = ""  # ours less the paper's, where it counts


@dataclass(frozen=True, slots=True)
class Comparison:
    """One table."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, list[Cell]]]  # by method
    notes: list[str]  # why some methods differ


def compare_coverage(rows: Rows, world: str) -> list[Comparison]:
    """Coverage and volume beside the paper's; gap and badly covered cases, which the paper lacks."""
    maps = maps_in_order(world, {row["map"] for row in rows})
    columns = [(m, region) for m in maps for region in REGIONS]
    cells: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        cells.setdefault((row["method"], row["map"], row["region"]), []).append(row)
    methods = in_order({row["method"] for row in rows})

    def cell(yardstick: Yardstick, method: str, column: tuple[str, str]) -> Cell:
        ours = [yardstick.factor * float(r[yardstick.key]) for r in cells.get((method, *column), [])]
        return judge(yardstick, ours, paper_number(world, yardstick.key, method, *column))

    return [
        Comparison(
            yardstick.title,
            tuple(" ".join(column) for column in columns),
            [(method, [cell(yardstick, method, column) for column in columns]) for method in methods],
            notes(world, yardstick.key),
        )
        for yardstick in (*COVERAGE, *ALONE)
    ]


def compare_planning(rows: Rows, world: str) -> list[Comparison]:
    """Success and steps beside the paper's."""
    maps = maps_in_order(world, {row["map"] for row in rows})
    methods = in_order({row["method"] for row in rows})
    measures: tuple[tuple[Yardstick, Callable[[Rows], list[float]]], ...] = (
        (SUCCESS, lambda episodes: [100 * fmean(e["outcome"] == "success" for e in episodes)]),
        (STEPS, lambda episodes: [float(e["steps"]) for e in episodes if e["outcome"] == "success"]),
    )

    def cell(yardstick: Yardstick, measure: Callable[[Rows], list[float]], method: str, name: str) -> Cell:
        episodes = [row for row in rows if row["method"] == method and row["map"] == name]
        theirs = paper_text(world, yardstick.key, method, name)
        return judge(yardstick, measure(episodes) if episodes else [], _number(theirs), theirs)

    return [
        Comparison(
            yardstick.title,
            tuple(maps),
            [(method, [cell(yardstick, measure, method, name) for name in maps]) for method in methods],
            notes(world, yardstick.key),
        )
        for yardstick, measure in measures
    ]


def judge(
    yardstick: Yardstick, ours: Sequence[float], paper: float | None, printed: str | None = None
) -> Cell:
    """Compare the mean of ours with the paper's figure."""
    mine = mean_and_spread(ours, yardstick.decimals)
    theirs = printed or (None if paper is None else f"{paper:.{yardstick.decimals}f}")
    if paper is None or not ours:
        return Cell(mine, theirs, "alone", _why_alone(bool(ours), theirs))
    mean = fmean(ours)
    tolerance = yardstick.tolerance * (abs(paper) if yardstick.relative else 1.0)
    tolerance = max(tolerance, 10.0**-yardstick.decimals)  # the paper's last digit is rounded
    apart = abs(mean - paper)
    if apart <= tolerance + 1e-9:
        return Cell(mine, theirs, "same", f"within {tolerance:.{yardstick.decimals}f} of the paper's")
    direction = "above" if mean > paper else "below"
    nearer = abs(mean - yardstick.ideal) < abs(paper - yardstick.ideal)
    word: Verdict = "nearer" if nearer else "farther"
    way = f"{'nearer to' if nearer else 'farther from'} the ideal: {yardstick.wish}"
    why = f"{apart:.{yardstick.decimals}f} {direction} the paper's, {way}"
    return Cell(mine, theirs, word, why, f"{mean - paper:+.{yardstick.decimals}f}".replace("-", "\u2212"))


def _why_alone(have_ours: bool, theirs: str | None) -> str:
    if have_ours:
        return "none of the paper's runs arrived" if theirs == "-" else "the paper has no such figure"
    return "none of our runs arrived" if theirs else "no rows yet"


def _number(printed: str | None) -> float | None:
    return None if printed in (None, "-") else float(str(printed).split(" ")[0])


def notes(world: str, key: str) -> list[str]:
    """Why figures differ, where it is known; the text is in notes.toml."""
    known = tomllib.loads(files("ocular.report").joinpath("notes.toml").read_text())
    found: list[str] = known.get(world, {}).get(key, [])
    return found


def limits() -> list[str]:
    """What the results do not show."""
    known = tomllib.loads(files("ocular.report").joinpath("notes.toml").read_text())
    found: list[str] = known["limits"]
    return found
