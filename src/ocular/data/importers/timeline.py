"""Messages with time stamps, matched and resampled: arrays of stamps [ns] in, arrays of steps out.

A bag's messages come in the order in which they were received, which never runs backwards. Their own stamps
may: a clock is set, a simulation starts again. Where odometry's stamps fall back, all that follows is put on
a later stretch of one time axis, so that stamps from before and after never match each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ocular.records import Floats, Indices

SECOND = 1_000_000_000  # [ns]
_FALLS_BACK = SECOND  # a stamp this much before an earlier one is a clock that was set; less is disorder
_APART = 10**6 * SECOND  # between the stretches before and after


@dataclass(frozen=True, slots=True)
class Stamps:
    """When messages of one topic were received, and what they say of when they were made [ns]."""

    received: Indices
    made: Indices  # 0 where messages carry no stamp


@dataclass(frozen=True, slots=True)
class Clock:
    """One time axis for all topics, led by odometry's."""

    odometry: Stamps
    starts: Indices  # when the first odometry of each stretch was received [ns]
    offsets: Indices  # what is added to the stamps of each stretch [ns]

    @classmethod
    def of(cls, odometry: Stamps) -> Clock:
        """Find where stamps fall back."""
        made, starts, offsets = odometry.made, [0], [0]
        highest = last = int(made[0]) if len(made) else 0
        for received, stamp in zip(odometry.received.tolist(), made.tolist(), strict=True):
            if stamp < last - _FALLS_BACK:
                starts.append(received)
                offsets.append(highest + _APART - stamp)
            last = stamp
            highest = max(highest, stamp + offsets[-1])
        return cls(odometry, np.array(starts, np.int64), np.array(offsets, np.int64))

    @property
    def jumps(self) -> int:
        """How often the clock was set back."""
        return len(self.starts) - 1

    def times(self, stamps: Stamps) -> Indices:
        """On the common axis. A message without a stamp is as old as odometry's clock said when it came."""
        made = stamps.made
        if not made.any() and len(made) and len(self.odometry.made):
            last = (np.searchsorted(self.odometry.received, stamps.received, "right") - 1).clip(0)
            made = stamps.received + (self.odometry.made - self.odometry.received)[last]
        stretch = (np.searchsorted(self.starts, stamps.received, "right") - 1).clip(0)
        return np.asarray(made + self.offsets[stretch])


def in_order(times: Indices) -> npt.NDArray[np.bool_]:
    """Whether each is later than all before it."""
    return times > np.maximum.accumulate(np.concatenate([[np.iinfo(np.int64).min], times[:-1]]))


def grid(times: Indices, dt: int, longest: int) -> tuple[Indices, npt.NDArray[np.bool_], int]:
    """Moments dt apart [ns], anew after each longer gap; whether the next one follows; how many gaps."""
    breaks = np.flatnonzero(np.diff(times) > longest) + 1
    moments, follows = [], []
    for stretch in np.split(times, breaks):
        if len(stretch):
            count = int((stretch[-1] - stretch[0]) // dt) + 1
            moments.append(stretch[0] + dt * np.arange(count))
            follows.append(np.arange(count) < count - 1)
    if not moments:
        return np.empty(0, np.int64), np.empty(0, np.bool_), 0
    return np.concatenate(moments), np.concatenate(follows), len(breaks)


def interpolate(times: Indices, values: Floats, moments: Indices) -> Floats:
    """Values (n, c) at moments inside of the times; exact where a moment is a time."""
    if not len(times):
        return np.empty((len(moments), values.shape[1]))
    before = (np.searchsorted(times, moments, "right") - 1).clip(0)
    after = (before + 1).clip(max=len(times) - 1)
    share = (moments - times[before]) / np.maximum(times[after] - times[before], 1)
    change = share[:, None] * (values[after] - values[before])
    return np.asarray(np.where(share[:, None] == 0, values[before], values[before] + change))


def held(times: Indices, values: Floats, starts: Indices, dt: int, longest: int) -> Floats:
    """Means over [start, start + dt) of values (n, c) that hold until the next, `longest` at most; or NaN."""
    missing = np.full((len(starts), values.shape[1]), np.nan)
    if not len(times):
        return missing
    first = np.searchsorted(times, starts, "right") - 1
    last = np.searchsorted(times, starts + dt, "left") - 1
    widths = np.diff(times)
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values[:-1] * widths[:, None], axis=0)])

    def until(moments: Indices, index: Indices) -> Floats:
        return np.asarray(total[index] + values[index] * (moments - times[index])[:, None])

    mean = (until(starts + dt, last.clip(0)) - until(starts, first.clip(0))) / dt
    mean = np.where((first == last)[:, None], values[first.clip(0)], mean)
    stale = np.concatenate([[0], np.cumsum(widths > longest)])  # gaps before each value
    good = (first >= 0) & (starts - times[first] <= longest) & (starts + dt - times[last] <= longest)
    good &= stale[last.clip(0)] == stale[first.clip(0)]
    return np.where(good[:, None], mean, missing)


def nearest(times: Indices, moments: Indices, tolerance: int) -> Indices:
    """Index of the time nearest to each moment, or -1 where none is within the tolerance; in any order."""
    if not len(times):
        return np.full(len(moments), -1)
    order: Any = np.argsort(times, kind="stable")
    sorted_times = times[order]
    after = np.searchsorted(sorted_times, moments).clip(0, len(times) - 1)
    before = (after - 1).clip(0)
    closer = np.abs(sorted_times[before] - moments) <= np.abs(sorted_times[after] - moments)
    found = np.where(closer, before, after)
    near = np.abs(sorted_times[found] - moments) <= tolerance
    return np.where(near, order[found], -1).astype(np.int64)
