import numpy as np
import pytest

from ocular.data.importers.timeline import SECOND, Clock, Stamps, grid, held, in_order, interpolate, nearest


def test_a_grid_starts_anew_after_each_gap_and_never_leaves_its_stretch(rng):
    times = np.cumsum(rng.choice([3, 5, 8, 400], p=[0.3, 0.4, 0.2, 0.1], size=500))
    moments, follows, gaps = grid(times, 7, 10)
    assert gaps == np.count_nonzero(np.diff(times) > 10)
    after = np.searchsorted(times, moments)
    before = np.searchsorted(times, moments, "right") - 1
    assert (times[after] - times[before] <= 10).all()  # no moment lies in a gap
    assert (np.diff(moments)[follows[:-1]] == 7).all()
    assert (np.diff(moments)[~follows[:-1]] != 7).any()
    assert not follows[-1]


def test_no_messages_no_moments():
    nothing = np.empty(0, np.int64)
    moments, follows, gaps = grid(nothing, 7, 10)
    assert (len(moments), len(follows), gaps) == (0, 0, 0)
    assert interpolate(nothing, np.empty((0, 2)), nothing).shape == (0, 2)
    assert nearest(nothing, np.array([1, 2]), 5).tolist() == [-1, -1]
    assert np.isnan(held(nothing, np.empty((0, 2)), np.array([1, 2]), 5, 10)).all()
    assert Clock.of(Stamps(nothing, nothing)).jumps == 0


def test_interpolation_is_exact_at_messages_and_straight_between(rng):
    times = np.cumsum(rng.integers(1, 9, 50)) * 1000
    values = rng.normal(size=(50, 3))
    assert np.array_equal(interpolate(times, values, times), values)
    between = (times[:-1] + times[1:]) // 2
    slope = np.stack([3.0 * times, -times], axis=1)
    np.testing.assert_allclose(
        interpolate(times, slope, between), np.stack([3.0 * between, -between], axis=1)
    )


def test_commands_hold_until_the_next_and_are_averaged(rng):
    """Against a sum over nanoseconds."""
    times = np.cumsum(rng.integers(1, 30, 40))
    values = rng.normal(size=(40, 2))
    starts = np.arange(0, int(times[-1]) + 20, 7)
    got = held(times, values, starts, 12, 25)
    for start, mean in zip(starts, got, strict=True):
        ticks = np.arange(start, start + 12)
        last = np.searchsorted(times, ticks, "right") - 1
        fresh = (last >= 0) & (ticks - times[last] < 25)
        if fresh.all() and start - times[last[0]] <= 25:
            np.testing.assert_allclose(mean, values[last].mean(axis=0), atol=1e-12)
        else:
            assert np.isnan(mean).all()
    assert 10 < np.isfinite(got[:, 0]).sum() < len(got)


def test_a_command_that_holds_all_along_is_kept_to_the_bit():
    times = np.array([0, 10**15])
    values = np.array([[0.1], [0.3]])
    got = held(times, values, np.array([10**15 + 5]), 200, 10**15)
    assert got[0, 0] == 0.3


def test_the_nearest_message_whatever_the_order(rng):
    times = rng.permutation(1000)[:80] * 10
    moments = rng.integers(0, 10_000, 200)
    found = nearest(times, moments, 60)
    for moment, index in zip(moments, found, strict=True):
        apart = np.abs(times - moment)
        assert (index == -1) == (apart.min() > 60)
        if index >= 0:
            assert apart[index] == apart.min()


def test_stretches_before_and_after_a_jump_never_meet():
    received = np.arange(10) * SECOND
    made = np.array([50, 51, 52, 53, 10, 11, 12, 3, 4, 5]) * SECOND
    clock = Clock.of(Stamps(received, made))
    assert clock.jumps == 2
    times = clock.times(Stamps(received, made))
    assert (np.diff(times) > 0).all()
    assert (np.diff(times)[[3, 6]] > 1000 * SECOND).all()
    image = clock.times(Stamps(received + 1, made + 1))
    assert (image - times == 1).all()
    # Without a stamp, the time of receipt, on odometry's clock.
    assert (clock.times(Stamps(received + 5, np.zeros(10, np.int64))) - times == 5).all()


def test_small_disorder_is_no_jump():
    made = np.array([10, 12, 11, 11, 13]) * SECOND // 10
    assert Clock.of(Stamps(np.arange(5), made)).jumps == 0
    assert in_order(made).tolist() == [True, True, False, False, True]


@pytest.mark.parametrize("count", [1, 2])
def test_one_message_is_a_moment_without_a_next(count):
    moments, follows, _ = grid(np.arange(count) * 100, 70, 200)
    assert follows.tolist() == [False] * count if count == 1 else [True, False]
    assert len(interpolate(np.arange(count) * 100, np.ones((count, 2)), moments)) == count
