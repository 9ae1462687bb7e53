"""Reads a folder that `ocular export` wrote, with NumPy alone; cells and thresholds are the library's."""

import json
from pathlib import Path

import numpy as np


class Reader:
    def __init__(self, folder):
        self.about = json.loads(Path(folder, "calibration.json").read_text())
        self.arrays = {file.stem: np.load(file, allow_pickle=False) for file in Path(folder).glob("*.npy")}

    def rows(self, states, actions, headings, footprints=()):  # (n, d), (n, m), (n,), (n, angles, ranges)
        s, a, c, n = states.T, actions.T, np.cos(headings), np.sin(headings)
        by = {None: lambda: [], "action": lambda: [*a], "speeds": lambda: [*a], "world": lambda: [*s[2:], *a]}
        by["position"] = by["state+action"] = lambda: [*s, *a]
        by["wheels"] = lambda: [(a[0] + a[1]) / 2, a[1] - a[0]]
        by["body"] = lambda: [np.hypot(s[2], s[3]), a[0] * c + a[1] * n, c * a[1] - n * a[0]]
        latents = np.array([self.latent(cells) for cells in footprints]).T
        return np.array([*by[self.about["features"]](), *latents]).T.reshape(len(states), -1)

    def latent(self, cells):  # of one footprint (angles, ranges)
        h = np.eye(len(self.about["labels"]), dtype=np.float32)[cells]
        for layer in "123":
            h, total = np.pad(h, ((1, 1), (1, 1), (0, 0))), self.arrays["encoder_bias" + layer]
            for y, row in enumerate(self.arrays["encoder_kernel" + layer]):
                a, b, c, d = (dot(h[y : y - 3 or None : 2, x : x - 3 or None : 2], row[x]) for x in range(4))
                total = total + ((a + b) + (c + d))
            h = np.maximum(total, 0)
        added = dot(h.reshape(-1, h.shape[2]), self.arrays["encoder_projection"])
        return np.cumsum([self.arrays["encoder_offset"], *added], axis=0, dtype=np.float32)[-1]

    def cells(self, rows):  # to the right where a feature, in single precision, exceeds the node's threshold
        tree, rows, node = self.arrays, rows.astype(np.float32), np.zeros(len(rows), int)
        for _ in range(self.about["depth"]):
            is_right = rows[np.arange(len(rows)), tree["tree_feature"][node]] > tree["tree_threshold"][node]
            node = tree["tree_children"][node, is_right.astype(int)]
        return tree["tree_cell"][node]

    def thresholds(self, rows):  # on squared Mahalanobis distances; raised between logged values of a feature
        k, of_cell, values = self.about["leveled"], *map(self.arrays.get, ("thresholds", "levels"))
        if k is None:
            return of_cell[self.cells(rows)]
        upper = np.searchsorted(values[1:-1], rows[:, k]) + 1
        ways = [rows, rows.copy(), rows.copy()]
        low, high = ways[1][:, k], ways[2][:, k] = values[upper - 1], values[upper]
        own, below, above = (of_cell[self.cells(way)] for way in ways)
        share = (rows[:, k].clip(values[0], values[-1]) ** 2 - low**2) / (high**2 - low**2)
        with np.errstate(invalid="ignore"):
            mix = below + share * (above - below)
        return np.fmax(own, np.where(share == 1, above, np.where(np.isinf(below) | (share == 0), below, mix)))

    def xi(self, rows):  # the factors on the model's covariance
        return self.thresholds(rows) / self.about["chi2"]


def dot(hidden, matrix):  # summed four by four, as the library does, so that the last bit is the same
    terms = [hidden[..., k, None] * matrix[..., k, :] for k in range(hidden.shape[-1])]
    return sum((a + b) + (c + d) for a, b, c, d in zip(*[iter([*terms, 0, 0, 0])] * 4, strict=False))
