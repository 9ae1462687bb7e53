"""The shortcut past the map never hides an obstacle."""

import numpy as np
import pytest
from tests.conftest import LABELS, SMALL, random_encoder

from ocular.deployment.workspace import Workspace
from ocular.planning.safety import is_clear
from ocular.records import FootprintGeometry

OCCUPIED = LABELS.index("OCCUPIED")
ROUND = FootprintGeometry(angles=48, ranges=16, field_of_view=2 * np.pi, max_range=3.0)


@pytest.mark.parametrize("geometry", [SMALL, ROUND, FootprintGeometry()], ids=["small", "round", "paper's"])
def test_the_verdict_is_that_of_the_whole_map(geometry):
    rng = np.random.default_rng(0)
    workspace = Workspace(random_encoder(0, geometry))
    spared, verdicts = 0, []
    for _ in range(300):
        cells = np.full((geometry.angles, geometry.ranges), 2, np.uint8)
        for _ in range(rng.integers(0, 6)):
            cells[rng.integers(geometry.angles), rng.integers(geometry.ranges)] = OCCUPIED
        mean = rng.uniform(-0.5, 1.0, 2) * geometry.max_range
        root = rng.standard_normal((2, 2)) * geometry.max_range / 20 * rng.random()
        cov, threshold = root @ root.T, rng.uniform(1, 10)
        whole = workspace.obstacles(cells, mean, cov, 1e12)
        clear = whole is None or is_clear(np.zeros(2), mean, cov, threshold, whole)
        near = workspace.obstacles(cells, mean, cov, threshold)
        assert clear == (near is None or is_clear(np.zeros(2), mean, cov, threshold, near))
        spared += near is None and whole is not None
        verdicts.append(clear)
        # Whatever a map makes of it: the centre of an obstacle's cell inside the ellipse is never clear.
        angle, reach = np.nonzero(cells == OCCUPIED)
        bearing, away = geometry.bearings[angle], geometry.distances[reach]
        centres = np.stack([away * np.cos(bearing), away * np.sin(bearing)], axis=1) - mean
        inside = (centres @ np.linalg.inv(cov) * centres).sum(axis=1) <= threshold
        assert not (clear and inside.any())
    assert spared > 50
    assert 0.1 < np.mean(verdicts) < 0.95
