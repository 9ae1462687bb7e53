"""Control noise for a sampling planner: clipped normal perturbations of a nominal sequence, drawn in bulk.

A normal number is the quantile of a random 16-bit index, read from a table of 65,536 equally likely levels.
That is several times faster than an exact normal generator, and a planner that clips its noise to the action
bounds cannot tell: the levels near zero are 4e-5 standard deviations apart.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.stats import norm

Array32 = npt.NDArray[np.float32]


@cache
def _normal_levels() -> Array32:
    """The 65,536 levels, scaled to unit variance."""
    levels = norm.ppf((np.arange(2**16) + 0.5) / 2**16)
    return np.asarray(levels / levels.std(), np.float32)


def draw_indices(rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.uint16]:
    """Random table indices of this shape."""
    return np.frombuffer(rng.bytes(2 * int(np.prod(shape))), np.uint16).reshape(shape)


def normals(indices: npt.NDArray[np.uint16]) -> Array32:
    """The standard normal numbers that these indices stand for."""
    return _normal_levels()[indices]


@njit(cache=True)
def _perturb(
    nominal: Array32,  # (H, m)
    indices: npt.NDArray[np.uint16],  # (H, m, n)
    levels: Array32,
    std: float,
    correlation: float,
    bound: float,
) -> Array32:
    horizon, dim, n = indices.shape
    actions = np.empty((horizon, dim, n), np.float32)
    noise = np.zeros((dim, n), np.float32)
    keep = np.float32(correlation)
    limit = np.float32(bound)
    for h in range(horizon):
        # From the second step on the noise remembers: its variance stays one, its steps agree more.
        fresh = np.float32(np.sqrt(1.0 - correlation * correlation)) if h else np.float32(1.0)
        for k in range(dim):
            centre, row, out = nominal[h, k], noise[k], actions[h, k]
            for s in range(n):
                row[s] = keep * row[s] + fresh * levels[indices[h, k, s]]
            for s in range(n):
                out[s] = min(max(centre + np.float32(std) * row[s], -limit), limit)
    return actions


def perturb(
    nominal: Array32, indices: npt.NDArray[np.uint16], *, std: float, correlation: float, bound: float
) -> Array32:
    """Nominal plus noise, clipped to the bounds, (H, m, n); `correlation` is that of neighbouring steps."""
    actions: Array32 = _perturb(nominal, indices, _normal_levels(), std, correlation, bound)
    return actions
