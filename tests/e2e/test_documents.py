"""Every example in the documents runs, and every number in them is what the rows say."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ocular.calibrators import ocular_no_encode, save
from ocular.data import TransitionStore
from ocular.encoding import TrainingSettings, training
from ocular.report import with_tables
from ocular.worlds.collect import GridSpec, collect_transitions
from ocular.worlds.map_file import PLANAR_LABELS, load_map
from ocular.worlds.planar import PlanarWorld

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"<!-- (run|file): (\S+) -->\n```\w*\n(.*?)```", re.DOTALL)


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
    monkeypatch.setattr(training, "train", lambda seen, _, seed: full(seen, quick, seed))  # not a minute
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks()["api"], "README.md", "exec"), {})
    assert (tmp_path / "robot.ocular").exists()
    assert len(capsys.readouterr().out.splitlines()) >= 2


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


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_tables_are_those_of_the_rows(document):
    assert with_tables(document.read_text(), ROOT / "results") == document.read_text()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_every_block_of_code_is_run_or_marked_as_make():
    for document in DOCUMENTS:
        text = document.read_text()
        marked = {body for _, _, body in BLOCK.findall(text)}
        for body in re.findall(r"```\w*\n(.*?)```", text, re.DOTALL):
            assert body in marked or body.startswith(("make ", "worlds, logs")), body
