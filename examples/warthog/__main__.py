"""Coverage on a real robot, by terrain: python -m examples.warthog warthog.npz

Rows go to results/warthog/coverage.csv, with what made them beside it; those there are not made again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from examples.warthog.coverage import ALPHA, FIFTHS, LEAVES, TUNING, calibrators, evaluate, folds, gains
from examples.warthog.logs import LENGTH, STARTS, read_logs
from examples.warthog.tables import tables, with_tables

from ocular import OcularError
from ocular.evaluation.rows import Provenance, RowFile, read_rows
from ocular.experiments.jobs import gibibytes
from ocular.progress import progress
from ocular.report.tables import Table, print_table

ROOT = Path(__file__).parents[2]
KEY = ("split", "terrain", "held_out", "method", "leaf", "seed")
COLUMNS = (*KEY, "steps", "coverage", "scatter", "volume", "cells")
GAINS = (
    *("terrain", "run", "forward_gain", "turn_gain", "commanded_forward_gain", "commanded_turn_gain"),
    *("forward_error", "left_error", "turn_error"),
)
CONFIG = {
    "alpha": ALPHA,
    "fifths": FIFTHS,
    "starts": STARTS,
    "step_samples": LENGTH,
    "leaves": LEAVES,
    "tuning_windows": TUNING,
}


def reproduce(data: Path, folder: Path, seeds: list[int]) -> dict[str, Table]:
    """Make the rows that are missing; returns all of them as tables."""
    rows = RowFile(folder / "coverage.csv", KEY, COLUMNS)
    provenance = Provenance(folder / "coverage.provenance.json", CONFIG)
    provenance.check()
    logs, there, made_by = read_logs(data), rows.keys(), calibrators().keys()
    missing = [
        (fold, seed)
        for fold in folds(logs)
        for seed in seeds
        if not {(*fold.name, method, str(leaf), str(seed)) for method, leaf in made_by} <= there
    ]
    if missing:
        with provenance.start(workers=1) as record, progress("leaving out", len(missing)) as advance:
            made = []
            for fold, seed in missing:
                made += evaluate(logs, fold, seed)
                advance(fold.held_out)
            what = f"{len(missing)} parts left out, seeds {' '.join(map(str, seeds))}"
            record.record([what], gibibytes({}))
            RowFile(folder / "gains.csv", ("terrain", "run"), GAINS).add(gains(logs))
            rows.add(made)
    return tables(rows.read(), read_rows(folder / "gains.csv"))


def main() -> None:
    """Read the arguments, make rows, print tables."""
    parser = argparse.ArgumentParser(prog="python -m examples.warthog", description=__doc__)
    parser.add_argument("data", type=Path, help="the file warthog.npz")
    parser.add_argument("--output", type=Path, default=ROOT / "results", help="where rows go")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of splits and trees")
    parser.add_argument("--readme", action="store_true", help="renew the tables in the README")
    arguments = parser.parse_args()
    try:
        made = reproduce(arguments.data, arguments.output / "warthog", arguments.seeds)
    except OcularError as error:
        sys.exit(f"warthog: {error}")
    for table in made.values():
        print_table(table)
    if arguments.readme:
        readme = Path(__file__).with_name("README.md")
        readme.write_text(with_tables(readme.read_text(), made))


if __name__ == "__main__":
    main()
