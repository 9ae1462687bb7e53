"""From a bag's messages to steps: moments dt apart, with state, action and images at each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ocular.data.importers.bag_contents import Contents, Messages, Picture
from ocular.data.importers.base import Account, Steps
from ocular.data.importers.timeline import SECOND, Clock, Stamps, grid, held, in_order, interpolate, nearest
from ocular.errors import InputError, check_choice
from ocular.footprint import Intrinsics
from ocular.records import Floats, Indices

Layout = Literal["planar", "pose", "pose_velocity"]
DEFAULT_ACTIONS: dict[str, tuple[str, ...]] = {
    "planar": ("linear.x", "linear.y"),
    "pose": ("linear.x", "angular.z"),
    "pose_velocity": ("linear.x", "angular.z"),
}
HOLD = 0.5  # [s]; what robots' base controllers commonly wait for the next command
_ENTRIES = [f"{part}.{axis}" for part in ("linear", "angular") for axis in "xyz"]


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """How messages become steps."""

    dt: float
    """The model's time step [s]."""
    tolerance: float = 0.05
    """How far a depth image may be from its moment, and labels from their depth image [s]; odometry's
    messages may be twice as far apart."""
    hold: float | None = None
    """How long a command stays in force [s]; unless told, 0.5 s, or two time steps if that is more."""
    state: Layout = "planar"
    """planar: x, y, vx, vy in the world. pose: x, y, yaw. pose_velocity: x, y, yaw, speed ahead, yaw rate."""
    velocity: Literal["twist", "pose"] = "twist"
    """Velocities as odometry has them, or from the last two poses."""
    action: tuple[str, ...] = ()
    """Entries of a command; unless told, linear.x linear.y for planar states, else linear.x angular.z."""

    def __post_init__(self) -> None:
        check_choice("state", self.state, tuple(DEFAULT_ACTIONS))
        for entry in self.action:
            check_choice("action", entry, _ENTRIES)
        for name, value in {"dt": self.dt, "tolerance": self.tolerance, "hold": self.held_for}.items():
            if not 1e-6 <= value < 1e6:
                raise InputError(f"{name} is {value} s; allowed is a positive number")

    @property
    def entries(self) -> tuple[str, ...]:
        """Of a command, that make up an action."""
        return self.action or DEFAULT_ACTIONS[self.state]

    @property
    def held_for(self) -> float:
        """How long a command stays in force [s]."""
        return max(HOLD, 2 * self.dt) if self.hold is None else self.hold


@dataclass(frozen=True, slots=True)
class Pairs:
    """Depth and label image of each view, by their place among the topic's messages; ascending in time."""

    depth: Indices
    label: Indices
    depth_received: Indices  # of all messages of the topic [ns]
    label_received: Indices

    def received(self, views: Indices) -> tuple[int, int]:
        """When the first and the last image of these views came [ns]."""
        times = (self.depth_received[self.depth[views]], self.label_received[self.label[views]])
        return int(np.min(times)), int(np.max(times))


def match(options: Resampling, found: Contents, lens: Intrinsics, account: Account) -> tuple[Steps, Pairs]:
    """Steps whose state, action and images are there, and which images these are."""
    dt, tolerance = round(options.dt * SECOND), round(options.tolerance * SECOND)
    clock, times, poses = _odometry(found.odometry, account)
    moments, follows, gaps = grid(times, dt, 2 * tolerance)
    if clock.jumps:
        account.notes.append(f"the clock was set back {clock.jumps} times; no step crosses that")
    if gaps > clock.jumps:
        account.notes.append(
            f"{gaps - clock.jumps} gaps of more than {2 * options.tolerance} s between odometry messages; no "
            "step "
            "crosses them"
        )
    states, headings = _states(options, interpolate(times, poses, moments), follows)
    first = np.flatnonzero(follows)
    now, then = states[first], states[first + 1]
    if (
        options.state != "planar"
    ):  # a yaw within half a turn of 0, the next one as far from it as the robot turned
        turns = 2 * np.pi * np.round(headings[first] / (2 * np.pi))
        now[:, 2] -= turns
        then[:, 2] -= turns
    actions = _actions(options, found.commands, clock, moments[first], account)
    steps = Steps(now, actions, then, _wrapped(headings[first]), views=first)
    steps = account.keep(
        steps, np.isfinite(actions).all(axis=1), f"no command in force (each for {options.held_for} s)"
    )
    steps = account.keep(
        steps, np.isfinite(steps.states).all(axis=1), "no earlier pose to take a velocity from"
    )
    depth = nearest(clock.times(found.depths.stamps), moments, tolerance)
    return _with_images(options, found, lens, clock, depth, steps, account)


