"""Tables inside documents: made from rows, between two marks, never typed by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from ocular.errors import InputError
from ocular.evaluation.rows import Row, read_rows
from ocular.report.tables import (
    METRICS,
    Table,
    benchmark_table,
    coverage_table,
    dataset_table,
    planning_tables,
)

_BLOCK = re.compile(r"(<!-- table: ([\w /.]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def _coverage(world: str, metric: str) -> Callable[[list[Row]], Table]:
    return lambda rows: coverage_table(rows, world, metric)


def _planning(world: str, number: int) -> Callable[[list[Row]], Table]:
    return lambda rows: planning_tables(rows, world)[number]


WORLDS = ("planar", "camera")
PLANNING = ("success", "collision", "steps", "left region", "step time")
TABLES: Mapping[str, tuple[str, Callable[[list[Row]], Table]]] = {
    # name in the mark: (file of rows, how to make the table)
    **{f"{w} {m.key}": (f"{w}/coverage.csv", _coverage(w, m.key)) for w in WORLDS for m in METRICS},
    **{
        f"planar other frame {m.key}": ("planar/coverage_other_frame.csv", _coverage("planar", m.key))
        for m in METRICS
    },
    **{
        f"{w} {name}": (f"{w}/planning.csv", _planning(w, i))
        for w in WORLDS
        for i, name in enumerate(PLANNING)
    },
    "planar datasets": ("planar/datasets.csv", dataset_table),
    "benchmarks": ("benchmarks.csv", benchmark_table),
}


def with_tables(text: str, results: Path) -> str:
    """The document with every marked table made anew from the rows."""

    def renew(match: re.Match[str]) -> str:
        name = match.group(2)
        if name not in TABLES:
            raise InputError(f"a document asks for the table {name!r}; allowed are {', '.join(TABLES)}")
        file, make = TABLES[name]
        return f"{match.group(1)}{markdown(make(read_rows(results / file)))}\n{match.group(3)}"

    return _BLOCK.sub(renew, text)


def markdown(table: Table) -> str:
    """One table for a document."""
    lines = [table.header, tuple("---" for _ in table.header), *table.rows]
    return f"**{table.title}**\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
