"""Logs in, a calibration out, and what is done with it: the commands of a robot of one's own."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import LABELS, SMALL, random_transitions
from tests.unit.calibrators.test_calibrators import MODEL, SLIPPERY

from ocular import cli
from ocular.calibrators import load
from ocular.data import TransitionStore
from ocular.deployment import Deployment
from ocular.dynamics import unicycle
from ocular.evaluation.account import account
from ocular.records import Transitions

ICE = LABELS.index("LOW_FRICTION")


def slipping_on_ice(seed, environments):
    """Footprints are of ice or of road, with some noise; the robot slips on ice."""
    rng = np.random.default_rng(seed)
    found = random_transitions(
        rng, 4000, lambda _, states, __: states, footprints=60, environments=environments
    )
    cells = found.inputs.footprints.cells.copy()
    cells[cells < 2] = ICE - 1
    icy = np.arange(60) < 30
    cells[icy] = np.where(rng.random(cells[icy].shape) < 0.9, ICE, cells[icy])
    inputs = replace(found.inputs, footprints=replace(found.inputs.footprints, cells=cells))
    start = inputs.states + rng.standard_normal(inputs.states.shape) * np.sqrt(2e-5)
    slipped, plain = (m.step(rng, start, inputs.actions) for m in (SLIPPERY, MODEL))
    return replace(
        found, inputs=inputs, next_states=np.where(icy[inputs.footprint_index][:, None], slipped, plain)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two stores to calibrate on, of two places and of one, and one to evaluate on."""
    folder = tmp_path_factory.mktemp("robot")
    for seed, (name, places) in enumerate(
        {"first": ("yard", "hall"), "second": ("dock",), "third": ("street",)}.items()
    ):
        store = TransitionStore.create(folder / name, LABELS, SMALL, 4, 2)
        store.append("logs", slipping_on_ice(seed, places))
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Run a command in the folder; its output, or its error."""
    monkeypatch.chdir(folder)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["ocular", *map(str, arguments)])
        try:
            cli.main()
        except SystemExit as stopped:
            if stopped.code not in (None, 0):
                return f"exit: {stopped.code}"
        return capsys.readouterr().out

    return run


@pytest.fixture(scope="module")
def calibrated(folder):
    """The account that calibrating on two stores prints."""
    program = [sys.executable, "-c", "from ocular.cli import main; main()"]
    options = ["first", "second", "--model", "planar", "-o", "robot.ocular", "--quick", "--json"]
    done = subprocess.run(
        [*program, "calibrate", *options], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_calibrate_joins_stores_and_leaves_each_environment_out(calibrated, folder):
    calibration = load(folder / "robot.ocular")
    assert calibrated["transitions"] == 8000
    assert list(calibrated["environments"]) == ["yard", "hall", "dock"]
    assert sum(calibrated["environments"].values()) == 8000
    assert calibrated["cells"] == calibration.partition.n_cells > 4
    assert calibrated["points"]["least"] == calibration.scores.counts.min()
    assert [left["environment"] for left in calibrated["left_out"]] == ["yard", "hall", "dock"]
    for left in calibrated["left_out"]:
        assert 0.85 < left["tested"]["coverage"] < 0.95
        assert left["tested"]["volume"] > 1
    assert calibrated["warnings"] == []
    assert account(calibration, calibrated["environments"], 0.1).scales.most == calibrated["scales"]["most"]


@pytest.mark.usefixtures("calibrated")
def test_evaluate_tells_where_it_misses(run):
    found = json.loads(run("evaluate", "robot.ocular", "third", "--json"))
    assert 0.87 < found["total"]["coverage"] < 0.93
    assert list(found["environments"]) == ["street"]
    assert sum(cell["missed"] for cell in found["cells"].values()) == found["total"]["missed"]
    assert found["warnings"] == []
    text = run("evaluate", "robot.ocular", "third", "--most", "3")
    assert f"{found['total']['coverage']:.1%} of 4,000 covered" in text
    assert "street" in text
    assert "by cell, 3 of" in text


def test_inspect_speaks_of_what_is_ahead_if_it_has_logs(calibrated, run):
    text = run("inspect", "robot.ocular", "--store", "first", "second", "--most", "2")
    lines = text.splitlines()
    assert lines[0].startswith("robot.ocular: ocular on 8,000 transitions of yard, hall, dock;")
    assert lines[1].startswith("low friction ahead (9")
    assert "m/s: xi " in lines[1]
    assert lines[3].startswith("... and ")
    assert "latent" in run("inspect", "robot.ocular")
    cells = [json.loads(line) for line in run("inspect", "robot.ocular", "--json").splitlines()]
    assert len(cells) == calibrated["cells"]


READ = """
import sys
sys.modules["ocular"] = None  # importing it would fail
sys.path.insert(0, "exported")
import numpy as np
from ocular_reader import Reader
q = np.load("queries.npz")
reader = Reader("exported")
rows = reader.rows(q["states"], q["actions"], q["headings"], q["footprints"])
np.savez("answers.npz", cells=reader.cells(rows), xi=reader.xi(rows))
"""


@pytest.mark.usefixtures("calibrated")
def test_a_robot_without_ocular_gets_the_same_answers(run, folder):
    assert "encoder.onnx: latents within" in run("export", "robot.ocular", "-o", "exported", "--alpha", "0.2")
    inputs = TransitionStore.open(folder / "third").load().inputs.take(np.arange(400))
    np.savez(
        folder / "queries.npz",
        **{"states": inputs.states, "actions": inputs.actions, "headings": inputs.headings},
        footprints=inputs.footprints.cells[inputs.footprint_index],
    )
    subprocess.run([sys.executable, "-c", READ], cwd=folder, check=True)
    answers, calibration = np.load(folder / "answers.npz"), load(folder / "robot.ocular")
    assert np.array_equal(answers["cells"], calibration.cells(inputs))
    assert np.array_equal(answers["xi"], calibration.scale(inputs, 0.2))
    assert "exit: ocular: cannot export to" in run("export", "robot.ocular", "-o", "exported")


def test_a_robot_of_ones_own_is_a_text_file(run, folder):
    """Wheels and a camera: poses in, and cells that look at the wheels and at what is seen."""
    rng, n = np.random.default_rng(0), 3000
    model = unicycle(0.5, np.diag([1e-3, 1e-3, 4e-3]))
    poses, commands = rng.uniform(-3, 3, (n, 3)), rng.uniform(0, 1, (n, 2))
    seen = TransitionStore.open(folder / "second").load().inputs
    inputs = replace(seen.take(np.arange(n)), states=poses, actions=commands, headings=poses[:, 2])
    steps = Transitions(inputs, model.step(rng, poses, commands), np.zeros(n, np.int64), ("yard",))
    TransitionStore.create(folder / "driven", LABELS, SMALL, 3, 2).append("logs", steps)
    text = 'kind = "unicycle"\ndt = 0.5\nQ = [1e-3, 1e-3, 4e-3]\n'
    (folder / "robot.toml").write_text(text + "state_cov = 1e-12\n")
    calibrate = ("calibrate", "driven", "--model", "robot.toml", "-o", "driven.ocular", "--quick")
    assert "features 'body' are for 4 states" in run(*calibrate)
    assert "ocular on 3,000 transitions" in run(*calibrate, "--features", "action")
    assert "action 0" in run("inspect", "driven.ocular")
    run("export", "driven.ocular", "-o", "wheeled")
    assert json.loads((folder / "wheeled" / "calibration.json").read_text())["model"] == "unicycle"
    calibration, robot = load(folder / "driven.ocular"), Deployment.load(folder / "driven.ocular")
    wanted = calibration.region(inputs, 0.1)
    for row in range(50):
        cells = inputs.footprints.cells[inputs.footprint_index[row]]
        answer = robot.query(poses[row], commands[row], cells, float(poses[row, 2]))
        np.testing.assert_allclose(answer.region.prediction.cov, wanted.prediction.cov[row], rtol=1e-9)
        assert answer.region.prediction.angles == (2,)
        assert answer.region.threshold == wanted.threshold[row]
    (folder / "robot.toml").write_text(text)
    assert "robot.toml has no state_cov; allowed is" in run(*calibrate)


def test_logs_of_one_place_are_warned_of(run):
    text = run("calibrate", "second", "--model", "planar", "-o", "one.ocular", "--method", "splitcp")
    assert "1 cell; least, median and most" in text
    assert "warning: all transitions are of one environment, 'dock': the promise holds for that place" in text
    assert "left out" not in text


def test_a_mistake_is_told_before_any_work(run, folder):
    calibrate = ("calibrate", "first", "--model", "planar", "-o", "bad.ocular")
    for arguments, message in (
        (
            ("calibrate", "first", "--model", "plane", "-o", "x"),
            "--model is 'plane'; allowed are planar, camera and the path",
        ),
        (("calibrate", "--model", "planar", "-o", "x"), "no store is given"),
        ((*calibrate, "--alpha", "1.5"), "--alpha is 1.5; allowed"),
        ((*calibrate, "--without", "more"), "--without is 'more'; allowed are 'logs'"),
        ((*calibrate, "--without", "logs"), "nothing is left of the parts"),
        ((*calibrate[:1], "first", "./first", *calibrate[2:]), "is given more than once"),
        ((*calibrate[:-1], "none/bad.ocular"), "-o is none/bad.ocular; allowed is a file in a directory"),
        ((*calibrate, "--features", "smell"), "features is 'smell'; allowed are"),
        (("evaluate", "first/zarr.json", "third"), "ends without a seal"),
    ):
        assert message in run(*arguments)
    assert not (folder / "bad.ocular").exists()


def test_help_reads_like_a_manual(run):
    text = run("--help")
    order = ["calibrate", "evaluate", "inspect", "export", "collect", "drive", "demo", "reproduce", "report"]
    places = [text.index(f"• {name} ") for name in order]
    assert places == sorted(places)
    assert "robot = ocular.Deployment.load" in text
    assert text == run()
    assert "leave each environment out" in run("calibrate", "--help").lower()
