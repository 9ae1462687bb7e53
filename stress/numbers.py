"""Odd numbers: covariances near-singular and singular, scores 1e-300 to 1e300, alpha 1e-6 to 0.999.

No answer is NaN, what is inside by exact arithmetic is inside, and where nothing is known infinity is said.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

from ocular.errors import CalibrationWarning, OcularError
from ocular.experiments.limits import Limited
from ocular.progress import progress
from ocular.seeds import stream
from stress.number_checks import CHECKS, LOST, NAN

TRIALS, QUICK_TRIALS = 20_000, 400
UNDOCUMENTED = "undocumented error"
FIGURES = {"nan_results": NAN, "regions_not_containing": LOST, "undocumented_errors": UNDOCUMENTED}


def numbers(scratch: Path, quick: bool) -> Iterator[Limited]:  # noqa: ARG001
    """How many trials went wrong in which way; each is printed."""
    trials = QUICK_TRIALS if quick else TRIALS
    problems = list(troubles(trials))
    for name, kind in FIGURES.items():
        bad = [(check, word) for check, found, word in problems if found == kind]
        for check, word in bad:
            print(f"{check}: {kind}: {word}")
        yield Limited(f"numbers_{name}", "<=0", len(bad), trials)


def troubles(trials: int, seed: int = 0) -> Iterator[tuple[str, str, str]]:
    """Every check in turn: its name, the kind of trouble, and a word on it. Warnings are trouble too."""
    names = list(CHECKS)
    with progress("Odd numbers", trials) as advance, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CalibrationWarning)  # too few scores: infinity is said
        for number in range(trials):
            name = names[number % len(names)]
            try:
                for kind, word in CHECKS[name](stream(seed, "numbers", number)):
                    yield name, kind, f"trial {number}: {word}"
            except OcularError:
                pass
            except Exception as error:  # whatever else comes out of it is what this looks for
                yield name, UNDOCUMENTED, f"trial {number}: {error!r}"
            advance(name)
