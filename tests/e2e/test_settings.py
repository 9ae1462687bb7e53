"""Settings chosen by the command line, shown again by it, and how much a result hangs on them."""

import json

import numpy as np
import pytest
from tests.conftest import random_encoder

from ocular.cli.calibrate import Calibrate
from ocular.cli.diagnose import Diagnose
from ocular.cli.inspect import Inspect
from ocular.data import TransitionStore
from ocular.encoding import training
from ocular.errors import InputError
from ocular.evaluation.rows import read_rows
from ocular.report.tables import Table
from ocular.report.trials import selection_table, sensitivity_table
from ocular.worlds.collect import GridSpec, collect_transitions
from ocular.worlds.map_file import PLANAR_LABELS, load_map
from ocular.worlds.planar import PlanarWorld

MAPS = ("S", "L", "H")


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    worlds = [PlanarWorld(load_map(name)) for name in MAPS]
    store = TransitionStore.create(
        tmp_path_factory.mktemp("settings") / "logs", PLANAR_LABELS, worlds[0].geometry, 4, 2
    )
    for world in worlds:
        grid = GridSpec(positions=10, velocities=4, actions=2)
        store.append(world.map.name, collect_transitions(world, grid, np.random.default_rng(0)))
    return store.path


def calibrate(logs, output, **how):
    return Calibrate(
        (logs,), output=output, model="planar", **{"method": "ocular_no_encode", "account": False} | how
    )


def test_settings_are_chosen_recorded_and_shown(logs, tmp_path, capsys):
    choose = {"select": True, "min_leaf": (40, 120), "max_depth": (2, 13)}
    calibrate(logs, tmp_path / "a", **choose).run()
    printed = capsys.readouterr().out
    assert "settings tried with each environment left out, alpha = 0.1" in printed
    assert printed.count("│ chosen") == 1
    Inspect(tmp_path / "a", most=0).run()
    assert printed[printed.index("settings tried") :].strip() in capsys.readouterr().out

    calibrate(logs, tmp_path / "b", **choose, account=True, json=True).run()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    said = json.loads(capsys.readouterr().out)
    selection = said["selection"]
    assert len(selection["trials"]) == len(MAPS) * 4
    assert [left["environment"] for left in said["left_out"]] == list(MAPS)
    assert all(left["tested"]["coverage"] > 0.8 for left in said["left_out"])  # each with its own choice

    plain = {"min_leaf": (selection["min_leaf"],), "max_depth": (selection["max_depth"],)}
    calibrate(logs, tmp_path / "c", **plain, json=True).run()
    again = json.loads(capsys.readouterr().out)
    assert again["selection"] is None
    assert [again[name] for name in ("cells", "scales")] == [said[name] for name in ("cells", "scales")]


def test_what_cannot_be_chosen_among_is_said(logs, tmp_path):
    with pytest.raises(InputError, match=r"--min-leaf is \(40, 80\).*allowed is one each, or --select"):
        calibrate(logs, tmp_path / "a", min_leaf=(40, 80)).run()
    with pytest.raises(InputError, match="--select with --method splitcp; allowed are methods with a tree"):
        calibrate(logs, tmp_path / "a", select=True, method="splitcp").run()
    with pytest.raises(InputError, match="allowed are at least 2 environments"):
        calibrate(logs, tmp_path / "a", select=True, without=("S", "L")).run()
    assert not list(tmp_path.iterdir())


def test_sensitivity_goes_on_where_it_was_stopped(logs, tmp_path, capsys, monkeypatch):
    trained = []

    def train(footprints, _, seed, **__):
        trained.append(seed)
        return random_encoder(seed, footprints.geometry, footprints.labels), None

    monkeypatch.setattr(training, "train", train)
    calibrate(logs, tmp_path / "robot", method="ocular").run()
    how = {"sensitivity": True, "show": 1, "output": tmp_path / "rows", "min_leaf": (40, 120)}
    Diagnose(logs, tmp_path / "robot", seed=(0,), **how).run()
    file = tmp_path / "rows" / "sensitivity.csv"
    first = file.read_bytes()
    Diagnose(logs, tmp_path / "robot", seed=(0,), **how).run()
    assert file.read_bytes() == first
    assert len(trained) == 1 + len(MAPS)
    (run,) = json.loads((tmp_path / "rows" / "sensitivity.provenance.json").read_text())["runs"]
    assert len(run["rows"]) == len(read_rows(file)) == len(MAPS) * 2
    Diagnose(logs, tmp_path / "robot", seed=(0, 1), **how).run()
    assert len(trained) == 1 + len(MAPS) * 2
    assert len(read_rows(file)) == len(MAPS) * 4
    printed = capsys.readouterr().out
    assert printed.count("each place left out; mean ± standard deviation over seeds") == 3
    with pytest.raises(InputError, match=r"alpha was 0\.1, now 0\.2"):
        Diagnose(logs, tmp_path / "robot", alpha=0.2, **how).run()


def test_seeds_of_an_encoder_that_is_not_there_are_one(logs, tmp_path):
    calibrate(logs, tmp_path / "robot").run()
    how = {"sensitivity": True, "output": tmp_path / "rows", "min_leaf": (40,)}
    Diagnose(logs, tmp_path / "robot", seed=(0, 1), **how).run()
    assert len(read_rows(tmp_path / "rows" / "sensitivity.csv")) == len(MAPS)


def test_tables_sum_up_trials():
    def row(place, seed, leaf, coverage):
        return {
            **{"left_out": place, "seed": str(seed), "max_depth": "13", "min_leaf": str(leaf)},
            **{"cells": "7", "coverage": str(coverage), "gap": "0.02", "xi": "1.5"},
        }

    rows = [row("S", 0, 100, 0.9), row("S", 1, 100, 0.92), row("S", 0, 50, 0.8), row("S", 1, 50, 0.8)]
    assert sensitivity_table(rows).rows == [
        ("S", "50", "2", "7 ± 0", "80.0 ± 0.0", "2.0 ± 0.0", "1.50 ± 0.00"),
        ("S", "100", "2", "7 ± 0", "91.0 ± 1.4", "2.0 ± 0.0", "1.50 ± 0.00"),
    ]

    def trial(place, leaf, coverage, unbounded, xi):
        return {
            **{"left_out": place, "max_depth": 13, "min_leaf": leaf, "gap": 0.03},
            **{"coverage": coverage, "unbounded": unbounded, "xi": xi},
        }

    trials = [trial("S", 50, 0.95, 0.1, "inf"), trial("L", 50, 0.9, 0, 2.0), trial("S", 100, 0.9, 0, 1.5)]
    found = selection_table({"alpha": 0.1, "max_depth": 13, "min_leaf": 100, "trials": trials})
    assert isinstance(found, Table)
    assert found.rows == [
        ("50", "13", "85.0% (S)", "3.0", "inf", ""),
        ("100", "13", "90.0% (S)", "3.0", "1.50", "chosen"),
    ]
