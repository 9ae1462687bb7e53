"""A saved calibration answers as the living one does, and a damaged one does not load."""

from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import random_transitions
from tests.unit.calibrators.test_calibrators import MODEL, STATE_COV, calibrators, drifting

from ocular.calibrators import load, save
from ocular.calibrators.levels import Levels
from ocular.errors import DamagedFileError
from ocular.sealed import read_sealed, write_sealed


@pytest.fixture(scope="module")
def logs():
    return random_transitions(np.random.default_rng(1), 6000, drifting)


@pytest.mark.parametrize("name", calibrators())
def test_round_trip(name, logs, tmp_path):
    calibration = calibrators()[name].fit(logs, MODEL, STATE_COV, seed=0)
    save(calibration, tmp_path / "robot.ocular")
    loaded = load(tmp_path / "robot.ocular")
    for alpha in (0.05, 0.1, 0.5):
        assert np.array_equal(loaded.scale(logs.inputs, alpha), calibration.scale(logs.inputs, alpha))
    assert np.array_equal(loaded.score(logs), calibration.score(logs))
    assert loaded.method == name
    assert loaded.provenance == calibration.provenance
    save(loaded, tmp_path / "again.ocular")
    assert (tmp_path / "again.ocular").read_bytes() == (tmp_path / "robot.ocular").read_bytes()


def test_one_changed_byte_is_noticed(logs, tmp_path):
    path = tmp_path / "robot.ocular"
    save(calibrators()["ocular"].fit(logs, MODEL, STATE_COV, seed=0), path)
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(good), 100):
        bad = bytearray(good)
        bad[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(bad))
        with pytest.raises(DamagedFileError):
            load(path)


def test_a_newer_format_is_refused(tmp_path):
    path = tmp_path / "robot.ocular"
    write_sealed(path, kind="calibration", version=99, manifest={}, arrays={})
    with pytest.raises(DamagedFileError, match="99"):
        load(path)


def test_a_sealed_file_with_unsound_content_is_refused(logs, tmp_path):
    path = tmp_path / "robot.ocular"
    save(calibrators()["lucca"].fit(logs, MODEL, STATE_COV, seed=0), path)
    sealed = read_sealed(path, kind="calibration", version=2)
    for name, value in {
        "tree.left": np.zeros_like(sealed.arrays["tree.left"]),
        "scores": sealed.arrays["scores"][::-1],
        "offsets": sealed.arrays["offsets"][:-1],
        "model.Q": -np.eye(4),
    }.items():
        arrays = {**sealed.arrays, name: np.ascontiguousarray(value)}
        write_sealed(path, kind="calibration", version=2, manifest=sealed.manifest, arrays=arrays)
        with pytest.raises(DamagedFileError, match="not a sound calibration"):
            load(path)
    arrays = {k: v for k, v in sealed.arrays.items() if k != "state_cov"}
    write_sealed(path, kind="calibration", version=2, manifest=sealed.manifest, arrays=arrays)
    with pytest.raises(DamagedFileError, match="state_cov"):
        load(path)


def test_a_file_of_the_first_version_is_read(logs, tmp_path):
    path = tmp_path / "robot.ocular"
    calibration = calibrators()["lucca"].fit(logs, MODEL, STATE_COV, seed=0)
    save(calibration, path)
    sealed = read_sealed(path, kind="calibration", version=2)
    old = {name: value for name, value in sealed.manifest.items() if name != "leveled"}
    write_sealed(path, kind="calibration", version=1, manifest=old, arrays=sealed.arrays)
    assert np.array_equal(load(path).scale(logs.inputs, 0.1), calibration.scale(logs.inputs, 0.1))


def test_levels_come_back(logs, tmp_path):
    path = tmp_path / "robot.ocular"
    calibration = calibrators()["ocular"].fit(logs, MODEL, STATE_COV, seed=0)
    leveled = replace(calibration, levels=Levels(0, np.array([0.0, 0.5, 1.5])))
    save(leveled, path)
    inputs = logs.inputs
    assert np.array_equal(load(path).scale(inputs, 0.1), leveled.scale(inputs, 0.1))
    assert (leveled.scale(inputs, 0.1) > calibration.scale(inputs, 0.1)).any()
