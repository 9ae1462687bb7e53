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
    guarded_table,
    limits_table,
    planning_tables,
    scale_table,
)
from ocular.report.trials import sensitivity_table

_BLOCK = re.compile(r"(<!-- table: ([\w /.]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def _coverage(world: str, metric: str) -> Callable[[list[Row]], Table]:
    return lambda rows: coverage_table(rows, world, metric)


def _planning(world: str, number: int) -> Callable[[list[Row]], Table]:
    return lambda rows: planning_tables(rows, world)[number]


def _tables_of(world: str) -> Mapping[str, tuple[str, Callable[[list[Row]], Table]]]:
    """The tables that both worlds have."""
    return {
        **{f"{world} {m.key}": (f"{world}/coverage.csv", _coverage(world, m.key)) for m in METRICS},
        **{
            f"{world} {name}": (f"{world}/planning.csv", _planning(world, i))
            for i, name in enumerate(PLANNING)
        },
        f"{world} datasets": (f"{world}/datasets.csv", dataset_table),
    }


def _under_stress(row: Row) -> bool:
    """Whether a figure comes from `make stress`; the others are from the benchmarks."""
    return row["name"].partition("_")[0] in STRESSES


STRESSES = ("monitor", "novelty", "drives", "faults", "artefacts", "numbers", "fuzz", "load", "soak")
PLANNING = ("success", "collision", "steps", "left region", "step time")
TABLES: Mapping[str, tuple[str, Callable[[list[Row]], Table]]] = {
    # name in the mark: (file of rows, how to make the table)
    **_tables_of("planar"),
    **_tables_of("camera"),
    **{
        f"planar other frame {m.key}": ("planar/coverage_other_frame.csv", _coverage("planar", m.key))
        for m in METRICS
    },
    **{
        f"planar stepped {name}": ("planar/planning_stepped.csv", _planning("planar", i))
        for i, name in enumerate(PLANNING)
    },
    **{f"camera noisy {m.key}": ("camera/coverage_noisy.csv", _coverage("camera", m.key)) for m in METRICS},
    "guarded": ("planar/guarded.csv", guarded_table),
    "planar sensitivity": ("planar/sensitivity.csv", sensitivity_table),
    "benchmarks": ("benchmarks.csv", benchmark_table),
    "limits": ("stress.csv", lambda rows: limits_table([r for r in rows if not _under_stress(r)])),
    "stress": ("stress.csv", lambda rows: limits_table([r for r in rows if _under_stress(r)])),
    "scale": ("scale.csv", scale_table),
}


def with_tables(text: str, results: Path) -> str:
    """The document with every marked table made anew from the rows."""

    def renew(match: re.Match[str]) -> str:
        name = match.group(2)
        if name not in TABLES:
            raise InputError(f"a document asks for the table {name!r}; allowed are {', '.join(TABLES)}")
        file, make = TABLES[name]
        if not (results / file).exists():
            raise InputError(
                f"{results / file} is not there; allowed is a folder that `make reproduce` wrote"
            )
        return f"{match.group(1)}{markdown(make(read_rows(results / file)))}\n{match.group(3)}"

    return _BLOCK.sub(renew, text)


def markdown(table: Table) -> str:
    """One table for a document."""
    lines = [table.header, tuple("---" for _ in table.header), *table.rows]
    return f"**{table.title}**\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
