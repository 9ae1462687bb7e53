"""What commands print: for people, or as one JSON object for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
