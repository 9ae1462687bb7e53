"""The Warthog's logs as transitions: half-second steps, with the ground's name as all that is seen.

The lidar poses in the file stand still between updates, mostly 0.1 to 0.3 s apart, and jump at the next. They
are put on straight lines between updates; steps keep away from a window's ends, where one update is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ocular import InputError, Inputs, Transitions
from ocular.errors import check_shape
from ocular.footprint import uniform_footprints
from ocular.records import Floats

RATE = 20  # [Hz]
STARTS, LENGTH = (5, 15, 25), 10  # samples: three steps of half a second in a window of two seconds
DT = LENGTH / RATE  # [s]
WHEEL_RADIUS, BASELINE = 0.3, 1.08  # [m]
WINDOWS = 300  # in a run


@dataclass(frozen=True)
class Logs:
    """All runs in one; `transitions.environment` is the run, `window` the place in it."""

    transitions: Transitions
    window: np.ndarray[tuple[int], np.dtype[np.int64]]  # (n,)
    terrain_of_run: tuple[str, ...]


def read_logs(path: Path) -> Logs:
    """Read the arrays of warthog.npz; loading runs no code."""
    try:
        with np.load(path, allow_pickle=False) as file:
            runs, terrains = file["run"].tolist(), file["terrain"].tolist()
            pose, cmd, wheel = (file[name].astype(np.float64) for name in ("pose", "cmd", "wheel"))
    except (OSError, KeyError, ValueError) as error:
        raise InputError(
            f"cannot read {path}: {error}; allowed is warthog.npz as README.md describes it"
        ) from error
    for name, array, entries in (("pose", pose, 3), ("cmd", cmd, 2), ("wheel", wheel, 2)):
        check_shape(name, array, (len(runs), WINDOWS, 2 * RATE, entries))
    pose = between_updates(pose)
    starts = np.array(STARTS)
    # What is known before a step: the speeds that are commanded, and those at which the wheels turn now.
    known = np.concatenate([body_speeds(cmd), body_speeds(wheel)], axis=-1)[:, :, starts]
    grounds = tuple(dict.fromkeys(terrains))
    steps_of_run = WINDOWS * len(starts)
    run = np.repeat(np.arange(len(runs)), steps_of_run)
    states = pose[:, :, starts].reshape(-1, 3)
    inputs = Inputs(
        states=states,
        actions=known.reshape(-1, 4),
        headings=states[:, 2].copy(),
        footprint_index=np.array([grounds.index(t) for t in terrains])[run],
        footprints=uniform_footprints(grounds),
    )
    transitions = Transitions(inputs, pose[:, :, starts + LENGTH].reshape(-1, 3), run, tuple(runs))
    window = np.tile(np.repeat(np.arange(WINDOWS), len(starts)), len(runs))
    return Logs(transitions, window, tuple(terrains))


def body_speeds(wheels: Floats) -> Floats:
    """(left, right) wheel speeds [rad/s] as (forward [m/s], turn [rad/s]), if they did not slip."""
    left, right = wheels[..., 0], wheels[..., 1]
    return np.stack([WHEEL_RADIUS * (left + right) / 2, WHEEL_RADIUS * (right - left) / BASELINE], axis=-1)


def between_updates(poses: Floats) -> Floats:
    """Poses (..., samples, 3) on straight lines between the samples at which they change."""
    flat = poses.reshape(-1, *poses.shape[-2:])
    samples = np.arange(flat.shape[1])
    smooth = np.empty_like(flat)
    for window, held in zip(smooth, flat, strict=True):
        fresh = np.concatenate([[0], 1 + np.flatnonzero((np.diff(held, axis=0) != 0).any(axis=1))])
        held = np.column_stack([held[:, :2], np.unwrap(held[:, 2])])
        for entry in range(3):
            window[:, entry] = np.interp(samples, fresh, held[fresh, entry])
    return smooth.reshape(poses.shape)
