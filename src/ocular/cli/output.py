"""What commands print: for people, or as one JSON object for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ocular.evaluation.account import Performance
    from ocular.report.tables import Table


def print_results(tables: Sequence[Table], files: Mapping[str, Sequence[Path]], *, as_json: bool) -> None:
    """Tables, and the files that were written by what they are."""
    if as_json:
        named = {what: [str(path) for path in paths] for what, paths in files.items()}
        print(json.dumps({"tables": [asdict(table) for table in tables], "files": named}))
        return
    from ocular.report import print_table

    for table in tables:
        print_table(table)
    width = max(map(len, files))
    for what, paths in files.items():
        print(f"{what + ':':{width + 1}} {', '.join(map(str, paths))}")


def print_json(record: Any) -> None:
    """One JSON object of a dataclass; JSON knows no infinity, so that is the text "inf"."""
    print(json.dumps(plain(asdict(record)), ensure_ascii=False))


def plain(value: Any) -> Any:
    """The same without infinities."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def number(value: float) -> str:
    """Three digits, or in words that there is no bound."""
    return "unbounded" if math.isinf(value) else f"{value:.3g}"


def result(tested: Performance) -> str:
    """A test in words."""
    return (
        f"{tested.coverage:.1%} of {tested.transitions:,} covered, volume {number(tested.volume)} × NoCP's"
        + (f", {tested.unbounded:.1%} unbounded" if tested.unbounded else "")
    )


def print_warnings(warnings: tuple[str, ...]) -> None:
    """One line each."""
    for warning in warnings:
        print(f"warning: {warning}")
