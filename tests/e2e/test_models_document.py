"""What docs/models.md shows works as it stands."""

import numpy as np
import pytest
from tests.conftest import LABELS, SMALL
from tests.e2e.test_documents import blocks

import ocular
from ocular.data import TransitionStore
from ocular.dynamics import MODELS, load_robot
from ocular.records import Footprints, Inputs, Transitions


def drive(rng, model, n: int) -> Transitions:
    states, actions = rng.uniform(-3, 3, (n, model.state_dim)), rng.uniform(-3, 3, (n, model.action_dim))
    seen = Footprints(np.zeros((1, 16, 8), np.uint8), LABELS, SMALL)
    inputs = Inputs(states, actions, np.zeros(n), np.zeros(n, np.int64), seen)
    prediction = model.predict(ocular.Gaussian(states, np.zeros((model.state_dim,) * 2)), actions)
    noise = np.linalg.cholesky(prediction.cov) @ rng.standard_normal((n, model.state_dim, 1))
    return Transitions(inputs, prediction.mean + noise[..., 0], np.arange(n) % 2, ("yard", "street"))


def test_the_text_file_then_a_fit_that_finds_it_again(rng, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.toml").write_text(blocks()["robot.toml"])
    robot = load_robot("robot.toml")
    np.testing.assert_array_equal(robot.state_cov, 1e-4 * np.eye(3))
    store = TransitionStore.create("logs", LABELS, SMALL, 3, 2)
    store.append("all", drive(rng, robot.model, 4000))
    exec(compile(blocks()["fit_model"], "models.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert [line.partition(" [")[0] for line in printed[::2]] == [
        f"{place}: of x, y, yaw" for place in ("yard", "street")
    ]
    np.testing.assert_allclose(load_robot("fitted.toml").model.G, robot.model.G, atol=5e-3)


def test_the_class(rng, tmp_path, monkeypatch):
    monkeypatch.setitem(MODELS, "boat", None)  # and is gone after the test
    space: dict = {"__name__": "models"}
    exec(compile(blocks()["own_model"], "models.md", "exec"), space)
    boat = space["Boat"](drag=0.1, noise=0.05)
    logs = drive(rng, boat, 2000)
    calibration = ocular.SplitCP().fit(logs, boat, np.zeros((2, 2)), seed=0)
    ocular.save(calibration, tmp_path / "boat.ocular")
    loaded = ocular.load(tmp_path / "boat.ocular")
    assert loaded.model == boat
    assert loaded.scale(logs.inputs, 0.1) == pytest.approx(1, abs=0.1)
    state, action, step = np.array([[0.0, 1.5]]), np.array([[1.0]]), 1e-6
    wiggled = [boat.predict(ocular.Gaussian(state + d, np.eye(2)), action).mean for d in step * np.eye(2)]
    F = ((np.concatenate(wiggled) - boat.predict(ocular.Gaussian(state, np.eye(2)), action).mean) / step).T
    cov = boat.predict(ocular.Gaussian(state, np.eye(2)), action).cov[0]
    np.testing.assert_allclose(cov, F @ F.T + np.diag([1e-6, 0.05**2]), rtol=1e-4)
