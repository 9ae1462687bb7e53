"""The coverage reproduction, whole but tiny: same rows whatever the workers, and after any kill."""

import itertools
import os
import subprocess
import sys
import textwrap
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest
from tests.conftest import LABELS, SMALL, random_encoder, random_transitions
from tests.e2e.test_documents import blocks

from ocular.calibrators import SplitCP, ocular, save
from ocular.data import TransitionStore
from ocular.dynamics import double_integrator
from ocular.encoding import TrainingSettings, training
from ocular.encoding.drawing import draw
from ocular.errors import InputError
from ocular.evaluation.rows import read_rows
from ocular.experiments.cluster import workers_at
from ocular.experiments.coverage import CoverageSettings, reproduce_coverage
from ocular.experiments.planar import PlanarSettings
from ocular.experiments.workshop import Workshop
from ocular.partition import TreeSettings
from ocular.worlds.collect import GridSpec

TINY = CoverageSettings(
    PlanarSettings(
        grid=GridSpec(positions=16, velocities=4, actions=2),
        training=TrainingSettings(epochs=1, most_footprints=40),
    ),
    test_grid=GridSpec(positions=8, velocities=2, actions=2),
    particles=50,
)


def run(folder: Path, workers: int, settings: CoverageSettings = TINY, maps=("H",)) -> list[Path]:
    return reproduce_coverage(settings, "main", maps, folder / "results", folder / "work", workers)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    run(folder, workers=1)
    return folder


def test_rows_are_complete_and_plausible(finished):
    rows = read_rows(finished / "results" / "planar" / "coverage.csv")
    assert {(r["method"], r["region"]) for r in rows} == {
        (method, region)
        for method in ("nocp", "splitcp", "lucca", "ocular", "ocular_same_map", "ocular_no_encode")
        for region in ("ID", "OOD")
    }
    found = {(r["method"], r["region"]): float(r["coverage"]) for r in rows}
    assert abs(found["nocp", "ID"] - 0.9) < 0.02
    assert found["nocp", "OOD"] < 0.2
    assert found["splitcp", "ID"] > 0.99
    assert found["ocular", "ID"] > 0.85


def test_two_workers_give_the_same_bytes_and_nothing_is_done_twice(finished, tmp_path):
    (csv, *_) = run(tmp_path, workers=2)
    assert csv.read_bytes() == (finished / "results" / "planar" / "coverage.csv").read_bytes()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    run(tmp_path, workers=2)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_killed_run_goes_on_to_the_same_bytes(finished, tmp_path):
    program = textwrap.dedent(
        """
        import os, sys, threading
        from pathlib import Path
        from tests.e2e.test_reproduce import run
        threading.Timer(float(sys.argv[2]), os._exit, [137]).start()
        run(Path(sys.argv[1]), workers=1)
        os._exit(0)
        """
    )
    for seconds in ("2.5", "3.5", "5", "60"):
        subprocess.run([sys.executable, "-c", program, str(tmp_path), seconds], check=False, timeout=120)
    csv = tmp_path / "results" / "planar" / "coverage.csv"
    assert csv.read_bytes() == (finished / "results" / "planar" / "coverage.csv").read_bytes()


def test_rows_of_another_configuration_are_not_mixed_in(finished):
    with pytest.raises(InputError, match="particles was 50, now 60"):
        run(finished, workers=1, settings=replace(TINY, particles=60))


def test_no_method_sees_the_map_that_it_must_not(finished):
    workshop = Workshop.under(finished / "work", TINY.calibration)
    data_for = TINY.calibration.data_for
    assert data_for("H", "ocular") == data_for("H", "ocular_no_encode") == ("S", "L", "U")
    assert workshop.calibration("H", "ocular").provenance["environments"] == ["S", "L", "U"]
    for method in ("nocp", "splitcp", "lucca", "ocular_same_map"):
        assert workshop.calibration("H", method).provenance["environments"] == ["H"]


