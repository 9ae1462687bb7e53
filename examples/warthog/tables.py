"""Rows as tables, for the terminal and for the README."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import fmean

from examples.warthog.coverage import LEAF, METHODS

from ocular.errors import check_choice
from ocular.evaluation.rows import Row
from ocular.report.documents import markdown
from ocular.report.tables import Table

NAMES = {
    "nocp": "NoCP",
    "splitcp": "SplitCP",
    "ocular_no_encode": "OCULAR, blind",
    "ocular": "OCULAR",
}
TITLES = {
    "mixed": "A random fifth of a run left out",
    "block": "A fifth in a row left out",
    "run": "A whole run left out",
    "terrain": "A whole terrain left out",
}
_BLOCK = re.compile(r"(<!-- warthog: ([\w ]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def tables(rows: Sequence[Row], gains: Sequence[Row]) -> dict[str, Table]:
    """One table for each way to leave logs out, and of the sand's runs, the tree's size and the gains."""
    usual = [row for row in rows if row["leaf"] in ("0", str(LEAF))]
    made = {split: _table(title, _picked(usual, split=split), "terrain") for split, title in TITLES.items()}
    sand = _picked(usual, split="run", terrain="sand")
    made["sand"] = _table("Sand, run by run, each left out whole", sand, "held_out")
    sizes = _picked(rows, split="mixed", method="ocular")
    title = "OCULAR with other sizes of leaf, a random fifth left out"
    made["leaf"] = _table(title, sizes, "leaf", "terrain")
    header = tuple(name.replace("_", " ") for name in gains[0])
    body = [tuple(v if n in ("terrain", "run") else f"{float(v):.2f}" for n, v in r.items()) for r in gains]
    made["gains"] = Table("Gains and errors of a model fitted to each run [1, m, m, rad]", header, body)
    return made


def with_tables(text: str, made: Mapping[str, Table]) -> str:
    """The document with every marked table made anew."""

    def renew(match: re.Match[str]) -> str:
        check_choice("the table", match.group(2), made.keys())
        return f"{match.group(1)}{markdown(made[match.group(2)])}\n{match.group(3)}"

    return _BLOCK.sub(renew, text)


def _picked(rows: Sequence[Row], **wanted: str) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _table(title: str, rows: Sequence[Row], down: str, across: str = "method") -> Table:
    """Means over seeds and over what was left out; in brackets the lowest and highest part of it.

    Where there is but one part, what its coverage would scatter by chance alone.
    """
    names = {row[down] for row in rows}
    lines = sorted(names, key=int) if down == "leaf" else sorted(names)
    columns = METHODS if across == "method" else tuple(sorted({row[across] for row in rows}))
    body = [(line, *(_cell(_picked(rows, **{down: line, across: c})) for c in columns)) for line in lines]
    header = (down.replace("_", " "), *(NAMES.get(c, c) for c in columns))
    return Table(f"{title}: coverage [%]; volume", header, body)


def _cell(rows: Sequence[Row]) -> str:
    parts = [_picked(rows, held_out=part) for part in {row["held_out"] for row in rows}]
    coverage = [100 * fmean(float(row["coverage"]) for row in part) for part in parts]
    volume = fmean(float(row["volume"]) for row in rows)
    scatter = 100 * fmean(float(row["scatter"]) for row in rows)
    several = f" ({min(coverage):.0f} to {max(coverage):.0f})"
    spread = several if len(coverage) > 1 else f" ± {scatter:.1f}"
    return f"{fmean(coverage):.1f}{spread}; {volume:.1f}"
