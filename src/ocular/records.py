"""The few frozen records that stages exchange, each checked where it is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ocular.errors import (
    LARGEST,
    InputError,
    check_array,
    check_finite,
    check_names,
    check_number,
    check_shape,
    check_type,
    check_whole,
)

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.int64]

OCCUPIED = "OCCUPIED"
UNKNOWN = "UNKNOWN"
MOST_CELLS = 2**24  # of a footprint
NEAREST, FARTHEST = 1e-6, 1e6  # [m], that a footprint may reach


Numbers = TypeVar("Numbers", bound=npt.NDArray[Any])


def for_kernels(array: Numbers) -> Numbers:
    """The same in C order and writable, copied only where it is not: kernels are compiled for these alone.

    Any other layout would compile them anew, for a second or more in the middle of a drive.
    """
    return array if array.flags.c_contiguous and array.flags.writeable else array.copy()


@dataclass(frozen=True, slots=True)
class Gaussian:
    """A batch of Gaussians; one covariance may serve all means.

    Entries named in `angles` live on the circle: of any difference from the mean, only the shorter way round
    counts. A model that predicts a heading says so here, and scores and regions follow.
    """

    mean: Floats  # (..., d)
    cov: Floats  # (..., d, d), broadcast against mean
    angles: tuple[int, ...] = ()  # entries that are angles [rad]

    def __post_init__(self) -> None:
        check_array("a Gaussian's mean", self.mean)
        check_array("a Gaussian's cov", self.cov)
        d = self.mean.shape[-1] if self.mean.ndim else 0
        if self.cov.ndim < 2 or self.cov.shape[-2:] != (d, d):
            raise InputError(
                f"a Gaussian's cov has shape {self.cov.shape}; allowed is (..., {d}, {d}), "
                f"to fit a mean of shape {self.mean.shape}"
            )
        if self.cov.ndim > 2:
            _check_together("a Gaussian's cov", self.cov.shape[:-1], self.mean)
        if not isinstance(self.angles, tuple) or not all(
            isinstance(entry, int) and entry in range(d) for entry in self.angles
        ):
            raise InputError(f"a Gaussian's angles are {self.angles}; allowed are entries 0 to {d - 1}")

    def deviation(self, points: Floats) -> Floats:
        """How far points (..., d) lie from the mean, entry by entry; angles are wrapped to [-pi, pi)."""
        check_array("points", points)
        if points.shape != self.mean.shape:
            _check_together("points", points.shape, self.mean)
        difference = points - self.mean
        if self.angles:
            entries = list(self.angles)
            difference[..., entries] = (difference[..., entries] + np.pi) % (2 * np.pi) - np.pi
        return difference


@dataclass(frozen=True, slots=True)
class FootprintGeometry:
    """The polar grid in front of the robot on which a footprint is sampled: cell centres, no pose."""

    angles: int = 240
    ranges: int = 80
    field_of_view: float = 2 * np.pi / 3  # [rad], centred on the heading
    max_range: float = 0.65  # [m]

    def __post_init__(self) -> None:
        for name in ("angles", "ranges"):
            check_whole(f"a footprint's number of {name}", getattr(self, name), least=1)
        if self.angles * self.ranges > MOST_CELLS:
            raise InputError(
                f"a footprint of {self.angles} x {self.ranges} cells; allowed are at most {MOST_CELLS:,}"
            )
        check_number("field_of_view", self.field_of_view)
        check_number("max_range", self.max_range)
        for name in ("field_of_view", "max_range"):  # of NumPy's kinds, too
            object.__setattr__(self, name, float(getattr(self, name)))
        if not 0 < self.field_of_view <= 2 * np.pi:
            raise InputError(
                f"field_of_view is {self.field_of_view} rad; allowed is 0 < field_of_view <= 2 pi"
            )
        if not NEAREST <= self.max_range <= FARTHEST:
            raise InputError(f"max_range is {self.max_range} m; allowed are {NEAREST:g} to {FARTHEST:g}")

    @property
    def bearings(self) -> Floats:
        """Angle of each ray from the heading, counter-clockwise positive [rad], shape (angles,)."""
        return ((np.arange(self.angles) + 0.5) / self.angles - 0.5) * self.field_of_view

    @property
    def distances(self) -> Floats:
        """Distance of each cell centre along its ray [m], shape (ranges,)."""
        return (np.arange(self.ranges) + 0.5) / self.ranges * self.max_range


@dataclass(frozen=True, slots=True)
class Footprints:
    """Robot-frame polar label images: what was around the robot, in one shared vocabulary."""

    cells: Labels  # (m, angles, ranges), indices into labels
    labels: tuple[str, ...]
    geometry: FootprintGeometry

    def __post_init__(self) -> None:
        check_labels(self.labels)
        check_type("geometry", self.geometry, FootprintGeometry)
        check_array("footprint cells", self.cells)
        if self.cells.dtype != np.uint8:
            raise InputError(f"footprint cells have dtype {self.cells.dtype}; allowed is uint8")
        check_shape("footprint cells", self.cells, (None, self.geometry.angles, self.geometry.ranges))
        highest = int(self.cells.max(initial=0))
        if highest >= len(self.labels):
            names = ", ".join(f"{i}={name}" for i, name in enumerate(self.labels))
            raise InputError(f"footprint cells hold the label {highest}; allowed are {names}")

    def __len__(self) -> int:
        return len(self.cells)


def _check_rows(rows: npt.NDArray[Any], n: int) -> None:
    """Raise unless these are numbers of rows, or a flag for each."""
    check_shape("rows", rows, (n if _are_flags(rows) else None,))
    if not _are_flags(rows):
        check_array("rows", rows, "iu")
        if len(rows) and not (rows.min() >= -n and rows.max() < n):
            raise InputError(f"rows run from {rows.min()} to {rows.max()}; allowed are 0 to {n - 1}")


def _are_flags(rows: object) -> bool:
    return isinstance(rows, np.ndarray) and rows.dtype == np.bool_


def _check_together(name: str, shape: tuple[int, ...], mean: Floats) -> None:
    """Raise unless there is one a mean, or the batches broadcast."""
    try:
        fits = shape[-1:] == mean.shape[-1:] and bool(np.broadcast_shapes(mean.shape, shape))
    except ValueError:
        fits = False
    if not fits:
        raise InputError(
            f"{name} of the batch shape {shape}; allowed is what broadcasts against means of {mean.shape}"
        )


def check_labels(labels: tuple[str, ...]) -> None:
    """Raise unless the labels are distinct and hold the two names that every stage relies on."""
    check_type("labels", labels, tuple)
    check_names("labels", labels)
    missing = [name for name in (OCCUPIED, UNKNOWN) if name not in labels]
    texts = all(isinstance(name, str) for name in labels)
    if not texts or missing or len(set(labels)) != len(labels) or len(labels) > 255:
        raise InputError(
            f"labels are {labels}; allowed are up to 255 distinct names with {OCCUPIED} and {UNKNOWN}"
        )


@dataclass(frozen=True, slots=True)
class Inputs:
    """What is known before a step: X_raw of the paper. Many rows may look at the same footprint."""

    states: Floats  # (n, d)
    actions: Floats  # (n, m)
    headings: Floats  # (n,) [rad], where the robot looks, in the world frame
    footprint_index: Indices  # (n,) rows of footprints
    footprints: Footprints

    def __post_init__(self) -> None:
        check_shape("states", self.states, (None, None))
        check_type("footprints", self.footprints, Footprints)
        n = len(self.states)
        check_shape("actions", self.actions, (n, None))
        check_shape("headings", self.headings, (n,))
        check_shape("footprint_index", self.footprint_index, (n,))
        for name in ("states", "actions", "headings"):
            check_array(name, getattr(self, name))
            check_finite(name, getattr(self, name), LARGEST)
        check_array("footprint_index", self.footprint_index, "iu")
        if n and not (self.footprint_index.min() >= 0 and self.footprint_index.max() < len(self.footprints)):
            raise InputError(
                f"footprint_index runs from {self.footprint_index.min()} to {self.footprint_index.max()}; "
                f"allowed are 0 to {len(self.footprints) - 1}"
            )

    def __len__(self) -> int:
        return len(self.states)

    def take(self, rows: npt.NDArray[Any]) -> Inputs:
        """The same inputs, these rows only; the footprints stay shared."""
        _check_rows(rows, len(self))
        return replace(
            self,
            states=self.states[rows],
            actions=self.actions[rows],
            headings=self.headings[rows],
            footprint_index=self.footprint_index[rows],
        )


@dataclass(frozen=True, slots=True)
class Transitions:
    """Logged steps: what was known before, what came out, and in which environment."""

    inputs: Inputs
    next_states: Floats  # (n, d)
    environment: Indices  # (n,) indices into environments
    environments: tuple[str, ...]

    def __post_init__(self) -> None:
        check_type("inputs", self.inputs, Inputs)
        check_shape("next_states", self.next_states, self.inputs.states.shape)
        check_array("next_states", self.next_states)
        check_finite("next_states", self.next_states, LARGEST)
        check_shape("environment", self.environment, (len(self.inputs),))
        check_array("environment", self.environment, "iu")
        check_names("environments", self.environments)
        if len(self) and not (
            self.environment.min() >= 0 and self.environment.max() < len(self.environments)
        ):
            raise InputError(
                f"environment runs from {self.environment.min()} to {self.environment.max()}; "
                f"allowed are 0 to {len(self.environments) - 1}: {self.environments}"
            )

    def __len__(self) -> int:
        return len(self.next_states)

    def take(self, rows: npt.NDArray[Any]) -> Transitions:
        """The same transitions, these rows only."""
        _check_rows(rows, len(self))
        return replace(
            self,
            inputs=self.inputs.take(rows),
            next_states=self.next_states[rows],
            environment=self.environment[rows],
        )


@dataclass(frozen=True, slots=True)
class LogPart:
    """Transitions that are read when they are needed, and again when they are needed again."""

    transitions: int
    load: Callable[[], Transitions]  # on a cluster it travels to another machine, so it must pickle


@dataclass(frozen=True, slots=True)
class Logs:
    """Transitions that may be too many to hold at once: each part fits into memory, all need not."""

    parts: tuple[LogPart, ...]
    environments: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InputError("logs of no parts; allowed is at least one")

    def __len__(self) -> int:
        return sum(part.transitions for part in self.parts)

    @classmethod
    def of(cls, transitions: Transitions | Logs) -> Logs:
        """Transitions in memory are logs of one part."""
        if isinstance(transitions, Logs):
            return transitions
        check_type("transitions", transitions, Transitions)
        return cls((LogPart(len(transitions), lambda: transitions),), transitions.environments)


def concatenate(parts: list[Transitions]) -> Transitions:
    """Join transitions of several environments; they must speak of the same labels and geometry."""
    check_type("parts", parts, (list, tuple))
    for part in parts:
        check_type("a part", part, Transitions)
    if not parts:
        raise InputError("no transitions to join; allowed is at least one set")
    first = parts[0].inputs.footprints
    for part in parts[1:]:
        other = part.inputs.footprints
        if other.geometry != first.geometry:
            raise InputError(
                f"environment {part.environments} has the footprint geometry {other.geometry}; "
                f"allowed is that of {parts[0].environments}: {first.geometry}"
            )
        if other.labels != first.labels:
            raise InputError(
                f"environment {part.environments} has the labels {other.labels}; allowed are those of "
                f"{parts[0].environments}: {first.labels}"
            )
    environments = tuple(dict.fromkeys(name for part in parts for name in part.environments))
    footprint_offsets = np.cumsum([0] + [len(part.inputs.footprints) for part in parts[:-1]])
    inputs = Inputs(
        states=np.concatenate([p.inputs.states for p in parts]),
        actions=np.concatenate([p.inputs.actions for p in parts]),
        headings=np.concatenate([p.inputs.headings for p in parts]),
        footprint_index=np.concatenate(
            [p.inputs.footprint_index + k for p, k in zip(parts, footprint_offsets, strict=True)]
        ),
        footprints=replace(first, cells=np.concatenate([p.inputs.footprints.cells for p in parts])),
    )
    return Transitions(
        inputs=inputs,
        next_states=np.concatenate([p.next_states for p in parts]),
        environment=np.concatenate(
            [np.array([environments.index(e) for e in p.environments])[p.environment] for p in parts]
        ),
        environments=environments,
    )
