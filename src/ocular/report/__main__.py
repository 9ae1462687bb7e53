"""Renew what documents show from the rows: python -m ocular.report README.md docs/*.md docs/assets/*.png."""

from __future__ import annotations

import sys
from pathlib import Path

from ocular.errors import OcularError
from ocular.report.documents import with_tables
from ocular.report.exports import export_picture
from ocular.report.results import Results

RESULTS = Path("results")

try:
    for path in map(Path, sys.argv[1:]):
        if path.suffix == ".png":
            export_picture(Results.of(RESULTS), path)
        else:
            path.write_text(with_tables(path.read_text(), RESULTS))
except OcularError as error:
    sys.exit(f"ocular.report: {error}")