@contextmanager
def started(folder: Path, name: str, *arguments: str):
    """A process of dask's that listens on the loopback alone, its output in a file."""
    local = ("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0")
    command = [sys.executable, "-m", f"distributed.cli.{name}", *local, *arguments]
    with open(folder / f"{name}{time.monotonic_ns()}.log", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        try:
            yield
        finally:
            process.kill()
            process.wait()


@contextmanager
def dask_cluster(folder: Path, workers: int, threads: int):
    """Address of a scheduler with so many workers."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: ocular[dask]")
    known = folder / "scheduler.json"
    arguments = ("--scheduler-file", str(known), "--nthreads", str(threads), "--no-nanny")
    with ExitStack() as processes:
        processes.enter_context(started(folder, "dask_scheduler", "--port", "0", *arguments[:2]))
        for _ in range(workers):
            processes.enter_context(started(folder, "dask_worker", *arguments))
        for _ in itertools.takewhile(lambda _: not known.exists(), range(600)):
            time.sleep(0.1)
        with distributed.Client(scheduler_file=str(known), timeout=60, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)
            address = client.scheduler.address
        yield address


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two workers of one thread each."""
    with dask_cluster(tmp_path_factory.mktemp("cluster"), workers=2, threads=1) as address:
        yield address


def test_two_workers_of_a_cluster_give_the_same_bytes(finished, cluster, tmp_path):
    with workers_at(cluster, 1) as workers:
        assert workers == 2
        pids = joblib.Parallel()(joblib.delayed(os.getpid)() for _ in range(20))
        assert os.getpid() not in pids
        run(tmp_path, workers)
    for name in ("coverage.csv", "datasets.csv"):
        made = (tmp_path / "results" / "planar" / name).read_bytes()
        assert made == (finished / "results" / "planar" / name).read_bytes()


def drawing_encoder(sights, seed):
    draw(sights, 30, seed)
    return random_encoder(0)


@pytest.mark.parametrize("calibrator", [SplitCP(), ocular(drawing_encoder, tree=TreeSettings(3, 100))])
def test_a_calibration_by_parts_is_the_same_on_a_cluster(calibrator, cluster, tmp_path):
    model = double_integrator(0.05, floor=1e-6)
    store = TransitionStore.create(tmp_path / "store", LABELS, SMALL, 4, 2)
    for k in range(4):
        store.append(f"part{k}", random_transitions(np.random.default_rng(k), 300, model.step))
    save(calibrator.fit(store.load(), model, 2e-5 * np.eye(4), seed=0), tmp_path / "here")
    with workers_at(cluster, 1):
        save(calibrator.fit(store.logs(), model, 2e-5 * np.eye(4), seed=0), tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_the_command_calibrates_on_a_cluster(cluster, tmp_path):
    model = double_integrator(0.05, floor=1e-6)
    store = TransitionStore.create(tmp_path / "store", LABELS, SMALL, 4, 2)
    for k in range(2):
        store.append(f"part{k}", random_transitions(np.random.default_rng(k), 300, model.step))
    asked = ["calibrate", "store", "--model", "planar", "--method", "splitcp", "--no-account"]
    for where in (["-o", "here"], ["-o", "there", "--scheduler", cluster]):
        program = [Path(sys.executable).parent / "ocular", *asked, *where]
        subprocess.run(program, cwd=tmp_path, check=True, timeout=120)
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_what_the_document_shows(cluster, tmp_path, monkeypatch):
    quick, full = TrainingSettings(epochs=1, most_footprints=40, batch=8), training.train
    monkeypatch.setattr(training, "train", lambda seen, _, seed, **how: full(seen, quick, seed, **how))
    monkeypatch.chdir(tmp_path)
    store = TransitionStore.create(tmp_path / "logs", LABELS, SMALL, 4, 2)
    model = double_integrator(0.05, floor=1e-6)
    for k in range(2):
        store.append(f"part{k}", random_transitions(np.random.default_rng(k), 500, model.step, footprints=20))
    names, found = {}, []
    for file in ("fit_parts.py", "fit_cluster.py"):
        exec(compile(blocks()[file].replace("tcp://10.0.0.1:8786", cluster), file, "exec"), names)
        found.append(names["calibration"].thresholds(0.1))
    assert np.array_equal(*found)


def test_clusters_that_are_not_there_or_of_another_kind_are_named(tmp_path):
    with dask_cluster(tmp_path, workers=1, threads=2) as address:
        with pytest.raises(InputError, match=r"workers of \[2\] threads; allowed are two or more"):
            workers_at(address, 1).__enter__()
        with pytest.raises(InputError, match="answers at 'nowhere://x'; allowed is the address"):
            workers_at("nowhere://x", 1).__enter__()
