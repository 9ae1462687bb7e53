"""The conformal core: calibrating, applying a partition, sampling footprints."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from sklearn.tree import DecisionTreeRegressor
from tests.conftest import random_encoder
from torch import nn

from benchmarks.timing import Comparison, compare
from ocular.calibrators import ocular
from ocular.calibrators.base import split_rows
from ocular.encoding import ConvEncoder
from ocular.footprint import LabelGrid, scan
from ocular.records import FootprintGeometry, Inputs, Transitions, concatenate
from ocular.seeds import stream
from ocular.worlds.collect import CALIBRATION_GRID, collect_transitions
from ocular.worlds.map_file import load_map
from ocular.worlds.planar import PlanarWorld

GEOMETRY = FootprintGeometry()
ALPHA = 0.1


@dataclass(frozen=True)
class Task:
    """What is calibrated: OCULAR for map H, on the logs of the three others, the encoder given."""

    logs: Transitions
    world: PlanarWorld
    encoder: ConvEncoder

    @classmethod
    def make(cls) -> Task:
        """About 300,000 transitions; untrained weights cost the same time as trained ones."""
        logs = concatenate(
            [
                collect_transitions(PlanarWorld(load_map(m)), CALIBRATION_GRID, stream(0, "bench", m))
                for m in ("S", "L", "U")
            ]
        )
        return cls(logs, PlanarWorld(load_map("H")), random_encoder(0, GEOMETRY))

    def ours(self) -> np.ndarray:
        """Thresholds by this package."""
        calibrator = ocular(lambda footprints, seed: self.encoder)
        fitted = calibrator.fit(self.logs, self.world.nominal, self.world.state_cov, seed=0)
        return fitted.thresholds(ALPHA)


def calibrate(task: Task) -> Comparison:
    """The same calibration by LOCART's published algorithm, plainly."""
    network = torch_encoder(task.encoder)

    def plain() -> dict[int, float]:
        X = np.concatenate([plain_features(task.logs.inputs), plain_latents(network, task.logs)], axis=1)
        scores = plain_scores(task)
        partition, conformal = split_rows(len(X), 0.7, 0)
        tree = DecisionTreeRegressor(max_depth=13, min_samples_leaf=300, random_state=0)
        tree.fit(X[partition], np.sqrt(scores[partition]))
        leaves = tree.apply(X[conformal])
        held_out = scores[conformal]
        thresholds = {}
        for leaf in np.unique(leaves):
            own = held_out[leaves == leaf]
            level = min(1.0, np.ceil((len(own) + 1) * (1 - ALPHA)) / len(own))
            thresholds[leaf] = np.quantile(own, level, method="inverted_cdf")
        return thresholds

    return compare(
        "calibrate",
        task.ours,
        plain,
        "LOCART with scikit-learn, numpy quantiles and PyTorch latents",
        unit="s",
        per=1.0,
        rounds=3,
    )


def plain_features(inputs: Inputs) -> np.ndarray:
    """Speed, acceleration along and across."""
    speed = np.linalg.norm(inputs.states[:, 2:], axis=1)
    direction = np.stack([np.cos(inputs.headings), np.sin(inputs.headings)], axis=1)
    along = (inputs.actions * direction).sum(axis=1)
    across = direction[:, 0] * inputs.actions[:, 1] - direction[:, 1] * inputs.actions[:, 0]
    return np.stack([speed, along, across], axis=1)


def plain_scores(task: Task) -> np.ndarray:
    """Squared Mahalanobis distance by an inverse."""
    model, inputs = task.world.nominal, task.logs.inputs
    cov = model.A @ task.world.state_cov @ model.A.T + model.Q
    deviation = task.logs.next_states - inputs.states @ model.A.T - inputs.actions @ model.B.T
    return np.einsum("ni,ij,nj->n", deviation, np.linalg.inv(cov), deviation)


def torch_encoder(encoder: ConvEncoder) -> nn.Module:
    """The encoder's network in PyTorch."""
    layers: list[nn.Module] = []
    for kernel, bias in zip(encoder.kernels, encoder.biases, strict=True):
        layer = nn.Conv2d(kernel.shape[1], kernel.shape[0], 4, stride=2, padding=1)
        layer.weight.data, layer.bias.data = torch.from_numpy(kernel), torch.from_numpy(bias)
        layers += [layer, nn.ReLU()]
    linear = nn.Linear(encoder.projection.shape[1], encoder.dim)
    linear.weight.data = torch.from_numpy(encoder.projection)
    linear.bias.data = torch.from_numpy(encoder.offset)
    return nn.Sequential(*layers, nn.Flatten(), linear).eval()


