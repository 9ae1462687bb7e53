"""Renew the tables in documents from the rows: python -m ocular.report README.md docs/*.md."""

from __future__ import annotations

import sys
from pathlib import Path

from ocular.report.documents import with_tables

for name in sys.argv[1:]:
    path = Path(name)
    path.write_text(with_tables(path.read_text(), Path("results")))
