"""Transitions for calibration, and cases for testing, from a grid over states and actions (section V.A)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ocular.errors import InputError, check_number, check_whole
from ocular.progress import progress
from ocular.records import Floats, Footprints, Indices, Inputs, Labels, Transitions
from ocular.worlds.map_file import PLANAR_LABELS
from ocular.worlds.planar import Flags, PlanarWorld, heading

LOOKS = 256  # between two words on the progress
MOST_VALUES = 1000  # along an axis
DECIMALS = 12  # of positions [m] and headings [rad]: two poses that agree in these are one pose


@dataclass(frozen=True, slots=True)
class GridSpec:
    """How many values each axis has; every combination is a case."""

    positions: int = 16
    velocities: int = 8
    actions: int = 4
    max_speed: float = 1.8  # on each axis [m/s]
    max_action: float = 0.9  # on each axis [m/s^2]

    def __post_init__(self) -> None:
        for name in ("positions", "velocities", "actions"):
            check_whole(name, getattr(self, name), most=MOST_VALUES)
        for name in ("max_speed", "max_action"):
            check_number(name, getattr(self, name))
        if min(self.positions, self.velocities, self.actions) < 2:
            raise InputError(f"{self}; allowed are at least 2 positions, velocities and actions")
        if not (0 < self.max_speed < np.inf and 0 < self.max_action < np.inf):
            raise InputError(f"{self}; allowed are positive, finite max_speed and max_action")

    def position_axes(self, size: tuple[float, float]) -> tuple[Floats, Floats]:
        """Values of x and of y on a map of this size [m]."""
        return np.linspace(0.0, size[0], self.positions), np.linspace(0.0, size[1], self.positions)


@dataclass(frozen=True, slots=True)
class InnerGridSpec(GridSpec):
    """The same, with positions that stay away from the map's edges."""

    inset: float = 0.0  # [m]

    def position_axes(self, size: tuple[float, float]) -> tuple[Floats, Floats]:
        """Values of x and of y on a map of this size [m]."""
        if not 0 <= 2 * self.inset < min(size):
            raise InputError(
                f"inset is {self.inset} m on a map of {size} m; allowed is 0 to less than half of it"
            )
        x, y = (np.linspace(self.inset, length - self.inset, self.positions) for length in size)
        return x, y


CALIBRATION_GRID = GridSpec()
TEST_GRID = GridSpec(positions=8, velocities=4, actions=4)


def grid_cases(world: PlanarWorld, spec: GridSpec) -> tuple[Floats, Floats]:
    """States (n, 4) and actions (n, 2) of every combination, the last axis of the actions the fastest."""
    axes = (
        *spec.position_axes(world.map.size),
        *(_symmetric(spec.max_speed, spec.velocities),) * 2,
        *(_symmetric(spec.max_action, spec.actions),) * 2,
    )
    cases = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    return cases[:, :4], cases[:, 4:]


def collect_transitions(
    world: PlanarWorld, spec: GridSpec, rng: np.random.Generator, *, threads: int = 1
) -> Transitions:
    """One particle from each case; kept where the case's start and the particle's end are free.

    A pose from which every particle collides leaves no transition, but its footprint stays for an encoder.
    """
    cases = _cases_that_start_free(world, spec, threads)
    next_states = world.draw(rng, cases.states, cases.actions)
    kept = world.is_free(next_states[:, :2])
    return Transitions(
        inputs=cases.take(kept),
        next_states=next_states[kept],
        environment=np.zeros(np.count_nonzero(kept), np.int64),
        environments=(world.map.name,),
    )


def held_out_cases(
    world: PlanarWorld, spec: GridSpec = TEST_GRID, *, threads: int = 1
) -> tuple[Inputs, Flags]:
    """Cases to test a calibration on, and whether each starts out of distribution, on slippery ground.

    Kept where the start and the end are free, the end being that of the true dynamics without noise.
    """
    cases = _cases_that_start_free(world, spec, threads)
    inputs = cases.take(world.is_free(world.expected(cases.states, cases.actions)[:, :2]))
    return inputs, world.region(inputs.states[:, :2])


def _cases_that_start_free(world: PlanarWorld, spec: GridSpec, threads: int) -> Inputs:
    """The grid's cases with what their robots see; robots in one pose share the footprint."""
    states, actions = grid_cases(world, spec)
    free = world.is_free(states[:, :2])
    states, actions = states[free], actions[free]
    headings = heading(states, last=np.zeros(len(states)))
    known = world.knows_view(states[:, :2], headings)
    states, actions, headings = states[known], actions[known], headings[known]
    poses, index = _distinct(np.column_stack([states[:, :2], headings]))
    return Inputs(
        states=states,
        actions=actions,
        headings=headings,
        footprint_index=index,
        footprints=Footprints(_look(world, poses, threads), PLANAR_LABELS, world.geometry),
    )


def _look(world: PlanarWorld, poses: Floats, threads: int) -> Labels:
    """Footprints seen from poses (n, 3): x, y, heading."""
    parts = np.array_split(poses, max(1, -(-len(poses) // LOOKS)))
    seen = []
    with progress(f"looking around on {world.map.name}", len(poses)) as advance:
        for part in parts:
            seen.append(world.observe(part[:, :2], part[:, 2], threads=threads))
            advance("", len(part))
    return np.concatenate(seen)


def _distinct(poses: Floats) -> tuple[Floats, Indices]:
    """Distinct rows of (x, y, heading), and which of them each row is."""
    # Collinear velocities have headings that differ in the last bit. (-pi, which is pi, does not come up: the
    # zero of a symmetric axis has no sign.)
    rounded = np.round(poses, DECIMALS)
    distinct, index = np.unique(rounded, axis=0, return_inverse=True)
    return distinct, index.reshape(-1).astype(np.int64)


def _symmetric(limit: float, count: int) -> Floats:
    """lin(-limit, limit, count), symmetric to the last bit, an exact zero in the middle of an odd count."""
    return limit * ((2.0 * np.arange(count) - (count - 1)) / (count - 1))
