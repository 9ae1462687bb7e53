"""What every calibrator offers, and the two ways there are: one cell, or cells that a tree finds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ocular.calibrators.calibration import Calibration
from ocular.calibrators.features import features
from ocular.calibrators.levels import Levels
from ocular.calibrators.streaming import encode_logs, footprints_of, look_at_logs
from ocular.conformal import CellScores
from ocular.dynamics import GaussianModel
from ocular.encoding import ConvEncoder, Sights
from ocular.errors import (
    InputError,
    check_covariance,
    check_probability,
    check_shape,
    check_type,
    check_whole,
    shown,
)
from ocular.partition import TreePartition, TreeSettings
from ocular.records import Floats, Indices, Logs, Transitions
from ocular.seeds import integer, stream

EncoderSource = Callable[[Sights, int], ConvEncoder]
"""Makes an encoder from the partition split's distinct footprints and a seed: trains one, or recalls one."""


class Calibrator(ABC):
    """A recipe that turns logged transitions into a calibration of a given model."""

    @abstractmethod
    def fit(
        self, transitions: Transitions | Logs, model: GaussianModel, state_cov: Floats, *, seed: int
    ) -> Calibration:
        """Calibrate; the same arguments give the same bytes, in memory or part by part."""


@dataclass(frozen=True)
class LocalCalibrator(Calibrator):
    """LOCART on a method's own inputs: one share of the data draws the cells, the rest calibrates them."""

    method: str
    features: str
    encoder: EncoderSource | None = None
    tree: TreeSettings = TreeSettings()
    partition_share: float = 0.7
    fallback: bool = False

    def __post_init__(self) -> None:
        check_probability("partition_share", self.partition_share)
        check_type("tree", self.tree, TreeSettings)
        check_type("features", self.features, str)
        check_type("fallback", self.fallback, bool)

    def fit(
        self, transitions: Transitions | Logs, model: GaussianModel, state_cov: Floats, *, seed: int
    ) -> Calibration:
        """Alg. 1, offline part: encoder and tree from the partition split, thresholds from the other."""
        return self.fit_seen(self.look(Logs.of(transitions), model, state_cov, seed=seed), seed=seed)

    def look(self, logs: Logs, model: GaussianModel, state_cov: Floats, *, seed: int) -> Seen:
        """Features and scores of all transitions; nothing is learned from them yet."""
        blank = blank_calibration(self.method, logs, model, state_cov, seed)
        feature_map = features(self.features, model.state_dim, model.action_dim)
        look = look_at_logs(logs, blank, feature_map)
        check_scores(look.scores)
        blank = replace(blank, features=feature_map, fallback=self.fallback)
        return Seen(logs, blank, look.features, look.scores, look.environment)

    def fit_seen(self, seen: Seen, *, seed: int) -> Calibration:
        """Calibrate on logs that were looked at."""
        partition_rows, conformal_rows = split_rows(len(seen.logs), self.partition_share, seed)
        self.tree.check_points(len(partition_rows))  # before an encoder is trained
        return self.draw(self.encode(seen, partition_rows, seed), partition_rows, conformal_rows, seed)

    def encode(self, seen: Seen, rows: Indices, seed: int) -> Seen:
        """With the latent of what each transition saw, by an encoder made from what these rows saw."""
        if self.encoder is None:
            return seen
        encoder = self.encoder(footprints_of(seen.logs, rows), integer(seed, "encoder"))
        inputs = np.concatenate([seen.inputs, encode_logs(seen.logs, encoder)], axis=1)
        return replace(seen, blank=replace(seen.blank, encoder=encoder), inputs=inputs)

    def draw(self, seen: Seen, partition_rows: Indices, conformal_rows: Indices, seed: int) -> Calibration:
        """Cells from some rows, their thresholds from others."""
        # The cells are drawn by the distance, the thresholds are on its square: squared, the fast and
        # uncertain transitions would claim all the splits and leave slow ones merged.
        partition = TreePartition.fit(
            seen.inputs[partition_rows],
            np.sqrt(seen.scores[partition_rows]),
            self.tree,
            integer(seed, "tree"),
        )
        cells = partition.apply(seen.inputs[conformal_rows])
        feature_map = seen.blank.features
        leveled = None if feature_map is None else feature_map.leveled
        return replace(
            seen.blank,
            levels=None if leveled is None else Levels.of(seen.inputs[partition_rows], leveled),
            partition=partition,
            scores=CellScores.group(seen.scores[conformal_rows], cells, partition.n_cells),
        )


@dataclass(frozen=True)
class Seen:
    """Logs as a calibrator sees them: all that cells and thresholds are made of."""

    logs: Logs
    blank: Calibration  # the model, what cells look at, and nothing that was learned from scores
    inputs: Floats  # (n, k), what the partition looks at: features, and latents once there is an encoder
    scores: Floats  # (n,)
    environment: Indices  # (n,) indices into the logs' environments


def blank_calibration(
    method: str, logs: Logs, model: GaussianModel, state_cov: Floats, seed: int
) -> Calibration:
    """The model as given, before any data has been looked at; checks what every method relies on."""
    for part in ("predict", "state_dim", "action_dim"):
        if not hasattr(model, part):
            raise InputError(f"the model is {shown(model)}; allowed is one with {part}")
    check_whole("seed", seed, 0)
    check_shape("state_cov", state_cov, (model.state_dim, model.state_dim))
    check_covariance("state_cov", state_cov)
    first = logs.parts[0].load().inputs  # all parts have the same shapes
    check_shape("states", first.states, (None, model.state_dim))
    check_shape("actions", first.actions, (None, model.action_dim))
    return Calibration(
        method,
        model,
        state_cov,
        provenance={
            "environments": list(logs.environments),
            "transitions": len(logs),
            "seed": seed,
        },
    )


def split_rows(n: int, partition_share: float, seed: int) -> tuple[Indices, Indices]:
    """Row numbers of the partition split and of the conformal split, each ascending."""
    order = stream(seed, "split").permutation(n)
    cut = round(partition_share * n)
    return np.sort(order[:cut]), np.sort(order[cut:])


def check_scores(scores: Floats) -> None:
    """Raise where the model calls a logged step impossible: no scale of its covariance could cover it."""
    impossible = np.flatnonzero(np.isinf(scores))
    if len(impossible):
        raise InputError(
            f"{len(impossible)} of {len(scores)} transitions are impossible under the model, the first in "
            f"row {impossible[0]}: they deviate along a direction in which the prediction has no variance; "
            "allowed is a model (Q, state_cov) with some variance in every direction that is seen to vary"
        )
