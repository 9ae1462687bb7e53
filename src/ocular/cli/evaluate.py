"""`ocular evaluate`: a calibration on logs that it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from ocular.evaluation.account import Performance
    from ocular.evaluation.misses import Evaluation


@dataclass(frozen=True)
class Evaluate:
    """Test a calibration on other logs: coverage, volume, and where it misses.

    Volume is relative to that of the uncalibrated region (NoCP's): logs know no oracle.
    """

    calibration: Annotated[Path, tyro.conf.Positional]
    """A file that `ocular calibrate` wrote."""
    store: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Directories of transition stores."""
    alpha: float = 0.1
    """Test the regions that hold the next state with probability 1 - alpha."""
    without: tuple[str, ...] = ()
    """Parts of the stores to leave out."""
    most: int = 10
    """How many cells to print, those with most misses first."""
    json: bool = False
    """Print everything as one JSON object."""

    def run(self) -> None:
        """Test, and print."""
        from ocular.calibrators import load
        from ocular.cli.calibrate import load_stores
        from ocular.cli.output import print_json
        from ocular.errors import check_probability
        from ocular.evaluation.misses import evaluate

        check_probability("--alpha", self.alpha)
        calibration = load(self.calibration)
        found = evaluate(calibration, load_stores(self.store, self.without), self.alpha)
        if self.json:
            print_json(found)
        else:
            self._print(found)

    def _print(self, found: Evaluation) -> None:
        from ocular.cli.output import print_warnings, result
        from ocular.report import print_table
        from ocular.report.tables import Table

        print(f"{self.calibration}, {found.method}, alpha = {found.alpha:g}: {result(found.total)}")
        columns = ("transitions", "missed", "coverage", "volume")
        places = [(name, *_row(tested)) for name, tested in found.environments.items()]
        print_table(Table("by environment", ("environment", *columns), places))
        worst = sorted(found.cells.items(), key=lambda item: -item[1].missed)[: self.most]
        cells = [(str(cell), *_row(tested)) for cell, tested in worst]
        print_table(Table(f"by cell, {len(worst)} of {len(found.cells)}", ("cell", *columns), cells))
        print_warnings(found.warnings)


def _row(tested: Performance) -> tuple[str, ...]:
    from ocular.cli.output import number

    return f"{tested.transitions:,}", f"{tested.missed:,}", f"{tested.coverage:.1%}", number(tested.volume)
