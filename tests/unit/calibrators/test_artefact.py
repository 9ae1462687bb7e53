"""A saved calibration answers as the living one does, and a damaged one does not load."""

from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import random_transitions
from tests.unit.calibrators.test_calibrators import MODEL, STATE_COV, calibrators, drifting

from ocular.calibrators import load, save
from ocular.calibrators.artefact import VERSION
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
    sealed = read_sealed(path, kind="calibration", version=VERSION)
    for name, value in {
        "tree.left": np.zeros_like(sealed.arrays["tree.left"]),
        "scores": sealed.arrays["scores"][::-1],
        "offsets": sealed.arrays["offsets"][:-1],
        "model.Q": -np.eye(4),
    }.items():
        arrays = {**sealed.arrays, name: np.ascontiguousarray(value)}
        write_sealed(path, kind="calibration", version=VERSION, manifest=sealed.manifest, arrays=arrays)
        with pytest.raises(DamagedFileError, match="not a sound calibration"):
            load(path)
    arrays = {k: v for k, v in sealed.arrays.items() if k != "state_cov"}
    write_sealed(path, kind="calibration", version=VERSION, manifest=sealed.manifest, arrays=arrays)
    with pytest.raises(DamagedFileError, match="state_cov"):
        load(path)


def test_a_file_of_the_first_version_is_read(logs, tmp_path):
    path = tmp_path / "robot.ocular"
    calibration = calibrators()["lucca"].fit(logs, MODEL, STATE_COV, seed=0)
    save(calibration, path)
    sealed = read_sealed(path, kind="calibration", version=VERSION)
    later = ("leveled", "model", "points")
    old = {name: value for name, value in sealed.manifest.items() if name not in later}
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


def without(mapping, *names):
    return {name: value for name, value in mapping.items() if name not in names}


FORGERIES = {
    "scores left out": (lambda m, a: (m, without(a, "scores", "offsets")), "points|scores"),
    "and their number too": (lambda m, a: ({**m, "points": 0}, without(a, "scores", "offsets")), "no scores"),
    "another number of scores": (lambda m, a: ({**m, "points": m["points"] + 1}, a), "points is"),
    "a field more": (lambda m, a: ({**m, "more": 1}, a), "fields are"),
    "a field less": (lambda m, a: (without(m, "points"), a), "fields are"),
    "an array more": (lambda m, a: (m, {**a, "more": np.ones(1)}), "the arrays are"),
    "another dtype": (lambda m, a: (m, {**a, "scores": a["scores"].astype(np.float32)}), "dtype float32"),
    "a state covariance that is none": (
        lambda m, a: (m, {**a, "state_cov": -a["state_cov"]}),
        "semidefinite",
    ),
    "of another model": (lambda m, a: (m, {**a, "state_cov": np.eye(3)}), "state_cov has shape"),
    "negative scores": (lambda m, a: (m, {**a, "scores": a["scores"] - 1}), "negative number"),
    "a text for true": (lambda m, a: ({**m, "fallback": "false"}, a), "true or false"),
    "a tree over other features": (lambda m, a: ({**m, "tree_features": 30}, a), "a tree over 30"),
    "a threshold that is none": (
        lambda m, a: (m, {**a, "tree.threshold": a["tree.threshold"] * np.nan}),
        "not finite",
    ),
    "a tree with a cycle": (
        lambda m, a: (m, {**a, "tree.left": np.where(a["tree.left"] > 0, 0, -1).astype(np.int32)}),
        "no binary tree",
    ),
    "levels of no column": (
        lambda m, a: ({**m, "leveled": 6}, {**a, "levels": np.array([0.0, 1.0])}),
        "levels of column 6",
    ),
    "levels without a column": (lambda m, a: (m, {**a, "levels": np.array([0.0, 1.0])}), "the arrays are"),
    "a footprint of a petabyte": (
        lambda m, a: ({**m, "encoder": {**m["encoder"], "angles": 10**15}}, a),
        "allowed are at most",
    ),
    "half a footprint": (
        lambda m, a: ({**m, "encoder": {**m["encoder"], "angles": 16.0}}, a),
        "whole number",
    ),
}


@pytest.fixture(scope="module")
def saved(logs, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "robot.ocular"
    save(calibrators()["ocular"].fit(logs, MODEL, STATE_COV, seed=0), path)
    return read_sealed(path, kind="calibration", version=VERSION)


@pytest.mark.parametrize("name", FORGERIES)
def test_content_that_contradicts_itself_is_refused_though_its_seal_is_right(name, saved, tmp_path):
    forge, message = FORGERIES[name]
    manifest, arrays = forge(saved.manifest, saved.arrays)
    write_sealed(tmp_path / "forged", kind="calibration", version=VERSION, manifest=manifest, arrays=arrays)
    with pytest.raises(DamagedFileError, match=message):
        load(tmp_path / "forged")