@torch.no_grad()
def torch_latents(network: nn.Module, cells: np.ndarray, batch: int = 512) -> np.ndarray:
    """Latents in plain batches, one-hot made a batch at a time."""
    found = []
    for start in range(0, len(cells), batch):
        labels = torch.from_numpy(cells[start : start + batch]).long()
        one_hot = nn.functional.one_hot(labels, 4).permute(0, 3, 1, 2).float()
        found.append(network(one_hot).numpy())
    return np.concatenate(found)


def plain_latents(network: nn.Module, logs: Transitions) -> np.ndarray:
    """Each distinct footprint once, by PyTorch."""
    return torch_latents(network, logs.inputs.footprints.cells)[logs.inputs.footprint_index]


def apply(task: Task) -> Comparison:
    """Cell and threshold of one planner step's 2048 x 9 queries."""
    fitted = ocular(lambda footprints, seed: task.encoder).fit(
        task.logs, task.world.nominal, task.world.state_cov, seed=0
    )
    X = np.concatenate(
        [
            plain_features(task.logs.inputs),
            task.encoder.encode(task.logs.inputs.footprints.cells)[task.logs.inputs.footprint_index],
        ],
        axis=1,
    )
    rng = np.random.default_rng(0)
    targets = np.sqrt(plain_scores(task))
    sklearn_tree = DecisionTreeRegressor(max_depth=13, min_samples_leaf=300, random_state=0)
    sklearn_tree.fit(X, targets)
    queries = X[rng.choice(len(X), 2048 * 9)]
    thresholds = fitted.thresholds(ALPHA)
    dictionary = dict.fromkeys(np.flatnonzero(sklearn_tree.tree_.children_left == -1), 1.0)
    return compare(
        "apply",
        lambda: thresholds[fitted.partition.apply(queries)],
        lambda: np.array([dictionary[leaf] for leaf in sklearn_tree.apply(queries)]),
        "scikit-learn's apply and a dictionary",
        unit="ms",
        per=1e-3,
        rounds=15,
    )


def footprint(name: str) -> Comparison:
    """Footprints of map H, one core, against NumPy: ray by ray, or all rays at once."""
    plain, peer_name = PLAIN_SAMPLERS[name]
    grid = load_map("H").grid
    rng = np.random.default_rng(0)
    many, few = 200, 20
    positions = np.stack([rng.uniform(0.2, 0.8, many), rng.uniform(0.2, 4.0, many)], axis=1)
    headings = rng.uniform(-np.pi, np.pi, many)

    def plainly() -> list[np.ndarray]:
        return [plain(grid, p, h) for p, h in zip(positions[:few], headings[:few], strict=True)]

    fast = scan(grid, GEOMETRY, positions[:few], headings[:few])
    agreeing = np.mean(np.stack(plainly()) == fast)
    if agreeing < 0.999:  # rounding may move a sample across a cell's edge
        raise RuntimeError(f"the samplers agree on {agreeing:.4%} of the cells; allowed is 99.9 %")
    found = compare(
        name,
        lambda: scan(grid, GEOMETRY, positions, headings),
        plainly,
        peer_name,
        unit="us",
        per=many * 1e-6,
        rounds=9,
    )
    return replace(found, peer=found.peer * many / few)


def ray_by_ray(grid: LabelGrid, position: np.ndarray, heading: float) -> np.ndarray:
    """What one writes first: walk out along each ray, cut it at the first obstacle."""
    footprint = np.ones((GEOMETRY.angles, GEOMETRY.ranges), dtype=np.uint8)
    for i, bearing in enumerate(GEOMETRY.bearings):
        direction = np.array([np.cos(heading + bearing), np.sin(heading + bearing)])
        labels = grid.at(position + GEOMETRY.distances[:, None] * direction)
        hits = np.flatnonzero(labels == 0)
        end = hits[0] + 1 if len(hits) else len(labels)
        footprint[i, :end] = labels[:end]
    return footprint


def whole_array(grid: LabelGrid, position: np.ndarray, heading: float) -> np.ndarray:
    """What one writes next: all points at once, a running maximum for what is hidden."""
    angles = heading + GEOMETRY.bearings
    points = (
        position + GEOMETRY.distances[None, :, None] * np.stack([np.cos(angles), np.sin(angles)], 1)[:, None]
    )
    labels = grid.at(points)
    blocked = np.logical_or.accumulate(labels == 0, axis=1)
    hidden = np.zeros_like(blocked)
    hidden[:, 1:] = blocked[:, :-1]
    return np.where(hidden, 1, labels).astype(np.uint8)


PLAIN_SAMPLERS = {
    "footprint": (ray_by_ray, "NumPy, ray by ray"),
    "footprint_whole_array": (whole_array, "NumPy, all rays at once"),
}
