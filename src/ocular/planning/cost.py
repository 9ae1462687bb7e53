"""What a predicted step costs: Eq. C.1 of the paper, for all samples of one horizon step at once.

    J = c_term d(μ_H) + Σ_{h<H} c_run d(μ_h) + Σ_h (c_trace tr(ξΣ_h) + c_col 1[region h hits] + c_pen depth)

Trace and indicator are summed over every predicted region, the last one too: Eq. 4b constrains them all.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
from numba import njit

from ocular.errors import InputError, check_number
from ocular.planning.ellipse import Obstacles, hits_obstacle, paths_hit, penetration

MOST_WEIGHT = 1e9  # sums of which single precision holds


@dataclass(frozen=True, slots=True)
class CostWeights:
    """The weights of Eq. C.1; the defaults are those of the planar experiments."""

    running: float = 0.8  # [1/m], distance to the goal along the way
    terminal: float = 1.0  # [1/m], distance to the goal at the end
    trace: float = 1.5  # trace of the calibrated covariance
    collision: float = 1000.0  # for each region that meets an obstacle
    penetration: float = 0.0  # for each region, times how deep obstacles reach into it

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            check_number(f"the cost weight {field.name}", value)
            if not 0 <= value <= MOST_WEIGHT:
                raise InputError(
                    f"the cost weight {field.name} is {value!r}; allowed are finite numbers >= 0, up to "
                    f"{MOST_WEIGHT:g}"
                )


PLANAR_WEIGHTS = CostWeights()
CAMERA_WEIGHTS = CostWeights(running=1.2, terminal=1.2, trace=2.5, penetration=1000.0)


@njit(cache=True)
def add_distance(
    means: npt.NDArray[np.float32],
    goal: npt.NDArray[np.float32],
    weight: float,
    costs: npt.NDArray[np.float32],
) -> None:
    """Add weight * distance of the mean from the goal."""
    x, y, gain = goal[0], goal[1], np.float32(weight)
    for s in range(means.shape[1]):
        dx, dy = means[0, s] - x, means[1, s] - y
        costs[s] += gain * np.sqrt(dx * dx + dy * dy)


@njit(cache=True)
def add_uncertainty(
    before: npt.NDArray[np.float32],  # (d, n), means one step earlier
    means: npt.NDArray[np.float32],  # (d, n)
    covs: npt.NDArray[np.float32],  # (d, d, n), calibrated
    lost: npt.NDArray[np.bool_],  # (n,), the region is the whole space
    quantile: float,
    map_: Obstacles,
    weights: tuple[float, float, float],  # trace, collision, penetration
    blocked: npt.NDArray[np.bool_],  # (n,), the way led through an obstacle: no later step is any better
    costs: npt.NDArray[np.float32],
    collisions: npt.NDArray[np.int32],
) -> None:
    """Add the trace, the collision indicator and the penetration of each sample's region, way included."""
    trace, collision, depth = weights
    gain = np.float32(trace)
    for i in range(covs.shape[0]):
        for s in range(means.shape[1]):
            costs[s] += gain * covs[i, i, s]
    paths_hit(before, means, map_, blocked)
    for s in range(means.shape[1]):
        if lost[s] or blocked[s]:
            collisions[s] += 1
            costs[s] += np.float32(collision + depth)
            continue
        x, y = float(means[0, s]), float(means[1, s])
        a, b, c = quantile * covs[0, 0, s], quantile * covs[0, 1, s], quantile * covs[1, 1, s]
        if hits_obstacle(x, y, a, b, c, map_):
            collisions[s] += 1
            costs[s] += np.float32(collision)
            if depth > 0.0:
                costs[s] += np.float32(depth * penetration(x, y, a, b, c, map_))


@njit(cache=True)
def add_point_collisions(
    before: npt.NDArray[np.float32],
    means: npt.NDArray[np.float32],
    map_: Obstacles,
    weight: float,
    blocked: npt.NDArray[np.bool_],
    costs: npt.NDArray[np.float32],
    collisions: npt.NDArray[np.int32],
) -> None:
    """Add the collision indicator of the way to the bare mean, for planning without uncertainty."""
    paths_hit(before, means, map_, blocked)
    for s in range(means.shape[1]):
        if blocked[s]:
            collisions[s] += 1
            costs[s] += np.float32(weight)


def uncertainty_weights(weights: CostWeights) -> tuple[float, float, float]:
    """The weights that `add_uncertainty` takes."""
    return weights.trace, weights.collision, weights.penetration
