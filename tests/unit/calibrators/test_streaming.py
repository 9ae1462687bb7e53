"""Calibrating part by part gives the bytes of calibrating at once, in a fraction of the memory."""

import os
import subprocess
import sys
from dataclasses import replace

import joblib
import numpy as np
import pytest
from tests.conftest import LABELS, SMALL, random_encoder, random_transitions
from tests.unit.calibrators.test_calibrators import MODEL, STATE_COV, TREE, calibrators, drifting

from ocular.calibrators import ocular, save
from ocular.calibrators.base import split_rows
from ocular.calibrators.streaming import footprints_of
from ocular.data import TransitionStore, join_logs
from ocular.encoding import TrainingSettings
from ocular.encoding.drawing import draw
from ocular.errors import InputError
from ocular.records import FootprintGeometry, Footprints, Logs

SIZES = (1700, 1, 900, 37, 3362)  # of the parts


def new_store(path, geometry=SMALL):
    return TransitionStore.create(path, LABELS, geometry, state_dim=4, action_dim=2)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Parts of several sizes; one footprint, at least, is in two of them."""
    store = new_store(tmp_path_factory.mktemp("streaming") / "store")
    rng, common = np.random.default_rng(5), None
    for k, n in enumerate(SIZES):
        part = random_transitions(rng, n, drifting, footprints=30, environments=("a", f"b{k % 2}"))
        cells = part.inputs.footprints.cells
        common = cells[0].copy() if common is None else common
        cells[part.inputs.footprint_index[0]] = common
        store.append(f"part{k}", part)
    return store


def saved(calibration, path):
    save(calibration, path)
    return path.read_bytes()


@pytest.mark.parametrize("name", calibrators())
def test_part_by_part_gives_the_same_bytes(name, store, tmp_path):
    at_once = calibrators()[name].fit(store.load(), MODEL, STATE_COV, seed=2)
    by_part = calibrators()[name].fit(store.logs(), MODEL, STATE_COV, seed=2)
    assert saved(by_part, tmp_path / "parts") == saved(at_once, tmp_path / "whole")


def test_encoders_trained_either_way_are_the_same_on_two_workers_too(store, tmp_path):
    from ocular.encoding.training import train

    settings = TrainingSettings(epochs=1, most_footprints=40, batch=8)
    calibrator = ocular(lambda sights, seed: train(sights, settings, seed)[0], tree=TREE)
    at_once = calibrator.fit(store.load(), MODEL, STATE_COV, seed=2)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        by_part = calibrator.fit(store.logs(), MODEL, STATE_COV, seed=2)
    assert saved(by_part, tmp_path / "parts") == saved(at_once, tmp_path / "whole")


@pytest.mark.parametrize("most", [25, 60, 1000])
def test_the_same_footprints_are_drawn_in_the_same_order(store, most):
    rows, _ = split_rows(sum(SIZES), 0.7, seed=4)
    whole = footprints_of(Logs.of(store.load()), rows)
    assert isinstance(whole, Footprints)
    drawn = [draw(sights, most, 4) for sights in (whole, footprints_of(store.logs(), rows))]
    for which in (1, 2):  # to train on, to judge by
        first, second = (sample[0][sample[which]] for sample in drawn)
        assert len(first)
        assert np.array_equal(first, second)
    assert len(drawn[1][0]) <= most  # no more than those drawn are kept


def test_several_stores_are_one_if_they_speak_of_the_same(store, tmp_path):
    parts = store.parts
    again = join_logs([(store, parts[:2]), (store, ()), (store, parts[2:])])
    assert again.environments == store.load().environments
    assert [p.transitions for p in again.parts] == list(SIZES)
    wider = new_store(tmp_path / "wider", replace(SMALL, field_of_view=2.5))
    with pytest.raises(InputError, match=r"field_of_view=2\.5.*allowed is the same as in"):
        join_logs([(store, parts), (wider, ())])
    with pytest.raises(InputError, match="'part9'; allowed are 'part0'"):
        store.logs(["part9"])
    with pytest.raises(InputError, match="no parts"):
        join_logs([(store, ())])


PARTS, PART, ALLOWED = 30, 250, 32  # parts, footprints of 19,200 bytes in each, MiB
LIMITED = """
import resource, sys
import numpy as np
from tests.unit.calibrators.test_streaming import ALLOWED, big_fit
from ocular.data import TransitionStore

store = TransitionStore.open(sys.argv[1])
big_fit(store.logs(store.parts[:4]))  # compiles, and starts whatever threads there will be
data = next(line for line in open("/proc/self/status") if line.startswith("VmData"))
limit = 1024 * int(data.split()[1]) + ALLOWED * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
calibration = big_fit(store.logs())
print(len(calibration.scales(0.1)), calibration.provenance["transitions"])
try:
    store.load()
except MemoryError:
    print("too much at once")
"""


def big_fit(logs):
    """OCULAR with an encoder that is drawn for, but not trained."""

    def encoder(sights, seed):
        draw(sights, 100, seed)
        return random_encoder(0, FootprintGeometry())

    return ocular(encoder, tree=TREE).fit(logs, MODEL, STATE_COV, seed=0)


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_a_store_several_times_larger_than_the_memory_allowed(tmp_path):
    store = new_store(tmp_path / "store", FootprintGeometry())
    rng = np.random.default_rng(0)
    for k in range(PARTS):
        part = random_transitions(rng, PART, drifting, footprints=1)
        cells = np.full((PART, 240, 80), k % 4, np.uint8)
        cells[:, 0, :16] = rng.integers(0, 4, (PART, 16))  # each is different
        footprints = Footprints(cells, LABELS, FootprintGeometry())
        inputs = replace(part.inputs, footprint_index=np.arange(PART), footprints=footprints)
        store.append(f"part{k}", replace(part, inputs=inputs))
    assert PARTS * PART * 240 * 80 > 4 * ALLOWED * 2**20
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, str(store.path)],
        env=os.environ | {"MALLOC_ARENA_MAX": "2"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    cells, transitions, *rest = ran.stdout.split(maxsplit=2)
    assert int(cells) > 1
    assert int(transitions) == PARTS * PART
    assert rest[0].endswith("too much at once\n")  # a library may have said so, too
