"""Every example in the documents runs, and every number in them is what the rows say."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tyro
from PIL import Image

from ocular.calibrators import ocular_no_encode, save
from ocular.cli import Command
from ocular.data import TransitionStore
from ocular.encoding import TrainingSettings, training
from ocular.report import with_tables
from ocular.report.documents import TABLES
from ocular.worlds.collect import GridSpec, collect_transitions
from ocular.worlds.map_file import PLANAR_LABELS, load_map
from ocular.worlds.planar import PlanarWorld

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"<!-- (run|file|example): (\S+) -->\n```\w*\n(.*?)```", re.DOTALL)


def blocks() -> dict[str, str]:
    return {name: body for doc in DOCUMENTS for _, name, body in BLOCK.findall(doc.read_text())}


def run_commands(body: str, folder: Path) -> str:
    printed = ""
    for line in body.strip().splitlines():
        program, *arguments = shlex.split(line)
        command = [str(Path(sys.executable).parent / program), *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        printed += done.stdout
    return printed


def test_collect_then_ten_lines_of_api(tmp_path, monkeypatch, capsys):
    printed = run_commands(blocks()["collect"], tmp_path)
    assert "S: 79," in printed
    assert "L: 71," in printed
    quick = TrainingSettings(epochs=1, most_footprints=40)
    full = training.train
    monkeypatch.setattr(
        training, "train", lambda seen, _, seed, **how: full(seen, quick, seed, **how)
    )  # not a minute
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks()["api"], "README.md", "exec"), {})
    assert (tmp_path / "robot.ocular").exists()
    assert len(capsys.readouterr().out.splitlines()) >= 2


def test_quickstart(tmp_path):
    printed = run_commands(blocks()["quickstart"], tmp_path)
    assert "lucca.ocular, seed 0: " in printed
    assert "nocp.ocular, seed 0: " in printed
    assert (tmp_path / "drive.mp4").stat().st_size > 10_000


def test_a_road_of_ones_own(tmp_path):
    assert "my_road: " in run_commands(blocks()["scene"], tmp_path)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(example, tmp_path):
    command = [sys.executable, "-W", "error", str(example)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_parts_of_examples_are_those_of_the_scripts(document):
    for kind, name, body in BLOCK.findall(document.read_text()):
        assert kind != "example" or body in (ROOT / "examples" / name).read_text(), name


def test_the_monitor_and_its_policy(tmp_path, monkeypatch, capsys):
    truth = PlanarWorld(load_map("S"))
    coarse = GridSpec(positions=12, velocities=4, actions=2)
    logs = collect_transitions(truth, coarse, np.random.default_rng(0))
    store = TransitionStore.create(tmp_path / "logs", PLANAR_LABELS, truth.geometry, 4, 2)
    store.append("S", logs)
    save(ocular_no_encode().fit(logs, truth.nominal, truth.state_cov, seed=0), tmp_path / "robot.ocular")
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks()["monitor"], "monitor.md", "exec"), {})
    assert "changed: (False, False), scales times [1. 1.]" in capsys.readouterr().out


def test_a_map_of_ones_own(tmp_path):
    for name in ("my_map.toml", "my_picture.toml"):
        (tmp_path / name).write_text(blocks()[name])
    pixels = np.zeros((100, 150, 3), dtype=np.uint8)  # obstacle all round
    pixels[10:90, 10:140] = 0xFF
    pixels[10:90, 60:140] = (0x88, 0xCC, 0xEE)
    Image.fromarray(pixels).save(tmp_path / "hall.png")
    assert "hall: " in run_commands(blocks()["my_map"], tmp_path)
    assert load_map(tmp_path / "my_picture.toml").size == (3.0, 2.0)


def test_a_robot_of_ones_own_in_ten_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    parts = blocks()
    exec(compile(parts["make_logs.py"], "make_logs.py", "exec"), {})
    steps = [parts[name] for name in ("own_store", "own_calibrate", "own_verdict")]
    assert sum(bool(line.strip()) for step in steps for line in step.splitlines()) <= 10
    assert "logs: 3," in run_commands(steps[0], tmp_path)
    printed = run_commands(steps[1], tmp_path)
    for place in ("yard", "hall", "dock"):  # each was left out, and nine tenths were covered all the same
        found = re.search(rf"{place} +([\d.]+)% of [34],\d\d\d covered", printed)
        assert found is not None, printed
        assert 86 < float(found[1]) < 94
    assert "warning" not in printed
    capsys.readouterr()
    exec(compile(steps[2], "own_verdict", "exec"), {})
    assert "clear: no known obstacle" in capsys.readouterr().out
    looked = run_commands(parts["own_look"], tmp_path)
    assert "low friction ahead" in looked
    assert "it is the same data" in looked
    assert (tmp_path / "robot" / "ocular_reader.py").exists()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_tables_are_those_of_the_rows(document):
    assert with_tables(document.read_text(), ROOT / "results") == document.read_text()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_tables_are_known(document):
    assert set(re.findall(r"<!-- table: (.+) -->", document.read_text())) <= set(TABLES)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        assert target.startswith("https://") or (document.parent / target).exists(), target


def test_every_block_of_code_is_run_or_made():
    made = set()
    for document in DOCUMENTS:
        text = document.read_text()
        marked = {body for _, _, body in BLOCK.findall(text)}
        for body in re.findall(r"```\w*\n(.*?)```", text, re.DOTALL):
            made |= set(re.findall(r"^make (\w+)", body, re.MULTILINE))
            assert body in marked or body.startswith(("make ", "worlds, logs")), body
    assert {"demo", "test", "reproduce", "report", "documents", "site"} <= made
    subprocess.run(["make", "--dry-run", *made], cwd=ROOT, capture_output=True, check=True)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_between_the_lines_are_understood(document):
    for command in re.findall(r"`ocular (\w+ [^`]*--[^`]*)`", document.read_text()):
        tyro.cli(Command, args=shlex.split(command))
