"""Driving, whole: a map that nothing was tuned on, the planning reproduction, and the commands."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ocular.calibrators import NoCP, load, ocular, save
from ocular.encoding import TrainingSettings
from ocular.encoding.training import train
from ocular.errors import InputError
from ocular.evaluation.rows import read_rows
from ocular.experiments.planar import PlanarSettings
from ocular.experiments.planning import PlanningSettings, drive, reproduce_planning
from ocular.planning.mppi import PlannerSettings
from ocular.records import concatenate
from ocular.seeds import stream
from ocular.worlds.collect import CALIBRATION_GRID, GridSpec, collect_transitions
from ocular.worlds.map_file import load_map
from ocular.worlds.planar import PlanarWorld

HOOK = Path(__file__).parent / "hook.toml"


@pytest.fixture(scope="module")
def calibration(tmp_path_factory):
    """OCULAR on the four packaged maps, with a short training; none of them is the map driven."""
    worlds = [PlanarWorld(load_map(name)) for name in ("S", "L", "H", "U")]
    logs = concatenate([collect_transitions(w, CALIBRATION_GRID, stream(0, w.map.name)) for w in worlds])
    short = TrainingSettings(epochs=4, most_footprints=1500)
    calibrator = ocular(lambda footprints, seed: train(footprints, short, seed)[0])
    path = tmp_path_factory.mktemp("calibration") / "robot.ocular"
    save(calibrator.fit(logs, worlds[0].nominal, worlds[0].state_cov, seed=0), path)
    return path


def test_ocular_finishes_a_fifth_map_and_trusting_the_model_does_not(calibration):
    truth = PlanarWorld(load_map(HOOK))
    trusting = NoCP().fit(
        collect_transitions(truth, GridSpec(4, 2, 2), stream(0)), truth.nominal, truth.state_cov, seed=0
    )
    with_care = [drive(truth, load(calibration), seed, planner=PlannerSettings()) for seed in range(3)]
    without = [drive(truth, trusting, seed, planner=PlannerSettings()) for seed in range(3)]
    assert [result.outcome for result in with_care] == ["success"] * 3
    assert [result.outcome for result in without] == ["collision"] * 3
    assert speed_on_ice(with_care) < 0.8 * speed_on_ice(without)


def speed_on_ice(results) -> float:
    speeds = [np.hypot(*result.states[:-1, 2:].T)[result.slippery] for result in results]
    return float(np.concatenate(speeds).mean())


def test_a_drive_is_decided_by_its_seed(calibration):
    truth = PlanarWorld(load_map(HOOK))
    first, second, other = (
        drive(truth, load(calibration), seed, planner=PlannerSettings(), most_steps=25, threads=threads)
        for seed, threads in ((5, 1), (5, 2), (6, 1))
    )
    assert first.states.tobytes() == second.states.tobytes()
    assert first.states.tobytes() != other.states.tobytes()


def test_the_commands_drive_and_say_what_is_wrong(calibration, tmp_path):
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = Path(sys.executable).parent / "ocular"
        return subprocess.run(
            [program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    driven = command("drive", "--map", str(HOOK), "--calibration", str(calibration), "--most-steps", "5")
    assert driven.returncode == 0, driven.stderr
    assert "seed 0: timeout after 5 steps, 0 of 11 subgoals" in driven.stdout
    for arguments, complaint in {
        ("drive", "--map", "Q", "--calibration", str(calibration)): "no map 'Q'; allowed are H, L, S, U",
        ("drive", "--map", "S", "--calibration", "none.ocular"): "none.ocular",
        ("collect", "--map", "S", "--store", "logs", "--positions", "1"): "at least 2 positions",
        ("reproduce", "planar", "--map", "Q"): "--map is 'Q'; allowed are 'S', 'L', 'H', 'U'",
        ("reproduce", "planar", "--workers", "0"): "--workers is 0",
        ("reproduce", "planar", "--method", "magic"): "--method is 'magic'",
    }.items():
        failed = command(*arguments)
        assert failed.returncode == 1
        assert complaint in failed.stderr
        assert "Traceback" not in failed.stderr


def test_planning_rows_resume_and_do_not_depend_on_the_workers(tmp_path):
    tiny = PlanningSettings(
        PlanarSettings(
            grid=GridSpec(positions=16, velocities=4, actions=2),
            training=TrainingSettings(epochs=1, most_footprints=40),
        ),
        replace(PlannerSettings(), samples=64),
        episodes=2,
        most_steps=12,
    )

    def rows(folder: str, workers: int, methods: tuple[str, ...]) -> list[dict[str, str]]:
        made = reproduce_planning(tiny, ("S",), methods, tmp_path / folder, tmp_path / "work", workers)
        clock = ("step_ms_p50", "step_ms_p99")
        return [{k: v for k, v in row.items() if k not in clock} for row in read_rows(made[0])]

    at_once = rows("one", 1, ("nocp", "lucca", "ocular"))
    rows("two", 2, ("nocp",))
    assert rows("two", 2, ("nocp", "lucca", "ocular")) == at_once
    assert [(r["method"], r["episode"]) for r in at_once] == [
        (method, episode) for method in ("lucca", "nocp", "ocular") for episode in ("0", "1")
    ]
    assert {r["outcome"] for r in at_once} == {"timeout"}
    seeds = {r["episode"]: r["seed"] for r in at_once}
    assert all(r["seed"] == seeds[r["episode"]] for r in at_once)  # the same noise for every method
    with pytest.raises(InputError, match="most_steps was 12, now 13"):
        reproduce_planning(
            replace(tiny, most_steps=13), ("S",), ("nocp",), tmp_path / "one", tmp_path / "work", 1
        )
