"""The autoencoder as torch sees it: layers, a training step, and how well it reconstructs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ocular.encoding.convolutional import STRIDE, ConvEncoder
from ocular.encoding.kernels import CHANNELS
from ocular.records import FootprintGeometry, Labels

CHUNK = 32  # footprints reconstructed at once when judging


@dataclass(frozen=True, slots=True)
class Score:
    """How well footprints are reconstructed."""

    loss: float  # pixelwise cross-entropy
    accuracy: float  # share of pixels
    per_label: tuple[float | None, ...]  # None for a label that no pixel has


class Autoencoder(nn.Module):
    """Three convolutions of kernel 4, stride 2, padding 1, a linear latent, and the mirror image of it."""

    def __init__(self, labels: int, geometry: FootprintGeometry, dim: int) -> None:
        super().__init__()
        a, b, c = CHANNELS
        angles, ranges = geometry.angles // STRIDE, geometry.ranges // STRIDE
        self.labels = labels
        self.encoder = nn.Sequential(
            *(nn.Conv2d(labels, a, 4, 2, 1), nn.ReLU()),
            *(nn.Conv2d(a, b, 4, 2, 1), nn.ReLU()),
            *(nn.Conv2d(b, c, 4, 2, 1), nn.ReLU()),
            nn.Flatten(),
            nn.Linear(c * angles * ranges, dim),
        )
        self.decoder = nn.Sequential(
            *(nn.Linear(dim, c * angles * ranges), nn.ReLU()),
            nn.Unflatten(1, (c, angles, ranges)),
            *(nn.ConvTranspose2d(c, b, 4, 2, 1), nn.ReLU()),
            *(nn.ConvTranspose2d(b, a, 4, 2, 1), nn.ReLU()),
            nn.ConvTranspose2d(a, labels, 4, 2, 1),
        )

    def forward(self, one_hot: Tensor) -> Tensor:
        """Logits (n, labels, angles, ranges)."""
        logits: Tensor = self.decoder(self.encoder(one_hot))
        return logits


def build(labels: int, geometry: FootprintGeometry, dim: int, seed: int) -> Autoencoder:
    """A fresh network from this seed; torch's own random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        network = Autoencoder(labels, geometry, dim)
    for parameter in network.parameters():
        if parameter.ndim == 4:  # faster by half than torch's own layout
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return network


class GradientStep:
    """One pass forth and back over a batch, in buffers that are made once, as fresh ones cost dearly."""

    def __init__(self, network: Autoencoder, batch: int, geometry: FootprintGeometry) -> None:
        self._network = network
        self._labels = torch.arange(network.labels, dtype=torch.uint8)[None, :, None, None]
        self._planes = torch.empty(batch, network.labels, geometry.angles, geometry.ranges)
        self._input = self._planes.contiguous(memory_format=torch.channels_last)
        self._gradient = torch.empty_like(self._planes)

    def __call__(self, cells: Tensor) -> None:
        """Leave the gradient of the mean cross-entropy in the network's parameters."""
        torch.eq(cells[:, None], self._labels, out=self._planes)
        self._input.copy_(self._planes)
        logits = self._network(self._input)
        with torch.no_grad():  # d loss / d logits = (softmax - one-hot) / pixels
            torch.softmax(logits, 1, out=self._gradient)
            self._gradient.sub_(self._planes).mul_(1 / cells.numel())
        self._network.zero_grad(set_to_none=False)
        logits.backward(self._gradient)


def score(network: Autoencoder, cells: Labels) -> Score:
    """Judge the reconstruction of these footprints."""
    hits, pixels = np.zeros(network.labels, np.int64), np.zeros(network.labels, np.int64)
    loss = 0.0
    with torch.no_grad():
        for chunk in torch.split(torch.from_numpy(cells), CHUNK):
            target = chunk.long()
            one_hot = nn.functional.one_hot(target, network.labels).permute(0, 3, 1, 2).float()
            logits = network(one_hot)
            loss += float(nn.functional.cross_entropy(logits, target)) * len(chunk)
            right = chunk.numpy()[(logits.argmax(1) == target).numpy()]
            hits += np.bincount(right, minlength=network.labels)
            pixels += np.bincount(chunk.numpy().ravel(), minlength=network.labels)
    per_label = tuple(float(h / n) if n else None for h, n in zip(hits, pixels, strict=True))
    return Score(loss / len(cells), float(hits.sum() / pixels.sum()), per_label)


def extract(
    weights: dict[str, npt.NDArray[np.float32]], labels: tuple[str, ...], geometry: FootprintGeometry
) -> ConvEncoder:
    """The encoder of which these are the torch weights."""
    names = {"kernel1": "0.weight", "kernel2": "2.weight", "kernel3": "4.weight", "projection": "7.weight"}
    names |= {"bias1": "0.bias", "bias2": "2.bias", "bias3": "4.bias", "offset": "7.bias"}
    arrays = {name: weights[f"encoder.{theirs}"] for name, theirs in names.items()}
    return ConvEncoder.from_arrays(arrays, labels, geometry)
