"""Regions that are no numbers, or huge, meet obstacles; no index leaves the map."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.obstacles import FREE, OCCUPIED, obstacles

from ocular.planning.ellipse import hits_obstacle, path_hits, paths_hit, penetration, within_seen

LABELS = np.full((9, 9), FREE)
LABELS[4, 4] = OCCUPIED
MAP = obstacles(LABELS, resolution=0.1, cap=0.3)
anything = st.floats() | st.sampled_from([0.0, 1e-300, 1e300, 0.45])
variances = st.floats(0) | st.sampled_from([0.0, 1e-320, 1e-300, 1e300, np.inf, np.nan])


@settings(max_examples=60, deadline=None)
@given(x=anything, y=anything, a=variances, b=anything, c=variances)
def test_what_is_no_number_is_never_clear(x, y, a, b, c):
    hit = hits_obstacle(x, y, a, b, c, MAP)
    if not np.isfinite([x, y, a, b, c]).all():
        assert hit
        assert not within_seen(x, y, a, b, c, MAP) or np.isfinite([x, y, a, c]).all()
    assert 0 <= penetration(x, y, a, b, c, MAP) <= 1


@settings(max_examples=60, deadline=None)
@given(start=st.tuples(anything, anything), end=st.tuples(anything, anything))
def test_ways_of_many_samples_stay_on_the_map(start, end):
    with np.errstate(over="ignore"):
        before, means = (np.tile(np.array(point, np.float32)[:, None], (1, 5)) for point in (start, end))
    blocked = np.zeros(5, bool)
    paths_hit(before, means, MAP, blocked)
    if not np.isfinite([before, means]).all():
        assert blocked.all()
    one = path_hits(*(float(v) for v in (*before[:, 0], *means[:, 0])), MAP)
    assert (blocked == one).all()


def test_a_way_without_end_is_not_walked():
    assert path_hits(0.1, 0.1, 1e30, 0.1, MAP)
    assert path_hits(-1e30, 0.1, 1e30, 0.1, MAP)


@pytest.mark.parametrize("size", [1e-150, 1e-3, 1.0, 1e6, 1e150])
def test_an_ellipse_of_any_size_round_an_obstacle_meets_it(size):
    assert hits_obstacle(0.45, 0.45, size**2, 0.0, size**2, MAP)
