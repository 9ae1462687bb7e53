"""How much a calibration hangs on the encoder's seed and on the tree's settings: rows of sensitivity.csv.

Every environment is left out in turn, as for a choice of settings, but all logs take part: it says what their
calibration is like, not what it should be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ocular.calibrators import Calibration, LocalCalibrator
from ocular.calibrators.trials import Trials
from ocular.evaluation.rows import Provenance, Row, RowFile
from ocular.experiments.jobs import gibibytes
from ocular.partition import TreeSettings
from ocular.progress import progress
from ocular.records import Logs

_KEY = ("method", "left_out", "seed", "max_depth", "min_leaf")
_COLUMNS = (*_KEY, "cells", "steps", "coverage", "unbounded", "gap", "xi")


@dataclass(frozen=True)
class Question:
    """What a calibration's settings are varied to."""

    seeds: Sequence[int]  # of the encoder; split and tree keep the calibration's
    trees: Sequence[TreeSettings]
    alpha: float | Fraction


def sensitivity(
    calibrator: LocalCalibrator,
    calibration: Calibration,
    logs: Logs,
    question: Question,
    output: Path,
    training: Mapping[str, Any],
) -> list[Row]:
    """Rows of all that was asked for; those that are in the folder already are not made again."""
    split_seed = int(calibration.provenance["seed"])
    made_with = {
        "environments": list(logs.environments),
        "transitions": len(logs),
        "training": dict(training),  # of the encoders
        "alpha": float(question.alpha),
        "features": calibrator.features,
        "split_seed": split_seed,
    }
    rows = RowFile(output / "sensitivity.csv", _KEY, _COLUMNS)
    provenance = Provenance(output / "sensitivity.provenance.json", made_with)
    known = rows.keys()
    seen = calibrator.look(logs, calibration.model, calibration.state_cov, seed=split_seed)
    trials = Trials(calibrator, seen, np.arange(len(logs)), question.alpha, split_seed)
    trials.check(question.trees)
    seeds = question.seeds if calibrator.encoder is not None else question.seeds[:1]
    jobs = [(place, seed) for place in trials.places for seed in seeds]
    wanted = {(place, seed): _keys(calibrator, place, seed, question.trees) for place, seed in jobs}
    made: list[str] = []
    with provenance.start(workers=1) as record, progress("fitting again", len(jobs)) as advance:
        for (place, seed), keys in wanted.items():
            if not keys <= known:
                tried = trials.without(place, question.trees, encoder_seed=seed)
                found = [{"method": calibrator.method, **trial.plain()} for trial in tried]
                made += [" ".join(key) for key in sorted(keys)]
                record.record(made, gibibytes({}))
                rows.add(found)
            advance(f"without {place}, seed {seed}")
    asked = set().union(*wanted.values())
    return [row for row in rows.read() if tuple(row[name] for name in _KEY) in asked]


def _keys(
    calibrator: LocalCalibrator, place: str, seed: int, trees: Sequence[TreeSettings]
) -> set[tuple[str, ...]]:
    return {(calibrator.method, place, str(seed), str(tree.max_depth), str(tree.min_leaf)) for tree in trees}
