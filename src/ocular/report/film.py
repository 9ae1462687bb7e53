"""Watch a drive and keep what is worth seeing of each control step, for a video or a recording."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ocular.dynamics import GaussianModel
from ocular.errors import InputError
from ocular.evaluation.episodes import EpisodeResult, Moment
from ocular.footprint.grid import LabelGrid
from ocular.planning.ellipse import ellipse
from ocular.records import UNKNOWN, Floats, FootprintGeometry, Gaussian, Labels
from ocular.report.sight import Sight

MOST_PATHS = 60  # of the sampled plans; more hide the ground
OUTLINE_POINTS = 60


@dataclass(frozen=True, slots=True)
class Shot:
    """One control step."""

    step: int
    state: Floats  # (4,), where the robot truly is
    heading: float  # [rad]
    goal: Floats  # (2,) [m]
    cells: Labels  # (angles, ranges), what it sees
    seen: Floats  # (n, 2) [m], outline of what it sees
    believed: LabelGrid  # its map so far
    ellipses: list[tuple[float, ...]]  # x, y and M = [[a, b], [b, c]] of each region along the plan
    way: Floats  # (H + 1, 2) [m], the plan
    paths: Floats  # (k, H + 1, 2) [m], some of the sampled plans
    scale: float  # xi of the step about to be taken
    sight: Sight | None  # what its camera shows, if it has one

    @property
    def speed(self) -> float:
        """Of the robot [m/s]."""
        return float(np.hypot(*self.state[2:]))


@dataclass(slots=True)
class Film:
    """All control steps of one drive; give it to the drive as its watcher."""

    method: str
    model: GaussianModel
    geometry: FootprintGeometry
    quantile: float  # of the regions
    look: Callable[[Floats, float], Sight] | None = None  # through the camera, from a position and heading
    shots: list[Shot] = field(default_factory=list)
    result: EpisodeResult | None = None

    def ended(self) -> EpisodeResult:
        """How the drive came out; there is one once it is over."""
        if self.result is None:
            raise InputError("the drive is not over: its film has no result; allowed is one that has ended")
        return self.result

    def __call__(self, moment: Moment) -> None:
        """Keep this control step."""
        grid = moment.belief.grid()
        start = moment.estimate
        sequences = np.moveaxis(moment.plan.samples, 2, 0).astype(np.float64)  # (n, H, m)
        some = sequences[:: max(1, len(sequences) // MOST_PATHS)]
        regions = moment.plan.regions
        self.shots.append(
            Shot(
                step=moment.step,
                state=moment.truth.copy(),
                heading=moment.heading,
                goal=moment.goal,
                cells=moment.cells.copy(),
                seen=outline(moment.cells, grid.names, self.geometry, start[:2], moment.heading),
                believed=replace(grid, labels=grid.labels.copy()),
                ellipses=[
                    ellipse(mean, cov, self.quantile)
                    for mean, cov in zip(regions.mean, regions.cov, strict=True)
                    if np.isfinite(cov).all()
                ],
                way=np.concatenate([start[None, :2], regions.mean[:, :2]]),
                paths=_positions(self.model, start, some),
                scale=moment.scale,
                sight=self.look(start[:2], moment.heading) if self.look else None,
            )
        )


def _positions(model: GaussianModel, start: Floats, sequences: Floats) -> Floats:
    """Where the model's mean goes under each sequence (n, H, m), from the start on: (n, H + 1, 2)."""
    no_cov = np.zeros((len(start), len(start)))
    states = np.tile(start, (len(sequences), 1))
    way = [states[:, :2]]
    for actions in np.moveaxis(sequences, 1, 0):
        states = model.predict(Gaussian(states, no_cov), actions).mean
        way.append(states[:, :2])
    return np.stack(way, axis=1)


def outline(
    cells: Labels, names: tuple[str, ...], geometry: FootprintGeometry, position: Floats, heading: float
) -> Floats:
    """The polygon (n, 2) [m] of what is seen from a pose: up to the last known cell of each ray."""
    rays = np.linspace(0, geometry.angles - 1, min(OUTLINE_POINTS, geometry.angles)).round().astype(int)
    known = cells[rays] != names.index(UNKNOWN)
    cell = geometry.max_range / geometry.ranges
    reach = cell * np.where(known.any(axis=1), known.shape[1] - known[:, ::-1].argmax(axis=1), 0)
    angles = heading + geometry.bearings[rays]
    rim = position + reach[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    return np.concatenate([position[None], rim, position[None]])
