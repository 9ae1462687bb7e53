"""The example on a real robot: what it leaves out it never sees, and its committed numbers are its own."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from examples.warthog.__main__ import COLUMNS, ROOT
from examples.warthog.coverage import FIFTHS, LEAF, TUNING, evaluate, folds, gains
from examples.warthog.logs import Logs, between_updates, read_logs
from examples.warthog.tables import tables, with_tables
from tests.conftest import LABELS, SMALL

from ocular import InputError
from ocular.evaluation.rows import read_rows
from ocular.records import Footprints, Inputs, Transitions

DATA = Path(os.environ.get("OCULAR_WARTHOG", ROOT.parent / "shared" / "data" / "warthog.npz"))
RESULTS = ROOT / "results" / "warthog"
needs_data = pytest.mark.skipif(not DATA.exists(), reason=f"there is no {DATA}")
TERRAINS = ("asphalt", "asphalt", "gravel", "sand", "sand")


def made_up() -> Logs:
    n = 5 * 300 * 3
    seen = Footprints(np.zeros((1, 16, 8), np.uint8), LABELS, SMALL)
    inputs = Inputs(np.zeros((n, 3)), np.zeros((n, 4)), np.zeros(n), np.zeros(n, np.int64), seen)
    run = np.repeat(np.arange(5), 900)
    logs = Transitions(inputs, np.zeros((n, 3)), run, tuple(f"run {k}" for k in range(5)))
    return Logs(logs, np.tile(np.repeat(np.arange(300), 3), 5), TERRAINS)


def test_no_window_and_no_command_is_on_two_sides():
    logs = made_up()
    run, command = logs.transitions.environment, logs.window // 3
    covered = {"run": [], "block": [], "mixed": [], "terrain": []}
    for fold in folds(logs):
        parts = (fold.tuning, fold.calibration, fold.test)
        commands = [set(zip(run[rows], command[rows], strict=True)) for rows in parts]
        assert sum(map(len, commands)) == len(set.union(*commands))
        assert len(np.unique(np.concatenate(parts))) == len(run)  # and nothing is lost
        assert set(run[fold.tuning]) <= {0, 1}
        assert logs.window[fold.tuning].max() < TUNING
        if fold.split != "terrain":
            assert not set(run[fold.tuning]) & set(run[fold.test])
        if fold.split in ("run", "terrain"):
            assert not set(run[fold.calibration]) & set(run[fold.test])
        if fold.split == "block":
            assert (np.diff(logs.window[fold.test]) <= 1).all()
        covered[fold.split].extend(fold.test)
    for split, runs in {
        "run": (0, 1, 3, 4),
        "block": range(5),
        "mixed": range(5),
        "terrain": (2, 3, 4),
    }.items():
        assert sorted(covered[split]) == np.flatnonzero(np.isin(run, runs)).tolist()


def test_poses_between_updates_lie_on_straight_lines():
    held = np.array([[0.0, 0, 3], [0, 0, 3], [2, 4, 2 - np.pi], [2, 4, 2 - np.pi]])
    smooth = between_updates(held)
    np.testing.assert_allclose(smooth[:, :2], [[0, 0], [1, 2], [2, 4], [2, 4]])
    np.testing.assert_allclose(smooth[:, 2], np.array([3, (5 + np.pi) / 2, 2 + np.pi, 2 + np.pi]))


def test_a_file_of_another_kind_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*allowed is warthog\.npz"):
        read_logs(tmp_path / "none.npz")
    np.savez(tmp_path / "other.npz", pose=np.zeros(3))
    with pytest.raises(InputError, match="run is not a file in the archive"):
        read_logs(tmp_path / "other.npz")


@needs_data
def test_the_committed_rows_are_what_the_example_makes():
    logs = read_logs(DATA)
    rows = {tuple(row[n] for n in COLUMNS[:6]): row for row in read_rows(RESULTS / "coverage.csv")}
    every = list(folds(logs))
    assert {key[:3] for key in rows} == {fold.name for fold in every}
    tested = [f for f in every if f.split == "run" or (f.terrain == "ice" and f.split == "block")]
    assert len(tested) == 5 + FIFTHS
    for fold in tested:
        for made in evaluate(logs, fold, 0):
            committed = rows[tuple(str(made[name]) for name in COLUMNS[:6])]
            assert made["coverage"] == pytest.approx(float(committed["coverage"]), abs=0.02)
            assert made["volume"] == pytest.approx(float(committed["volume"]), rel=0.1)
    committed = {row["run"]: row for row in read_rows(RESULTS / "gains.csv")}
    for made in gains(logs):
        row = committed.pop(made["run"])
        assert float(row["turn_gain"]) == pytest.approx(made["turn_gain"], rel=1e-3)
        assert float(row["forward_error"]) == pytest.approx(made["forward_error"], rel=1e-3)
    assert not committed


def test_what_the_rows_say_of_ice():
    rows = [r for r in read_rows(RESULTS / "coverage.csv") if r["leaf"] in ("0", str(LEAF))]

    def mean(column, **wanted):
        return np.mean([float(r[column]) for r in rows if all(r[k] == v for k, v in wanted.items())])

    on_ice = {
        m: mean("coverage", terrain="ice", split="block", method=m) for m in ("nocp", "splitcp", "ocular")
    }
    assert on_ice["nocp"] < on_ice["splitcp"] < on_ice["ocular"] < 0.9
    for terrain in ("asphalt", "gravel"):
        sizes = [mean("volume", terrain=terrain, split="block", method=m) for m in ("ocular", "splitcp")]
        assert sizes[0] < 0.6 * sizes[1]


def test_the_tables_of_the_readme_are_those_of_the_rows():
    readme = (ROOT / "examples" / "warthog" / "README.md").read_text()
    made = tables(read_rows(RESULTS / "coverage.csv"), read_rows(RESULTS / "gains.csv"))
    assert with_tables(readme, made) == readme
    assert set(re.findall(r"<!-- warthog: (\w+) -->", readme)) == set(made)
