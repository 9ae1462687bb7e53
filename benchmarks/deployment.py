"""On the robot: one query, from footprint to region and verdict."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import torch

from benchmarks.core import Task, torch_encoder, torch_latents
from benchmarks.timing import Comparison, compare
from ocular.calibrators import ocular
from ocular.deployment import Deployment

QUERIES, ROUNDS = 50, 1000


class ByTorch(Deployment):
    """The same, but footprints are encoded by the network as it was trained."""

    def encode(self, cells: np.ndarray) -> np.ndarray:
        """The latent by PyTorch."""
        if not hasattr(self, "_network"):
            self._network = torch_encoder(self.calibration.encoder)
        return torch_latents(self._network, cells[None])[0].astype(np.float64)


def query(task: Task, report: Callable[[str, str, float, int], None]) -> Comparison:
    """State, action and one footprint of 240 x 80, on one core: the median over many."""
    calibration = ocular(lambda footprints, seed: task.encoder).fit(
        task.logs, task.world.nominal, task.world.state_cov, seed=0
    )
    rng = np.random.default_rng(0)
    positions = np.stack([rng.uniform(0.2, 0.8, QUERIES), rng.uniform(0.2, 4.0, QUERIES)], axis=1)
    headings, speeds = rng.uniform(-np.pi, np.pi, QUERIES), rng.uniform(0.0, 1.8, QUERIES)
    directions = np.stack([np.cos(headings), np.sin(headings)], axis=1)
    states = np.concatenate([positions, speeds[:, None] * directions], axis=1)
    actions = rng.uniform(-0.9, 0.9, (QUERIES, 2))
    footprints = task.world.observe(positions, headings)
    asked = list(zip(states, actions, footprints, headings.tolist(), strict=True))
    robot, peer = Deployment(calibration), ByTorch(calibration)
    ours, peers = itertools.cycle(asked), itertools.cycle(asked)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found = compare(
        "query",
        lambda: robot.query(*next(ours)),
        lambda: peer.query(*next(peers)),
        "the same, encoded by PyTorch",
        unit="ms",
        per=1e-3,
        rounds=ROUNDS,
    )
    torch.set_num_threads(threads)
    report("query_ms", "<=1", found.ours, ROUNDS)
    return found
