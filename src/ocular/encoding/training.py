"""Training of the convolutional autoencoder, of which the encoder is kept (algorithm 1, line 2).

Reconstruction alone drives it: no score is ever seen here. One thread computes, so that the same seed gives
the same bytes on any number of cores, and an interrupted run goes on from its last epoch to the same bytes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ocular.encoding.autoencoder import GradientStep, Score, build, extract, score
from ocular.encoding.base import Sights
from ocular.encoding.convolutional import ConvEncoder, check_encodable
from ocular.encoding.drawing import draw
from ocular.encoding.settings import CHECKPOINT_KIND, CHECKPOINT_VERSION, TrainingSettings
from ocular.errors import InputError, OcularError, check_finite, check_shape, check_whole
from ocular.sealed import Sealed, read_sealed, sound_content, take, write_sealed
from ocular.seeds import integer, stream

Progress = Callable[[int, float, float], None]  # epoch, held-out loss, held-out pixel accuracy


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """What a training came to, measured on footprints that it did not train on."""

    epochs: int
    trained_on: int
    held_out: int
    held_out_loss: float  # pixelwise cross-entropy of the epoch that was kept
    held_out_accuracy: float  # share of pixels
    accuracy_per_label: tuple[float | None, ...]  # None for a label that no held-out pixel has
    seconds: float  # of wall time, interrupted parts included


def train(
    footprints: Sights,
    settings: TrainingSettings,
    seed: int,
    *,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> tuple[ConvEncoder, TrainingReport]:
    """Train on the distinct ones of these footprints, which must be those of the partition split alone.

    With a checkpoint the state is saved after every epoch, and a training that finds its own goes on from it.
    """
    check_encodable(footprints.geometry)
    with _one_thread():
        run = _Run(footprints, settings, seed)
        if checkpoint is not None and checkpoint.exists():
            run.load(checkpoint)
        while run.epoch < settings.epochs and run.epoch - run.best_epoch < settings.patience:
            latest = run.advance()
            if checkpoint is not None:
                run.save(checkpoint)
            if progress is not None:
                progress(run.epoch, latest.loss, latest.accuracy)
        return extract(run.best_weights, footprints.labels, footprints.geometry), run.report()


class _Run:
    """A training under way: everything that the next epoch depends on."""

    def __init__(self, footprints: Sights, settings: TrainingSettings, seed: int) -> None:
        self.settings, self.seed = settings, seed
        self.cells, self.trained, held = draw(footprints, settings.most_footprints, seed)
        self.held = self.cells[held]
        self.batch = min(settings.batch, len(self.trained))
        self.network = build(
            len(footprints.labels),
            footprints.geometry,
            settings.latent_dim,
            integer(seed, "autoencoder", "weights"),
        )
        self.gradient_step = GradientStep(self.network, self.batch, footprints.geometry)
        self.optimizer = torch.optim.Adam(self.network.parameters(), betas=(0.9, 0.99))
        self.epoch = self.best_epoch = 0
        self.seconds = 0.0
        self.best_score = score(self.network, self.held)
        self.best_weights = self._weights("encoder.")
        data = sha256()
        for row in (*self.trained, *held):
            data.update(self.cells[row].data)
        self.identity = {
            "settings": asdict(settings),
            "seed": seed,
            "labels": list(footprints.labels),
            "geometry": asdict(footprints.geometry),
            "footprints": data.hexdigest(),
        }

    def advance(self) -> Score:
        """One epoch, and a look at the held-out footprints."""
        start = time.perf_counter()
        order = stream(self.seed, "autoencoder", "epoch", self.epoch).permutation(len(self.trained))
        steps = len(order) // self.batch
        for k in range(steps):
            rows = order[k * self.batch : (k + 1) * self.batch]
            self.gradient_step(torch.from_numpy(self.cells[self.trained[rows]]))
            done = (self.epoch + (k + 0.5) / steps) / self.settings.epochs
            self.optimizer.param_groups[0]["lr"] = _learning_rate(self.settings, done)
            self.optimizer.step()
        self.epoch += 1
        latest = score(self.network, self.held)
        self.seconds += time.perf_counter() - start
        if not math.isfinite(latest.loss):
            raise OcularError(
                f"the autoencoder's held-out loss is {latest.loss} after epoch {self.epoch}; allowed are "
                f"finite numbers: try a learning_rate below {self.settings.learning_rate}"
            )
        if latest.loss < self.best_score.loss:
            self.best_epoch, self.best_score = self.epoch, latest
            self.best_weights = self._weights("encoder.")
        return latest

    def report(self) -> TrainingReport:
        return TrainingReport(
            epochs=self.epoch,
            trained_on=len(self.trained),
            held_out=len(self.held),
            held_out_loss=self.best_score.loss,
            held_out_accuracy=self.best_score.accuracy,
            accuracy_per_label=self.best_score.per_label,
            seconds=self.seconds,
        )

    def save(self, path: Path) -> None:
        """Weights, moments and counters; the optimiser's step count follows from the epoch."""
        arrays = {f"now.{name}": array for name, array in self._weights("").items()}
        arrays |= {f"best.{name}": array for name, array in self.best_weights.items()}
        for name, parameter in self.network.named_parameters():
            for moment in ("exp_avg", "exp_avg_sq"):
                arrays[f"{moment}.{name}"] = self.optimizer.state[parameter][moment].numpy()
        manifest = self.identity | {
            "epoch": self.epoch,
            "best_epoch": self.best_epoch,
            "best_score": asdict(self.best_score),
            "seconds": self.seconds,
        }
        write_sealed(path, kind=CHECKPOINT_KIND, version=CHECKPOINT_VERSION, manifest=manifest, arrays=arrays)

    def load(self, path: Path) -> None:
        """Go on from a saved state, if it is of this very training."""
        sealed = read_sealed(path, kind=CHECKPOINT_KIND, version=CHECKPOINT_VERSION)
        with sound_content(path, CHECKPOINT_KIND):
            identity = {name: sealed.manifest[name] for name in self.identity}
        for name, mine in self.identity.items():
            if identity[name] != mine:
                raise InputError(
                    f"the checkpoint {path} is of a training with {name} {identity[name]}; "
                    f"allowed is {mine}: name another file, or delete this one"
                )
        with sound_content(path, CHECKPOINT_KIND):
            self._restore(sealed)

    def _restore(self, sealed: Sealed) -> None:
        """Everything is checked before anything is changed."""
        now = {name: tuple(parameter.shape) for name, parameter in self.network.named_parameters()}
        shapes: dict[str, tuple[int, ...]] = {
            f"{kind}.{name}": now[name] for kind in ("now", "exp_avg", "exp_avg_sq") for name in now
        }
        shapes |= {f"best.{name}": array.shape for name, array in self.best_weights.items()}
        arrays = take(sealed.arrays, dict.fromkeys(shapes, np.float32))
        for name, array in arrays.items():
            check_shape(name, array, shapes[name])
            check_finite(name, array)
        epoch, best_epoch = sealed.manifest["epoch"], sealed.manifest["best_epoch"]
        check_whole("epoch", epoch, least=0)
        check_whole("best_epoch", best_epoch, least=0)
        if not best_epoch <= epoch <= self.settings.epochs:
            raise InputError(f"epochs {best_epoch} and {epoch}; allowed are at most {self.settings.epochs}")
        best, self.seconds = sealed.manifest["best_score"], float(sealed.manifest["seconds"])
        per_label = tuple(None if share is None else float(share) for share in best["per_label"])
        self.best_score = Score(float(best["loss"]), float(best["accuracy"]), per_label)
        self.epoch, self.best_epoch = epoch, best_epoch
        self.best_weights = {name: arrays[f"best.{name}"] for name in self.best_weights}
        steps = self.epoch * (len(self.trained) // self.batch)
        with torch.no_grad():
            for name, parameter in self.network.named_parameters():
                parameter.copy_(torch.from_numpy(arrays[f"now.{name}"]))
                state: dict[str, Any] = {"step": torch.tensor(float(steps))}
                for moment in ("exp_avg", "exp_avg_sq"):  # in the parameter's own memory layout
                    array = arrays[f"{moment}.{name}"]
                    state[moment] = torch.empty_like(parameter).copy_(torch.from_numpy(array))
                self.optimizer.state[parameter] = state

    def _weights(self, prefix: str) -> dict[str, npt.NDArray[np.float32]]:
        return {
            name: np.array(parameter.detach().numpy(), order="C")
            for name, parameter in self.network.named_parameters()
            if name.startswith(prefix)
        }


def _learning_rate(settings: TrainingSettings, done: float) -> float:
    """Up in a straight line, then down along a cosine; `done` is the share of all steps."""
    if done < settings.warm_up:
        return settings.learning_rate * done / settings.warm_up
    fall = (done - settings.warm_up) / (1 - settings.warm_up)
    return settings.learning_rate * (1 + math.cos(math.pi * fall)) / 2


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
