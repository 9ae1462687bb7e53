"""Run every stress test, or those named, and write their figures: python -m stress [--quick] [part ...]."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from ocular.experiments.limits import Limited, recorded
from stress.artefacts import artefacts
from stress.faults import faults
from stress.fuzzing import fuzzing
from stress.load import queries
from stress.numbers import numbers
from stress.soak import soak

# Part -> its figures, made in a scratch folder; quick ones are coarser and go to out/quick.
Part = Callable[[Path, bool], Iterator[Limited]]
PARTS: dict[str, Part] = {
    "load": queries,
    "soak": soak,
    "fuzzing": fuzzing,
    "faults": faults,
    "artefacts": artefacts,
    "numbers": numbers,
}


def main(arguments: list[str]) -> None:
    """Measure, print and write; what falls short makes the run fail, after everything is written."""
    quick, names = "--quick" in arguments, [name for name in arguments if name != "--quick"]
    unknown = sorted(set(names) - PARTS.keys())
    if unknown:
        sys.exit(f"unknown parts {unknown}; allowed are {list(PARTS)}")
    output = Path("out/quick" if quick else "results")
    missed = []
    for name in names or PARTS:
        with tempfile.TemporaryDirectory(prefix=f"ocular-{name}-") as scratch:
            for figure in recorded(PARTS[name](Path(scratch), quick), output, workers=1):
                print(figure, flush=True)
                missed += [] if figure.holds else [figure.name]
    print(f"wrote {output / 'stress.csv'}")
    if missed:
        sys.exit(f"not met: {', '.join(missed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
