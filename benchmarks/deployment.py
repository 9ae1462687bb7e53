"""On the robot: one query, from footprint to region and verdict."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from benchmarks.core import Task, torch_encoder, torch_latents
from benchmarks.timing import Comparison, compare
from ocular.calibrators import ocular
from ocular.conformal import Region
from ocular.deployment import Deployment
from ocular.records import Footprints, Gaussian, Inputs

ALPHA, QUERIES = 0.1, 50


def query(task: Task, report: Callable[[str, str, float, int], None]) -> Comparison:
    """One footprint of 240 x 80, state and action, on one core.

    The peer encodes by the network as it was trained, in PyTorch. All else it does as we do, except that it
    checks no input and gives no verdict.
    """
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
    robot, thresholds = Deployment(calibration, ALPHA), calibration.thresholds(ALPHA)
    network, features, model = torch_encoder(task.encoder), calibration.features, calibration.model
    cov = model.predict(Gaussian(states[:1], calibration.state_cov), actions[:1]).cov
    asked = list(zip(states, actions, footprints, headings.tolist(), strict=True))
    seen = Footprints(footprints, task.encoder.labels, task.encoder.geometry)
    cases = Inputs(states, actions, headings, np.arange(QUERIES), seen)
    inputs = [cases.take(np.array([n])) for n in range(QUERIES)]

    def plainly(n: int) -> Region:
        latent = torch_latents(network, footprints[n : n + 1])
        rows = np.concatenate([features(inputs[n]), latent], axis=1)
        mean = states[n] @ model.A.T + actions[n] @ model.B.T
        return Region(Gaussian(mean, cov), calibration.look_up(rows, thresholds)[0, ...])

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found = compare(
        "query",
        lambda: [robot.query(*one) for one in asked],
        lambda: [plainly(n) for n in range(QUERIES)],
        "the same, encoded by PyTorch",
        unit="ms",
        per=1e-3 * QUERIES,
        rounds=21,
    )
    torch.set_num_threads(threads)
    report("query_ms", "<=1", found.ours, 21 * QUERIES)
    return found
