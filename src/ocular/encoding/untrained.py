"""An encoder that never saw a footprint: for logs with too few distinct ones to train on.

Its latents tell different footprints apart, which is all that a tree needs where each footprint is known
from the logs. They do not put similar ones close together, so it is no use for footprints that no log shows.
"""

from __future__ import annotations

import numpy as np

from ocular.encoding.base import Sights
from ocular.encoding.convolutional import STRIDE, ConvEncoder, check_encodable
from ocular.encoding.kernels import CHANNELS
from ocular.seeds import stream

LATENT_DIM = 6


def untrained(footprints: Sights, seed: int) -> ConvEncoder:
    """Random weights of the usual shape for footprints of this kind; the same seed gives the same bytes."""
    labels, geometry = footprints.labels, footprints.geometry
    check_encodable(geometry)
    rng = stream(seed, "untrained encoder")

    def weights(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        fan_in = float(np.prod(shape[1:]))
        return np.asarray(rng.standard_normal(shape) * np.sqrt(2 / fan_in), np.float32)

    a, b, c = CHANNELS
    positions = (geometry.angles // STRIDE) * (geometry.ranges // STRIDE)
    return ConvEncoder(
        labels=labels,
        geometry=geometry,
        kernels=(weights(a, len(labels), 4, 4), weights(b, a, 4, 4), weights(c, b, 4, 4)),
        biases=(np.zeros(a, np.float32), np.zeros(b, np.float32), np.zeros(c, np.float32)),
        projection=weights(LATENT_DIM, c * positions),
        offset=np.zeros(LATENT_DIM, np.float32),
    )