def _odometry(messages: Messages, account: Account) -> tuple[Clock, Indices, Floats]:
    """The clock, and times and poses that are finite and in order."""
    values, stamps = messages.numbers(6), messages.stamps
    finite = np.isfinite(values).all(axis=1)
    _note(account, finite, "odometry messages not finite")
    stamps = Stamps(stamps.received[finite], stamps.made[finite])
    clock = Clock.of(stamps)
    times = clock.times(stamps)
    kept = in_order(times)
    _note(account, kept, "odometry messages out of order or twice")
    return clock, times[kept], values[finite][kept]


def _note(account: Account, kept: Any, what: str) -> None:
    count = len(kept) - int(np.count_nonzero(kept))
    if count:
        account.notes.append(f"{count} {what}, left out")


def _states(options: Resampling, poses: Floats, follows: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """States at each moment, NaN where a velocity is not known, and headings that never jump by a turn."""
    x, y, yaw, ahead, left, rate = poses.T
    yaw = np.unwrap(yaw)
    if options.velocity == "pose":
        changes = np.full((3, len(x)), np.nan)
        changes[:, 1:] = np.where(follows[:-1], np.diff([x, y, yaw], axis=1) / options.dt, np.nan)
        vx, vy, rate = changes
        ahead = vx * np.cos(yaw) + vy * np.sin(yaw)
    else:
        vx = ahead * np.cos(yaw) - left * np.sin(yaw)
        vy = ahead * np.sin(yaw) + left * np.cos(yaw)
    columns = {
        "planar": (x, y, vx, vy),
        "pose": (x, y, yaw),
        "pose_velocity": (x, y, yaw, ahead, rate),
    }
    return np.stack(columns[options.state], axis=1), yaw


def _wrapped(angles: Floats) -> Floats:
    return np.asarray(angles - 2 * np.pi * np.round(angles / (2 * np.pi)))


def _actions(
    options: Resampling, commands: Messages, clock: Clock, starts: Indices, account: Account
) -> Floats:
    """The mean command in force during each step, NaN where there is none."""
    values = commands.numbers(len(options.entries))
    finite = np.isfinite(values).all(axis=1)
    _note(account, finite, "commands not finite")
    times = clock.times(commands.stamps)[finite]
    kept = in_order(times)
    _note(account, kept, "commands out of order or at the same time")
    dt, hold = round(options.dt * SECOND), round(options.held_for * SECOND)
    return held(times[kept], values[finite][kept], starts, dt, hold)


def _with_images(
    options: Resampling,
    found: Contents,
    lens: Intrinsics,
    clock: Clock,
    depth: Indices,
    steps: Steps,
    account: Account,
) -> tuple[Steps, Pairs]:
    """The steps that see something, their views numbered, and the images of each view."""
    label, near = np.full(len(depth), -1), depth >= 0
    depth_times = clock.times(found.depths.stamps)[depth[near]]
    label[near] = nearest(clock.times(found.labels.stamps), depth_times, round(options.tolerance * SECOND))
    for what, index, messages in (("depth", depth, found.depths), ("label", label, found.labels)):
        good = index[steps.views] >= 0
        steps = account.keep(steps, good, f"no {what} image within {options.tolerance} s")
        reasons = np.array([_complaint(what, picture, lens) for picture in messages.values], object)
        for reason in sorted(set(reasons) - {""}):
            steps = account.keep(steps, reasons[index[steps.views]] != reason, reason)
    images = np.stack([depth[steps.views], label[steps.views]], axis=1)
    pairs, views = np.unique(images, axis=0, return_inverse=True)
    received = found.depths.stamps.received, found.labels.stamps.received
    return replace(steps, views=views.reshape(-1).astype(np.int64)), Pairs(
        pairs[:, 0], pairs[:, 1], *received
    )


def _complaint(what: str, picture: Picture, lens: Intrinsics) -> str:
    """Why an image cannot be used, or nothing."""
    if picture.complaint:
        return f"{what} image with {picture.complaint}"
    if (picture.width, picture.height) != (lens.width, lens.height):
        size = f"{picture.width} x {picture.height} pixels"
        return f"{what} image of {size}, unlike the camera info's {lens.width} x {lens.height}"
    return ""
