"""Small obstacle maps for planner tests, with distances from a plain search."""

import numpy as np
from scipy.ndimage import distance_transform_edt

from ocular.planning.ellipse import Obstacles

OCCUPIED, UNKNOWN, FREE = 0, 1, 2


def obstacles(labels, *, resolution=0.01, origin=(0.0, 0.0), cap=1.0) -> Obstacles:
    """The map with these labels, row 0 at the bottom."""
    labels = np.asarray(labels, np.uint8)
    far = np.full(labels.shape, np.inf)
    distance = distance_transform_edt(labels != OCCUPIED) if (labels == OCCUPIED).any() else far
    return Obstacles(
        labels=labels,
        distance=np.minimum(distance * resolution, cap).astype(np.float32),
        cap=cap,
        unknown=UNKNOWN,
        resolution=resolution,
        x0=origin[0],
        y0=origin[1],
    )


def corridor(*, length=3.0, width=0.8, resolution=0.01) -> Obstacles:
    """A straight corridor along x, free for 0 < y < width, with walls all round; its corner is the origin."""
    wall = round(0.5 / resolution)
    rows, columns = round(width / resolution), round(length / resolution)
    labels = np.full((rows + 2 * wall, columns + 2 * wall), OCCUPIED)
    labels[wall:-wall, wall:-wall] = FREE
    return obstacles(labels, resolution=resolution, origin=(-wall * resolution, -wall * resolution))


class Constant:
    """The same scale everywhere."""

    def __init__(self, xi):
        self.xi = xi

    def scales(self, means, headings, actions):  # noqa: ARG002
        return np.full(len(means), self.xi, float)

    def refresh(self, cells, position, heading):
        pass
