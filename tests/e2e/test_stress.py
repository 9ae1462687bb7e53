"""The monitor's stress figures at toy size: they are made, resume, and do not depend on the workers."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ocular.calibrators import ocular_no_encode, save
from ocular.data import TransitionStore
from ocular.encoding import TrainingSettings
from ocular.errors import InputError
from ocular.evaluation.rows import read_rows
from ocular.experiments.guarded import GuardedSettings, drive_guarded
from ocular.experiments.limits import Limited, recorded
from ocular.experiments.monitor_trials import first_alarms
from ocular.experiments.novelty_trials import views
from ocular.experiments.planar import PlanarSettings
from ocular.experiments.planning import drive
from ocular.experiments.stress import of_drives, stress
from ocular.experiments.workshop import Workshop
from ocular.partition import TreeSettings
from ocular.planning.mppi import PlannerSettings
from ocular.records import OCCUPIED
from ocular.worlds.collect import GridSpec, collect_transitions
from ocular.worlds.map_file import PLANAR_LABELS, load_map
from ocular.worlds.planar import PlanarWorld

TINY = GuardedSettings(
    PlanarSettings(
        grid=GridSpec(positions=16, velocities=4, actions=2),
        training=TrainingSettings(epochs=1, most_footprints=40),
    ),
    replace(PlannerSettings(), samples=64),
    episodes=1,
    most_steps=12,
)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("work")


def test_drives_resume_and_a_monitor_that_only_reports_changes_none(work, tmp_path):
    rows = drive_guarded(TINY, tmp_path, work, 2)
    assert drive_guarded(TINY, tmp_path, work, 1) == rows  # nothing is driven again
    assert len(rows) == 3 * 2 * 2
    assert {row["outcome"] for row in rows} == {"timeout"}
    workshop, truth = Workshop.under(work, TINY.calibration), TINY.calibration.world("S")
    for row in rows:
        if row["answer"] == "keep" and row["slip"] == "1.3":
            calibration = workshop.calibration("S", row["method"])
            alone = drive(truth, calibration, int(row["seed"]), planner=TINY.planner, most_steps=12)
            ice, left = alone.misses(slippery=True)[::-1]
            assert (int(row["ood_steps"]), int(row["ood_left_region"])) == (ice, left)
    with pytest.raises(InputError, match=r"delta was 0\.01, now 0\.05"):
        drive_guarded(replace(TINY, delta=0.05), tmp_path, work, 1)


def test_figures_are_written_as_they_come(work, tmp_path):
    figures = []
    for figure in recorded(stress(TINY, ("law", "delay"), 8, tmp_path, work, 1), tmp_path, workers=1):
        figures.append(figure)
        rows = read_rows(tmp_path / "stress.csv")
        assert {row["name"] for row in rows} == {figure.name for figure in figures}
    assert figures[0] == Limited("monitor_false_alarms_delta_0.05", "<=0.05", 0.0, 8)
    (run,) = json.loads((tmp_path / "stress.provenance.json").read_text())["runs"]
    assert run["rows"] == [figure.name for figure in figures]
    assert run["commit"] != "unknown"


def test_alarms_of_many_runs_come_when_the_capital_is_there():
    p = np.full((3, 2, 50), np.nan)
    p[0, 0] = p[1, 1] = 1.0
    p[1, 1, 20:] = 0.001
    p[2, 0] = 0.001
    alarms = first_alarms(p, 0.01)
    assert alarms[0] == 50
    assert 20 < alarms[1] < 30
    assert alarms[2] < 10


def test_the_figures_of_drives_count_collisions_on_the_same_noise():
    def rows(method, slip, answer, collisions):
        return [
            {
                **{"map": "S", "method": method, "slip": slip, "answer": answer, "episode": str(k)},
                **{"outcome": "collision" if k < collisions else "success", "alarm_step": "-1"},
                **{"ood_steps_after": "100", "ood_left_region_after": "30" if answer == "keep" else "9"},
            }
            for k in range(10)
        ]

    made = [
        *rows("nocp", "1.6", "keep", 10),
        *rows("nocp", "1.6", "adapt", 6),
        *rows("ocular", "1.6", "keep", 4),
        *rows("ocular", "1.6", "adapt", 2),
        *rows("ocular", "1.3", "adapt", 0),
    ]
    figures = {figure.name: figure for figure in of_drives(made)}
    assert figures["drives_nocp_slip_1.6_collisions"] == Limited(
        "drives_nocp_slip_1.6_collisions", "<=5", 6, 10
    )
    assert not figures["drives_nocp_slip_1.6_collisions"].holds
    assert figures["drives_ocular_slip_1.6_collisions"].holds
    assert figures["drives_ocular_slip_1.6_left_region"].got == 0.09
    assert figures["drives_ocular_slip_1.6_left_region_without_policy"].got == 0.3
    assert figures["drives_ocular_slip_1.3_false_alarms"].got == 0.0


def test_posts_stand_free_and_in_view():
    truth = PlanarWorld(load_map("S"))
    rng = np.random.default_rng(0)
    occupied = truth.map.grid.index(OCCUPIED)
    with_post = views(truth, rng, post=True, count=30)
    assert (with_post == occupied).any(axis=(1, 2)).all()
    columns = (with_post == occupied).any(axis=2)
    narrow = np.array([np.diff(np.flatnonzero(np.diff(row.astype(int)))).min(initial=240) for row in columns])
    assert np.median(narrow) < 60
    assert len(views(truth, rng, post=False, count=5)) == 5


def test_the_commands_say_what_they_found_and_what_is_wrong(tmp_path):
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = Path(sys.executable).parent / "ocular"
        return subprocess.run(
            [program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    worlds = [PlanarWorld(load_map(name)) for name in ("S", "L")]
    store = TransitionStore.create(tmp_path / "logs", PLANAR_LABELS, worlds[0].geometry, 4, 2)
    for world in worlds:
        grid = GridSpec(positions=12, velocities=4, actions=2)
        store.append(world.map.name, collect_transitions(world, grid, np.random.default_rng(0)))
    calibrator = ocular_no_encode(tree=TreeSettings(max_depth=3))
    fitted = calibrator.fit(store.load(("L", "S")), worlds[0].nominal, worlds[0].state_cov, seed=0)
    save(fitted, tmp_path / "robot.ocular")
    found = command("diagnose", "logs", "-c", "robot.ocular", "--show", "2")
    assert found.returncode == 0, found.stderr
    assert f"{fitted.partition.n_cells} leaves with" in found.stdout
    assert len(found.stdout.splitlines()) == 2 + 2
    failed = command("stress", "--only", "magic")
    assert failed.returncode == 1
    assert "--only is 'magic'; allowed are 'law', 'delay', 'novelty', 'drives'" in failed.stderr


def test_a_limit_says_what_is_allowed():
    with pytest.raises(InputError, match="x wants '=1'; allowed are '>=x' and '<=x'"):
        Limited("x", "=1", 1.0, 1)
