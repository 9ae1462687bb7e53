"""Calibration asks of a model no more than its protocol: robots with wheels, and models of one's own."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.conftest import LABELS, SMALL, random_encoder, random_transitions

from ocular.calibrators import NoCP, SplitCP, load, lucca, ocular, ocular_no_encode, save
from ocular.calibrators.features import feature_names, features
from ocular.dynamics import MODELS, differential_drive
from ocular.errors import InputError
from ocular.partition import TreeSettings
from ocular.planning.mppi import MPPI, PlannerSettings
from ocular.records import Footprints, Gaussian, Inputs, Transitions

ROBOT = differential_drive(0.5, np.diag([2e-3, 1e-3, 4e-3]), wheel_radius=0.3, baseline=1.1)
STATE_COV = np.diag([1e-4, 1e-4, 1e-3])
TREE = TreeSettings(max_depth=4, min_leaf=250)


def drive(rng, n, slip=0.6) -> Transitions:
    """Half of what is seen is all ice, where wheels find less hold; yaws are logged between -pi and pi."""
    states = rng.uniform([-9, -9, -np.pi], [9, 9, np.pi], (n, 3))
    actions = rng.uniform(-8, 8, (n, 2))
    icy = rng.integers(0, 2, n)
    truth = replace(ROBOT, G=slip * ROBOT.G)
    start = states + rng.multivariate_normal(np.zeros(3), STATE_COV, n)
    after = np.where(icy[:, None] == 1, truth.step(rng, start, actions), ROBOT.step(rng, start, actions))
    after[:, 2] = (after[:, 2] + np.pi) % (2 * np.pi) - np.pi
    cells = np.stack([np.full((16, 8), label, np.uint8) for label in (2, 3)])
    inputs = Inputs(states, actions, states[:, 2].copy(), icy, Footprints(cells, LABELS, SMALL))
    return Transitions(inputs, after, np.zeros(n, np.int64), ("yard",))


def calibrators():
    encoder = random_encoder(0)
    return {
        "nocp": NoCP(),
        "splitcp": SplitCP(),
        "lucca": replace(lucca(tree=TREE), features="state+action"),
        "ocular": ocular(lambda footprints, seed: encoder, features="wheels", tree=TREE),
        "ocular_no_encode": ocular_no_encode(features="action", tree=TREE),
    }


@pytest.fixture(scope="module")
def logs():
    return drive(np.random.default_rng(1), 6000)


@pytest.mark.parametrize("name", calibrators())
def test_every_method_calibrates_a_robot_with_wheels_and_is_saved(name, logs, tmp_path):
    calibration = calibrators()[name].fit(logs, ROBOT, STATE_COV, seed=0)
    fresh = drive(np.random.default_rng(2), 3000)
    inside = calibration.region(fresh.inputs, 0.1).contains(fresh.next_states)
    icy = fresh.inputs.footprint_index == 1
    if name == "nocp":
        assert inside[~icy].mean() > 0.88
        assert inside[icy].mean() < 0.5
    else:
        assert abs(inside.mean() - 0.9) < 0.03
    if name == "ocular":  # and what is seen tells the two grounds apart
        assert abs(inside[icy].mean() - 0.9) < 0.04
        assert abs(inside[~icy].mean() - 0.9) < 0.04
    save(calibration, tmp_path / "robot.ocular")
    loaded = load(tmp_path / "robot.ocular")
    assert np.array_equal(loaded.score(fresh), calibration.score(fresh))
    assert np.array_equal(loaded.threshold(fresh.inputs, 0.1), calibration.threshold(fresh.inputs, 0.1))
    save(loaded, tmp_path / "again.ocular")
    assert (tmp_path / "again.ocular").read_bytes() == (tmp_path / "robot.ocular").read_bytes()


@dataclass(frozen=True)
class Drifter:
    """A model of one's own: it goes where the action points, and a fixed share further."""

    share: float
    state_dim = 4
    action_dim = 2

    def predict(self, state, actions):
        moved = np.concatenate([actions, 0 * actions], axis=-1) * (1 + self.share)
        return Gaussian(state.mean + moved, state.cov + np.eye(4))

    def to_arrays(self):
        return {"share": np.array(self.share)}

    @classmethod
    def from_arrays(cls, arrays):
        return cls(float(arrays["share"]))


def test_a_model_of_ones_own_is_one_class_and_one_line(rng, tmp_path, monkeypatch):
    logs = random_transitions(rng, 600, lambda rng, s, a: s + rng.standard_normal(s.shape))
    calibration = SplitCP().fit(logs, Drifter(0.25), np.eye(4), seed=0)
    with pytest.raises(
        InputError, match=r"class Drifter cannot be saved; allowed are LinearGaussian, Unicycle"
    ):
        save(calibration, tmp_path / "mine.ocular")
    assert not (tmp_path / "mine.ocular").exists()
    monkeypatch.setitem(MODELS, "drifter", Drifter)
    save(calibration, tmp_path / "mine.ocular")
    loaded = load(tmp_path / "mine.ocular")
    assert loaded.model == Drifter(0.25)
    assert np.array_equal(loaded.score(logs), calibration.score(logs))


def test_features_fit_the_model_or_say_which_do(logs):
    inputs = replace(logs.inputs, actions=np.tile([3.0, 5.0], (len(logs), 1)))
    assert features("speeds", 3, 2)(inputs)[0].tolist() == [3.0, 5.0]
    assert features("wheels", 3, 2)(inputs)[0].tolist() == [4.0, 2.0]
    assert features("action", 3, 2)(inputs)[0].tolist() == [3.0, 5.0]
    assert features("state+action", 3, 2)(inputs)[0].tolist() == [*inputs.states[0], 3.0, 5.0]
    assert features("state+action", 3, 1).columns == ("state 0", "state 1", "state 2", "action 0")
    assert feature_names(4, 2) == ("position", "world", "body", "action", "state+action")
    with pytest.raises(
        InputError,
        match="for 4 states and 2 actions, the model has 3 and 2; allowed are 'speeds', 'wheels', 'action'",
    ):
        ocular_no_encode(features="body").fit(logs, ROBOT, STATE_COV, seed=0)


def test_the_planner_says_which_models_it_drives():
    with pytest.raises(InputError, match="given a Unicycle; allowed is a LinearGaussian"):
        MPPI(ROBOT, STATE_COV, PlannerSettings())
