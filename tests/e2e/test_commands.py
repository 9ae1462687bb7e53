"""What commands print: the demo from start to end, tiny, and one JSON object for machines."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import imageio_ffmpeg
import pytest
from tests.e2e.test_reproduce import TINY

from ocular.calibrators import SplitCP, save
from ocular.cli.demo import Demo
from ocular.cli.reproduce import Reproduce
from ocular.data import TransitionStore
from ocular.experiments import demo, planning
from ocular.experiments.coverage import CoverageSettings
from ocular.planning.mppi import PlannerSettings
from ocular.worlds.map_file import load_map
from ocular.worlds.planar import PlanarWorld


@pytest.fixture
def _tiny(monkeypatch):
    """The demo and the reproduction with little of everything."""
    monkeypatch.setattr(CoverageSettings, "quick", lambda *_, **__: TINY)
    small = partial(planning.PlanningSettings, planner=replace(PlannerSettings(), samples=64), most_steps=8)
    monkeypatch.setattr(demo, "PlanningSettings", small)


@pytest.mark.usefixtures("_tiny")
def test_the_demo_ends_with_tables_report_and_video(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Demo(workers=1).run()
    printed = capsys.readouterr().out
    for said in ("coverage [%]", "median volume", "success [%]", "OCULAR, no encoding", "H OOD"):
        assert said in printed
    named = dict(line.split(maxsplit=1) for line in printed.splitlines()[-3:])
    assert list(named) == ["rows:", "report:", "video:"]
    assert (tmp_path / named["rows:"] / "planar" / "coverage.csv").exists()
    report = (tmp_path / named["report:"]).read_text()
    assert '"ocular"' in report
    assert '"nocp"' in report
    video = imageio_ffmpeg.read_frames(str(tmp_path / named["video:"]))
    seconds = next(video)["duration"]
    video.close()
    assert seconds > 1

    results, work = Path("out/demo/results"), Path("out/demo/work")
    how = {"only": "coverage", "map": ("H",), "quick": True, "workers": 1, "json": True}
    Reproduce("planar", output=results, work=work, **how).run()
    said = json.loads(capsys.readouterr().out)
    assert said["files"]["coverage"][0] == "out/demo/results/planar/coverage.csv"
    assert said["tables"][0]["header"] == ["method", "H ID", "H OOD"]
    assert [row[0] for row in said["tables"][0]["rows"]][:2] == ["NoCP", "SplitCP"]


def test_every_command_that_prints_results_has_json(tmp_path):
    def said(*arguments: str):
        program = [str(Path(sys.executable).parent / "ocular"), *arguments, "--json"]
        done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return json.loads(done.stdout)

    grid = ("--positions", "8", "--velocities", "2", "--actions", "2")
    first = said("collect", "--map", "S", "--store", "logs", *grid)
    assert first["collected"] is True
    assert first["parts"]["S"]["transitions"] > 50
    assert said("collect", "--map", "S", "--store", "logs", *grid) == {**first, "collected": False}
    truth = PlanarWorld(load_map("S"))
    logs = TransitionStore.open(tmp_path / "logs").load()
    save(SplitCP().fit(logs, truth.nominal, truth.state_cov, seed=0), tmp_path / "robot.ocular")
    drive = said("drive", "--map", "S", "--calibration", "robot.ocular", "--most-steps", "2")
    assert (drive["outcome"], drive["steps"]) == ("timeout", 2)
    assert said("scene", "icyMain", "-o", "road.xml")["solids"] > 10
