"""A noisy camera errs as much as it says, and a pose's noise is its own."""

from dataclasses import replace

import numpy as np
import pytest

from ocular.errors import InputError
from ocular.experiments.camera import CameraSettings
from ocular.worlds.junction import CameraNoise, open_junction

WHERE, LOOKING = np.array([30.5, 30.0]), -1.6


@pytest.fixture(scope="module")
def world():
    return open_junction("icyMain")


def noisy(world, *, depth=0.05, flipped=0.05, seed=0):
    return replace(world, camera_noise=CameraNoise(depth, flipped, seed))


def test_depth_and_labels_err_as_much_as_said(world):
    clean, rough = (w.eye.take(WHERE, LOOKING) for w in (world, noisy(world)))
    seen = np.isfinite(clean.depth)
    np.testing.assert_array_equal(np.isfinite(rough.depth), seen)
    error = rough.depth[seen] / clean.depth[seen] - 1
    assert abs(error.mean()) < 0.001
    assert error.std() == pytest.approx(0.05, rel=0.02)
    wrong = rough.semantics != clean.semantics
    assert wrong.mean() == pytest.approx(0.05, abs=0.005)
    assert set(np.unique(rough.semantics[wrong])) == set(range(len(clean.classes)))


def test_noise_belongs_to_pose_and_seed(world):
    first, again, turned, other = (
        noisy(world, seed=seed).observe(WHERE[None], np.array([looking]))[0]
        for seed, looking in ((0, LOOKING), (0, LOOKING), (0, LOOKING + 1e-6), (1, LOOKING))
    )
    np.testing.assert_array_equal(first, again)
    assert (first != turned).any()
    assert (first != other).any()


def test_without_noise_it_is_the_clean_camera(world):
    clean, still = (w.eye.take(WHERE, LOOKING) for w in (world, noisy(world, depth=0.0, flipped=0.0)))
    np.testing.assert_array_equal(clean.depth, still.depth)
    np.testing.assert_array_equal(clean.semantics, still.semantics)


def test_the_experiment_opens_noisy_worlds_when_asked():
    assert CameraSettings().world("icySide").camera_noise is None
    assert CameraSettings(camera_noise=0.05, seed=3).world("icySide").camera_noise == CameraNoise(
        0.05, 0.05, 3
    )


@pytest.mark.parametrize(("depth", "flipped"), [(1.0, 0.0), (-0.1, 0.0), (0.0, 1.1), (float("nan"), 0.0)])
def test_noise_out_of_range_is_refused(depth, flipped):
    with pytest.raises(InputError, match="allowed are 0 <= depth < 1"):
        CameraNoise(depth, flipped, 0)
