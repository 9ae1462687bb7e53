"""Fixtures that several rooms' tests share."""

import numpy as np
import pytest

from ocular.encoding import ConvEncoder
from ocular.records import FootprintGeometry, Footprints, Inputs, Transitions

LABELS = ("OCCUPIED", "UNKNOWN", "NOMINAL", "LOW_FRICTION")
SMALL = FootprintGeometry(angles=16, ranges=8, field_of_view=2.0, max_range=0.5)


def random_encoder(seed: int, geometry: FootprintGeometry = SMALL, labels=LABELS) -> ConvEncoder:
    """An untrained encoder of the paper's shape."""
    rng = np.random.default_rng(seed)

    def weights(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    positions = (geometry.angles // 8) * (geometry.ranges // 8)
    inputs = (len(labels), 8, 16)
    return ConvEncoder(
        labels=labels,
        geometry=geometry,
        kernels=tuple(weights(out, inn, 4, 4) for out, inn in zip((8, 16, 32), inputs, strict=True)),
        biases=tuple(weights(out) for out in (8, 16, 32)),
        projection=weights(6, 32 * positions),
        offset=weights(6),
    )


def random_transitions(
    rng: np.random.Generator,
    n: int,
    step,
    *,
    footprints: int = 12,
    geometry: FootprintGeometry = SMALL,
    environments=("here",),
) -> Transitions:
    """Random planar states; `step(rng, states, actions)` makes what follows."""
    states = rng.uniform(-1.8, 1.8, (n, 4))
    actions = rng.uniform(-0.9, 0.9, (n, 2))
    cells = rng.integers(0, len(LABELS), (footprints, geometry.angles, geometry.ranges), dtype=np.uint8)
    inputs = Inputs(
        states=states,
        actions=actions,
        headings=np.arctan2(states[:, 3], states[:, 2]),
        footprint_index=rng.integers(0, footprints, n),
        footprints=Footprints(cells, LABELS, geometry),
    )
    return Transitions(
        inputs, step(rng, states, actions), rng.integers(0, len(environments), n), tuple(environments)
    )


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed."""
    return np.random.default_rng(0)
