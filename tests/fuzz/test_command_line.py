"""Whatever is typed: a command does it, says in one line what is wrong, or shows its usage."""

import contextlib
import io
import sys
import warnings
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import LABELS, SMALL, random_transitions
from tests.support.bags import TOPICS
from tests.support.hostile import WORDS as ANY_WORD

import ocular
from ocular.cli import COMMANDS, main
from ocular.errors import InputError
from ocular.partition import TreeSettings

MODEL = """kind = "double_integrator"
dt = 0.05
floor = 1e-6
state_cov = 1e-4
"""
NUMBERS = (*("0", "-1", "1", "3", "0.5", "nan", "inf", "-inf", "1e308", "-1e308", "1e-320"), "9" * 400)
WORDS = ("", " ", "-", "--", "é€漢\u202e", "a b", "None", "true", "/", "..", "x" * 300, "[", "{}")
FILES = ("absent", "folder", "text", "robot.toml", "logs", "robot.ocular", "splitcp.ocular", "folder/inside")
LONG = (  # work that comes after everything was checked
    *("experiments.coverage.reproduce_coverage", "experiments.planning.reproduce_planning"),
    *("experiments.stress.stress", "experiments.demo.make_rows", "experiments.planning.drive"),
    *("experiments.filming.filmed", "encoding.training.train", "worlds.collect.collect_transitions"),
)
COMMON = {  # arguments that are right
    "calibrate": ("logs", "--model", "robot.toml", "-o", "out.ocular", "--method", "splitcp"),
    "evaluate": ("robot.ocular", "logs"),
    "inspect": ("robot.ocular", "--store", "logs"),
    "diagnose": ("logs", "-c", "robot.ocular"),
    "export": ("splitcp.ocular", "-o", "exported"),
    "collect": ("--map", "S", "--store", "new", "--positions", "3", "--velocities", "2", "--actions", "2"),
    "drive": ("--map", "S", "--calibration", "robot.ocular", "--most-steps", "1"),
    "scene": ("icySide", "-o", "scene.xml"),
    "report": ("--results", "folder", "--output", "page.html"),
    "reproduce": ("planar", "--map", "S"),
    "stress": ("--only", "law"),
    "demo": ("--map", "S"),
    "import arrays": (
        *("arrays.npz", "--store", "imported", "--environment", "yard", "--labels", *LABELS),
        *("--max-range", "0.5", "--field-of-view", "114.6", "--angles", "16", "--ranges", "8", "--dt", "0.1"),
    ),
    "import replicator": ("folder", "--store", "imported", "--environment", "yard", "--labels", *LABELS),
    "import bag": (
        *("folder", "--store", "imported", "--environment", "yard", "--dt", "0.1"),
        *("--max-range", "0.5", "--field-of-view", "100", "--labels", *LABELS),
        *(word for role in TOPICS if role != "tf" for word in (f"--{role}-topic", "/a")),
    ),
    "import topics": ("folder",),
}  # fmt: skip
MORE = {  # options that COMMON leaves out
    "calibrate": ("--alpha", "--features", "--min-leaf", "--without", "--seed", "--json"),
    "evaluate": ("--alpha", "--without", "--most", "--json"),
    "inspect": ("--alpha", "--most", "--json"),
    "diagnose": ("--alpha", "--show"),
    "export": ("--alpha", "--json"),
    "collect": ("--world", "--seed", "--json"),
    "drive": ("--world", "--save", "--episodes", "--seed", "--threads", "--json"),
    "scene": ("--json",),
    "report": ("--figures", "--json"),
    "reproduce": ("--only", "--variant", "--method", "--seed", "--workers", "--output", "--work", "--quick"),
    "stress": ("--quick", "--workers", "--output", "--work"),
    "demo": ("--output", "--workers", "--json"),
    "import arrays": (
        "--time-tolerance",
        "--depth",
        "--camera-height",
        "--camera-pitch",
        "--flatness",
        "--classes",
    ),
    "import replicator": ("--table", "--state-columns", "--dt", "--ground", "--max-range", "--field-of-view"),
    "import bag": ("--tolerance", "--hold", "--state", "--velocity", "--action", "--camera-height"),
    "import topics": (),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with one of everything."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "folder").mkdir()
    (folder / "text").write_text("this is no file of ours\n")
    (folder / "robot.toml").write_text(MODEL)
    model = ocular.load_model(folder / "robot.toml")
    store = ocular.TransitionStore.create(folder / "logs", LABELS, SMALL, 4, 2)
    for seed, name in enumerate(("here", "there")):
        store.append(
            name, random_transitions(np.random.default_rng(seed), 120, model.step, environments=(name,))
        )
    logs = store.load()
    tree = TreeSettings(max_depth=2, min_leaf=10)
    for name, calibrator in {
        "robot": ocular.ocular_no_encode(tree=tree),
        "splitcp": ocular.SplitCP(),
    }.items():
        ocular.save(calibrator.fit(logs, model, 1e-4 * np.eye(4), seed=0), folder / f"{name}.ocular")
    inputs = logs.inputs
    np.savez(
        folder / "arrays.npz",
        **{
            "states": inputs.states[:12],
            "actions": inputs.actions[:12],
            "next_states": logs.next_states[:12],
        },
        **{"footprints": inputs.footprints.cells[:12], "labels": np.array(LABELS)},
    )
    return folder


def begin_work(*_arguments, **_options):
    raise InputError("work begins")


def run(home, monkeypatch, arguments):
    """How a command ends, and its last words."""
    monkeypatch.chdir(home)
    output, complaint = io.StringIO(), io.StringIO()
    for work in LONG:
        module, _, name = work.rpartition(".")
        monkeypatch.setattr(f"ocular.{module}.{name}", begin_work)
    with (
        mock.patch.object(sys, "argv", ["ocular", *arguments]),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(complaint),
        warnings.catch_warnings(record=True),  # of a starved cell, which is no complaint
    ):
        warnings.simplefilter("error")
        try:
            main()
        except SystemExit as error:
            return (
                (1, str(error.code))
                if isinstance(error.code, str)
                else (error.code or 0, complaint.getvalue())
            )
    return 0, output.getvalue()


def expect_an_answer(ended):
    code, words = ended
    assert code in (0, 1, 2)
    if code == 1:
        assert words.startswith("ocular: ")
        assert "\n" not in words.strip()
        assert "Traceback" not in words


@pytest.mark.parametrize("command", COMMON)
def test_the_arguments_to_be_spoilt_are_understood(command, home, monkeypatch):
    code, words = run(home, monkeypatch, [*command.split(), *COMMON[command]])
    if command in ("reproduce", "stress", "demo", "drive", "collect"):
        assert words == "ocular: work begins"
    elif command not in ("report", "import replicator", "import bag", "import topics"):
        assert code == 0, words
    else:
        assert (code, words[:8]) == (1, "ocular: ")  # the folder is empty


def spoilt(command):
    """One or two arguments replaced, or an option more."""
    words, options = list(COMMON[command]), MORE[command]
    value = st.sampled_from([*NUMBERS, *WORDS, *FILES]) | st.floats().map(str) | ANY_WORD
    replaced = st.tuples(st.integers(0, len(words) - 1), value).map(
        lambda change: [*words[: change[0]], change[1], *words[change[0] + 1 :]]
    )
    dropped = st.integers(0, len(words) - 1).map(lambda at: words[:at] + words[at + 1 :])
    if not options:
        return replaced | dropped
    added = st.tuples(st.sampled_from(options), value).map(lambda more: [*words, *more])
    return added | added | replaced | dropped


@pytest.mark.parametrize("command", COMMON)
def test_whatever_is_typed_gets_an_answer(command, home, monkeypatch):
    @settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(arguments=spoilt(command))
    def types(arguments):
        expect_an_answer(run(home, monkeypatch, [*command.split(), *arguments]))

    types()


def test_every_command_is_here():
    assert {name.partition(" ")[0] for name in COMMON} == set(COMMANDS)
    assert COMMON.keys() == MORE.keys()
