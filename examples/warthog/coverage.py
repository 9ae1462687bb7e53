"""Who is tested on what, and what comes of it.

There are four ways to leave a part of the logs out, from the easiest to the hardest:
mixed    a fifth of a run's commands, drawn at random: exchangeable by construction, and no robot's lot
block    a fifth of a run: successive windows, while the rest of that drive calibrates
run      a whole run, where its terrain has others: the same ground on another drive
terrain  all runs on a terrain: ground whose name no log has shown (not asphalt, which tunes the model)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from examples.warthog.logs import DT, WINDOWS, Logs
from scipy.stats import chi2

from ocular import CalibrationWarning, Calibrator, NoCP, SplitCP, ocular, ocular_no_encode
from ocular.dynamics import Unicycle, fit_unicycle
from ocular.encoding import untrained
from ocular.partition import TreeSettings
from ocular.records import Indices
from ocular.seeds import stream

Flags = npt.NDArray[np.bool_]

ALPHA = 0.1
FIFTHS = 5
COMMAND = 3  # windows that one command lasts; nothing here cuts one in two
TUNING = 99  # windows at the start of each asphalt run that tune the model and calibrate nothing
LEAF = 150  # fewest steps that a cell of the tree is drawn by; the other sizes show what it matters
LEAVES = (50, LEAF, 300)
METHODS = ("nocp", "splitcp", "ocular_no_encode", "ocular")


def calibrators() -> dict[tuple[str, int], Calibrator]:
    """By method and size of leaf."""
    made: dict[tuple[str, int], Calibrator] = {("nocp", 0): NoCP(), ("splitcp", 0): SplitCP()}
    for leaf in LEAVES:
        # The action is in the body frame already: speeds forward and around, commanded and now.
        how: dict[str, Any] = {"features": "action", "tree": TreeSettings(min_leaf=leaf), "fallback": True}
        made["ocular_no_encode", leaf] = ocular_no_encode(**how)
        made["ocular", leaf] = ocular(untrained, **how)
    return made


@dataclass(frozen=True)
class Fold:
    """Rows of the logs, by what they are for; no window is in two of them."""

    split: str
    terrain: str
    held_out: str  # the run, the part of it, or the terrain
    tuning: Indices
    calibration: Indices
    test: Indices

    @property
    def name(self) -> tuple[str, str, str]:
        """How its rows are known."""
        return self.split, self.terrain, self.held_out


def folds(logs: Logs) -> Iterator[Fold]:
    """Every run, block and terrain in turn."""
    run, names = logs.transitions.environment, logs.transitions.environments
    terrain = np.array(logs.terrain_of_run)[run]
    tuning = (terrain == "asphalt") & (logs.window < TUNING)

    def fold(split: str, ground: str, held_out: str, test: Flags, apart: Flags) -> Fold:
        parts = (tuning & ~apart, ~test & ~(tuning & ~apart), test)
        return Fold(split, ground, held_out, *(np.flatnonzero(part) for part in parts))

    for number, ground in enumerate(logs.terrain_of_run):
        here = run == number
        if logs.terrain_of_run.count(ground) > 1:
            yield fold("run", ground, names[number], here, apart=here)
        in_order = np.arange(WINDOWS // COMMAND)
        shuffled = stream(0, "warthog", names[number]).permutation(in_order)
        for split, commands in (("block", in_order), ("mixed", shuffled)):
            for k, part in enumerate(np.split(commands, FIFTHS)):
                test = here & np.isin(logs.window // COMMAND, part)
                yield fold(split, ground, f"{names[number]}, part {k + 1}", test, apart=here)
    for ground in sorted(set(logs.terrain_of_run) - {"asphalt"}):
        yield fold("terrain", ground, ground, terrain == ground, apart=terrain == ground)


def tuned(logs: Logs, fold: Fold) -> Unicycle:
    """The model: a differential drive whose gains and noise asphalt has set."""
    return fit_unicycle(logs.transitions.take(fold.tuning), DT)


def gains(logs: Logs) -> list[dict[str, Any]]:
    """A model fitted to each run, for looking only: how much of the wheels' motion becomes the robot's."""
    rows = []
    for number, run in enumerate(logs.transitions.environments):
        here = logs.transitions.take(np.flatnonzero(logs.transitions.environment == number))
        model = fit_unicycle(here, DT)
        forward, left, turn = (float(error) for error in np.sqrt(np.diag(model.Q)))
        rows.append(
            {
                "terrain": logs.terrain_of_run[number],
                "run": run,
                "forward_gain": float(model.G[0, 2]),
                "turn_gain": float(model.G[2, 3]),
                "commanded_forward_gain": float(model.G[0, 0]),
                "commanded_turn_gain": float(model.G[2, 1]),
                "forward_error": forward,
                "left_error": left,
                "turn_error": turn,
            }
        )
    return rows


def evaluate(logs: Logs, fold: Fold, seed: int) -> list[dict[str, Any]]:
    """One row a method: how often the next pose is inside, and how large the region is beside NoCP's."""
    model, test = tuned(logs, fold), logs.transitions.take(fold.test)
    known = logs.transitions.take(fold.calibration)
    command = test.environment * WINDOWS + logs.window[fold.test] // COMMAND
    rows = []
    for (method, leaf), calibrator in calibrators().items():
        # The logged poses are what they are: their errors are part of the noise that the tuning found.
        calibration = calibrator.fit(known, model, np.zeros((3, 3)), seed=seed)
        with warnings.catch_warnings():  # cells with too few steps take their parent's threshold
            warnings.simplefilter("ignore", CalibrationWarning)
            threshold = calibration.threshold(test.inputs, ALPHA)
        inside = calibration.score(test) <= threshold
        scale = threshold / chi2.isf(ALPHA, model.state_dim)
        rows.append(
            {
                "split": fold.split,
                "terrain": fold.terrain,
                "held_out": fold.held_out,
                "method": method,
                "leaf": leaf,
                "seed": seed,
                "steps": len(test),
                "coverage": float(inside.mean()),
                "scatter": _standard_error(inside, command),
                "volume": float(np.median(scale ** (model.state_dim / 2))),
                "cells": calibration.partition.n_cells,
            }
        )
    return rows


def _standard_error(inside: Flags, command: Indices) -> float:
    """Of the mean, with commands as the units: steps under one command are not independent looks."""
    _, unit = np.unique(command, return_inverse=True)
    means = np.bincount(unit, weights=inside) / np.bincount(unit)
    return float(means.std(ddof=1) / np.sqrt(len(means)))
