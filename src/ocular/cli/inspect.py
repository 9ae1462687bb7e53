"""`ocular inspect`: a calibration's tree in words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from ocular.calibrators import Calibration
    from ocular.evaluation.leaves import Leaf


@dataclass(frozen=True)
class Inspect:
    """Print a calibration's cells in words, those that trust the model least first.

    Cells bound latents, which mean nothing to people. With a store, it is said what the footprints of a
    cell show ahead, in the middle third of the view, where that differs from all others by 20 % or more.
    """

    calibration: Annotated[Path, tyro.conf.Positional]
    """A file that `ocular calibrate` wrote."""
    store: tuple[Path, ...] = ()
    """Transition stores to take views from, such as those that were calibrated on."""
    alpha: float = 0.1
    """The scales are those of regions that hold the next state with probability 1 - alpha."""
    most: int = 20
    """How many cells to print."""
    json: bool = False
    """Print all cells, one JSON object each."""

    def run(self) -> None:
        """Load, and print."""
        from ocular.calibrators import load
        from ocular.cli.calibrate import load_stores
        from ocular.cli.output import print_json
        from ocular.errors import check_probability
        from ocular.evaluation.leaves import leaves

        check_probability("--alpha", self.alpha)
        calibration = load(self.calibration)
        found = leaves(calibration, self.alpha, load_stores(self.store) if self.store else None)
        if self.json:
            for leaf in found:
                print_json(leaf)
        else:
            self._print(calibration, found)

    def _print(self, calibration: Calibration, found: list[Leaf]) -> None:
        from ocular.cli.output import number
        from ocular.report import print_table
        from ocular.report.trials import selection_table

        known = calibration.provenance
        count = known.get("transitions")
        logs = f" on {count:,} transitions of {', '.join(known['environments'])}" if count else ""
        cells = "1 cell" if len(found) == 1 else f"{len(found)} cells"
        print(f"{self.calibration}: {calibration.method}{logs}; {cells}, xi at alpha = {self.alpha:g}")
        for leaf in found[: self.most]:
            print(f"{leaf.words}: xi {number(leaf.xi)}, {leaf.points:,} points")
        if len(found) > self.most:
            print(f"... and {len(found) - self.most} more: --most {len(found)}")
        if (selection := known.get("selection")) is not None:
            print_table(selection_table(selection))
