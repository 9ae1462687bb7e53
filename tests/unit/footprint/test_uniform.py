"""A ground that is only named becomes a footprint that shows nothing else, and an encoder tells it apart."""

import numpy as np
import pytest

from ocular.encoding import untrained
from ocular.errors import InputError
from ocular.footprint import uniform_footprints
from ocular.records import FootprintGeometry

GROUNDS = ("asphalt", "ice", "UNKNOWN", "sand")


def test_each_ground_has_a_footprint_of_its_own():
    geometry = FootprintGeometry(angles=16, ranges=8)
    footprints = uniform_footprints(GROUNDS, geometry)
    assert footprints.labels == ("OCCUPIED", "UNKNOWN", "asphalt", "ice", "sand")
    assert footprints.cells.shape == (4, 16, 8)
    for name, cells in zip(GROUNDS, footprints.cells, strict=True):
        assert {footprints.labels[number] for number in np.unique(cells)} == {name}


def test_an_untrained_encoder_tells_them_apart_and_is_the_same_for_a_seed():
    footprints = uniform_footprints(GROUNDS)
    latents = untrained(footprints, 0).encode(footprints.cells)
    distances = np.linalg.norm(latents[:, None] - latents[None], axis=-1)
    assert distances[~np.eye(4, dtype=bool)].min() > 0.1
    assert untrained(footprints, 0).encode(footprints.cells).tobytes() == latents.tobytes()
    assert not np.allclose(untrained(footprints, 1).encode(footprints.cells), latents)


def test_grounds_are_distinct_and_of_a_size_that_can_be_encoded():
    with pytest.raises(InputError, match="up to 255 distinct names"):
        uniform_footprints(("ice", "ice"))
    with pytest.raises(InputError, match="multiples of 8"):
        untrained(uniform_footprints(GROUNDS, FootprintGeometry(angles=10, ranges=8)), 0)
