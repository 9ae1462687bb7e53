"""From columns of states and actions to steps: next states given, or those of the next row of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ocular.data.importers.base import RESTING, Account, Steps
from ocular.errors import InputError, check_shape
from ocular.records import Floats

_NO_HEADING = "where the robot looked is not known (at rest, or not finite)"


def steps_of(
    columns: Mapping[str, npt.NDArray[Any]], dt: float | None, tolerance: float, account: Account
) -> Steps:
    """Steps of the columns states, actions and, as far as given, next_states, headings, run and time.

    The view of a step is the number of its row.
    """
    states, actions = columns["states"], columns["actions"]
    n = len(states)
    for name, values in columns.items():
        if len(values) != n:
            raise InputError(f"{name} has {len(values)} rows; allowed are {n}, as states have")
    views = np.arange(n)
    runs = _runs(columns.get("run"), n)
    headings = columns.get("headings")
    if headings is None:
        # Rows that do not follow each other tell nothing of where a resting robot looks.
        headings = headings_of(states, runs if "next_states" not in columns else views)
    else:
        check_shape("headings", headings, (n,))
    if "next_states" in columns:
        steps = Steps(states, actions, columns["next_states"], headings, views)
    else:
        follows = np.flatnonzero(runs[1:] == runs[:-1])
        steps = Steps(
            states[follows], actions[follows], states[follows + 1], headings[follows], views[follows]
        )
        if "time" in columns:
            if dt is None:
                raise InputError("there are times, but no time step; allowed is a positive one (--dt) [s]")
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is no time step either
                apart = np.diff(columns["time"])[follows]
                good = np.abs(apart - dt) <= tolerance
            steps = account.keep(steps, good, f"next row not {dt} s later, to {tolerance} s")
        account.notes.append(f"{len(np.unique(runs))} runs, the last row of each without a next state")
    steps = account.keep_finite(steps, ("states", "actions", "next_states"))
    return account.keep(steps, np.isfinite(steps.headings), _NO_HEADING)


def _runs(run: npt.NDArray[Any] | None, n: int) -> npt.NDArray[np.int64]:
    """The number of each row's run, counting anew where it changes."""
    if run is None:
        return np.zeros(n, np.int64)
    return np.concatenate([[0], np.cumsum(run[1:] != run[:-1])]).astype(np.int64)[:n]


def headings_of(states: Floats, runs: npt.NDArray[np.int64]) -> Floats:
    """Where robots look that look where they go [rad]; at rest, the last heading of the run, or NaN."""
    if states.shape[1] == 3:
        return np.asarray(states[:, 2])
    if states.shape[1] != 4:
        raise InputError(
            f"states have {states.shape[1]} entries and there are no headings; allowed without them are "
            "(x, y, yaw) and (x, y, vx, vy)"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        moving = np.hypot(states[:, 2], states[:, 3]) > RESTING
    last = np.maximum.accumulate(np.where(moving, np.arange(len(states)), -1))
    known = (last >= 0) & (runs[last] == runs)
    headings = np.arctan2(states[last, 3], states[last, 2])
    return np.where(known, headings, np.nan)
