"""The planner's arithmetic once more, plainly: one sample after the other, every cell, in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ocular.dynamics.linear import LinearGaussian
from ocular.planning.cost import CostWeights
from ocular.planning.ellipse import Obstacles
from ocular.records import Gaussian

Floats = npt.NDArray[np.float64]
ScaleOf = Callable[[Floats, float, Floats], float]  # state, heading, action -> xi


def least_distances(x: float, y: float, a: float, b: float, c: float, boxes: Floats) -> Floats:
    """Least Mahalanobis distance under M = [[a, b], [b, c]] (regular) of closed boxes (n, 4) from (x, y)."""
    x0, x1, y0, y1 = boxes.T
    precision = np.linalg.inv(np.array([[a, b], [b, c]]))
    corners = np.stack([[x0, y0], [x1, y0], [x1, y1], [x0, y1]]).transpose(2, 0, 1) - [x, y]  # (n, 4, 2)
    along = np.roll(corners, -1, axis=1) - corners
    share = -np.einsum("nei,ij,nej->ne", corners, precision, along)
    share = np.clip(share / np.einsum("nei,ij,nej->ne", along, precision, along), 0.0, 1.0)
    nearest = corners + share[..., None] * along
    squares = np.einsum("nei,ij,nej->ne", nearest, precision, nearest).min(axis=1)
    inside = (x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)
    return np.where(inside, 0.0, np.sqrt(squares))


def cell_boxes(map_: Obstacles, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> Floats:
    """The closed squares of these cells, (n, 4) as x0, x1, y0, y1."""
    x0, y0 = map_.x0 + columns * map_.resolution, map_.y0 + rows * map_.resolution
    return np.stack([x0, x0 + map_.resolution, y0, y0 + map_.resolution], axis=1)


def obstacle_distance(x: float, y: float, a: float, b: float, c: float, map_: Obstacles) -> float:
    """Least Mahalanobis distance of any OCCUPIED cell; infinite without one."""
    boxes = cell_boxes(map_, *np.nonzero(map_.distance == 0.0))
    return float(least_distances(x, y, a, b, c, boxes).min(initial=np.inf))


def way_blocked(start: Floats, end: Floats, map_: Obstacles, points: int = 400) -> bool:
    """Whether any of many points on the straight way lies in an OCCUPIED cell."""
    way = start + np.linspace(0.0, 1.0, points)[:, None] * (end - start)
    column, row = np.floor((way - [map_.x0, map_.y0]).T / map_.resolution).astype(int)
    rows, columns = map_.distance.shape
    on_map = (column >= 0) & (row >= 0) & (column < columns) & (row < rows)
    return bool((map_.distance[row[on_map], column[on_map]] == 0.0).any())


def price(
    model: LinearGaussian,
    quantile: float,
    state: Floats,
    cov: Floats,
    heading: float,
    actions: Floats,  # (H, m)
    goal: Floats,
    map_: Obstacles,
    weights: CostWeights,
    scale_of: ScaleOf,
) -> tuple[float, int]:
    """Eq. C.1 of one sequence, and how many of its regions meet an obstacle."""
    total, collisions, blocked = 0.0, 0, False
    belief = Gaussian(state, cov)
    for h, action in enumerate(actions):
        before = belief.mean[:2]
        xi = scale_of(belief.mean, heading, action)
        belief = model.predict(belief, action)
        belief = Gaussian(belief.mean, xi * belief.cov)
        if np.hypot(*belief.mean[2:]) > 0:
            heading = float(np.arctan2(belief.mean[3], belief.mean[2]))
        last = h == len(actions) - 1
        total += (weights.terminal if last else weights.running) * float(
            np.linalg.norm(belief.mean[:2] - goal)
        )
        total += weights.trace * float(np.trace(belief.cov))
        shape = quantile * belief.cov[:2, :2]
        distance = obstacle_distance(*belief.mean[:2], shape[0, 0], shape[0, 1], shape[1, 1], map_)
        blocked = blocked or way_blocked(before, belief.mean[:2], map_)
        if blocked:
            collisions += 1
            total += weights.collision + weights.penetration
        elif distance <= 1.0:
            collisions += 1
            total += weights.collision + weights.penetration * (1.0 - distance)
    return total, collisions


def update(
    nominal: Floats, noise: Floats, bound: float, temperature: float, cost: Callable[[Floats], float]
) -> Floats:
    """One MPPI update: nominal (H, m), noise (n, H, m)."""
    sequences = np.clip(nominal + noise, -bound, bound)
    costs = np.array([cost(sequence) for sequence in sequences])
    weights = np.exp(-(costs - costs.min()) / temperature)
    return np.einsum("n,nhm->hm", weights / weights.sum(), sequences)
