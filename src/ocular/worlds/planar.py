"""The planar world of the paper's section V.A: a point robot on partly slippery ground, and what it sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ocular.dynamics.linear import LinearGaussian, double_integrator, square_root
from ocular.errors import InputError, check_shape
from ocular.footprint.scan import scan
from ocular.records import Floats, FootprintGeometry, Labels
from ocular.worlds.map_file import FREE_LABELS, LOW_FRICTION, PlanarMap

RESTING_SPEED = 1e-9  # [m/s]; below it the direction of motion is rounding noise

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PlanarWorld:
    """States are (x, y, vx, vy), actions accelerations; each row of a batch is a robot of its own."""

    map: PlanarMap
    slip: float = 1.3  # how much more an action and a velocity move the robot on slippery ground
    dt: float = 0.05  # [s]
    noise: float = 0.1
    noise_floor: float = 1e-6
    state_variance: float = 2e-5  # of each entry of the known state [m^2, m^2/s^2]
    action_bound: float = 0.9  # on each entry [m/s^2]
    geometry: FootprintGeometry = field(default_factory=FootprintGeometry)

    def __post_init__(self) -> None:
        if not (0 <= self.state_variance < np.inf and 0 < self.action_bound < np.inf):
            raise InputError(
                f"state_variance={self.state_variance}, action_bound={self.action_bound}; "
                "allowed are finite state_variance >= 0, action_bound > 0"
            )

    @cached_property
    def nominal(self) -> LinearGaussian:
        """The dynamics on good ground: eq. B.1, and what a robot believes everywhere."""
        return double_integrator(self.dt, noise=self.noise, floor=self.noise_floor)

    @cached_property
    def slippery(self) -> LinearGaussian:
        """The dynamics on slippery ground: eq. B.2."""
        return double_integrator(self.dt, slip=self.slip, noise=self.noise, floor=self.noise_floor)

    @property
    def state_cov(self) -> Floats:
        """Uncertainty of the state that the robot is told."""
        return self.state_variance * np.eye(4)

    def expected(self, states: Floats, actions: Floats, slippery: Flags | None = None) -> Floats:
        """Next states without noise; the ground under each robot decides how it moves, unless told."""
        if slippery is None:
            slippery = self.region(states[..., :2])
        good = states @ self.nominal.A.T + actions @ self.nominal.B.T
        slipped = states @ self.slippery.A.T + actions @ self.slippery.B.T
        return np.where(slippery[..., None], slipped, good)

    def step(
        self, rng: np.random.Generator, states: Floats, actions: Floats, slippery: Flags | None = None
    ) -> Floats:
        """Next states: one noisy step of the true dynamics."""
        # One draw for both grounds (their Q is the same), so no robot's noise depends on another's ground.
        noise = rng.standard_normal(states.shape) @ self._noise_factor.T
        return self.expected(states, actions, slippery) + noise

    def draw(self, rng: np.random.Generator, states: Floats, actions: Floats) -> Floats:
        """One particle for each row: the true state, drawn round the known one, takes a step.

        A case is ID or OOD as a whole, by its known position: particles of a case on the very edge of
        the ice (map U has a row of the calibration grid there) must not follow two dynamics at once.
        """
        offsets = np.sqrt(self.state_variance) * rng.standard_normal(states.shape)
        return self.step(rng, states + offsets, actions, self.region(states[..., :2]))

    def region(self, positions: Floats) -> Flags:
        """Whether each position (..., 2) is on slippery ground."""
        grid = self.map.grid
        slippery: Flags = grid.at(positions) == grid.index(LOW_FRICTION)
        return slippery

    def is_free(self, positions: Floats) -> Flags:
        """Whether a robot may be at each position (..., 2)."""
        grid = self.map.grid
        return np.isin(grid.at(positions), [grid.index(label) for label in FREE_LABELS])

    def path_is_free(self, start: Floats, end: Floats) -> Flags:
        """Whether each straight drive (..., 2) -> (..., 2) stays in free space, looked at once a cell."""
        longest = float(np.hypot(*np.moveaxis(end - start, -1, 0)).max(initial=0.0))
        fractions = np.linspace(0.0, 1.0, int(np.ceil(longest / self.map.grid.resolution)) + 1)[:, None]
        on_the_way = start[..., None, :] + fractions * (end - start)[..., None, :]
        return np.asarray(self.is_free(on_the_way).all(axis=-1))

    def knows_view(self, positions: Floats, headings: Floats) -> Flags:  # noqa: ARG002
        """Whether a case that looks this way counts: all do, as beyond the map's edge is obstacle."""
        return np.ones(len(positions), np.bool_)

    def observe(self, positions: Floats, headings: Floats, *, threads: int = 1) -> Labels:
        """Footprints (n, angles, ranges) seen from positions (n, 2) [m] and headings (n,) [rad]."""
        return scan(self.map.grid, self.geometry, positions, headings, threads=threads)

    @cached_property
    def _noise_factor(self) -> Floats:
        return square_root(self.nominal.Q)


def heading(states: Floats, last: Floats) -> Floats:
    """Where each robot (n, 4) looks [rad]: along its velocity, or where it last looked when at rest."""
    check_shape("last", last, (len(states),))
    vx, vy = states[:, 2], states[:, 3]
    return np.where(np.hypot(vx, vy) > RESTING_SPEED, np.arctan2(vy, vx), last)
