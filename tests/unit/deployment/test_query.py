"""A query answers what the calibration says, whoever asks, and its verdict is about what is in the way."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import LABELS, SMALL, random_encoder, random_transitions
from tests.unit.calibrators.test_calibrators import MODEL, STATE_COV, TREE, calibrators, drifting

from ocular.calibrators import ocular, save
from ocular.conformal import CellScores
from ocular.deployment import Deployment, Verdict
from ocular.errors import CalibrationWarning, InputError
from ocular.footprint import Camera, ClassTable, Intrinsics, Projector
from ocular.planning.belief import BeliefMap
from ocular.planning.ellipse import obstacles_of

GROUND = LABELS.index("NOMINAL")


@pytest.fixture(scope="module")
def logs():
    return random_transitions(np.random.default_rng(1), 6000, drifting)


@pytest.fixture(scope="module")
def calibration(logs):
    return ocular(lambda footprints, seed: random_encoder(0), tree=TREE).fit(logs, MODEL, STATE_COV, seed=0)


@pytest.fixture(scope="module")
def robot(calibration):
    return Deployment(calibration)


def questions(inputs, count=40):
    for row in range(count):
        cells = inputs.footprints.cells[inputs.footprint_index[row]]
        yield inputs.states[row], inputs.actions[row], cells, float(inputs.headings[row])


@pytest.mark.parametrize("name", calibrators())
def test_one_query_is_one_row_of_the_calibration(name, logs, tmp_path):
    calibration = calibrators()[name].fit(logs, MODEL, STATE_COV, seed=0)
    save(calibration, tmp_path / "robot.ocular")
    robot = Deployment.load(tmp_path / "robot.ocular", alpha=0.2)
    wanted, xi = calibration.region(logs.inputs, 0.2), calibration.scale(logs.inputs, 0.2)
    for row, question in enumerate(questions(logs.inputs)):
        answer = robot.query(*question)
        # A product of matrices may differ in the last bit from one of a row.
        np.testing.assert_allclose(answer.region.prediction.mean, wanted.prediction.mean[row], rtol=1e-12)
        assert np.array_equal(answer.region.prediction.cov, wanted.prediction.cov)
        assert answer.region.threshold == wanted.threshold[row]
        assert answer.xi == xi[row]
        inside = answer.region.contains(logs.next_states[row])
        assert inside == (calibration.score(logs.take(np.array([row]))) <= wanted.threshold[row])[0]


def test_four_threads_get_the_answers_that_one_gets(robot, logs):
    asked = list(questions(logs.inputs, 300))
    alone = [robot.query(*question) for question in asked]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda question: robot.query(*question), asked * 4))
    assert len({answer.region.threshold.item() for answer in alone}) > 3
    for number, answer in enumerate(together):
        first = alone[number % len(alone)]
        assert answer.region.threshold == first.region.threshold
        assert np.array_equal(answer.region.prediction.mean, first.region.prediction.mean)
        assert (answer.xi, answer.verdict) == (first.xi, first.verdict)


def test_an_obstacle_ahead_is_met_and_one_aside_or_far_off_is_not(robot):
    heading = 2.0
    direction = np.array([np.cos(heading), np.sin(heading)])
    state = np.array([3.0, -4.0, *(1.5 * direction)])  # 7.5 cm on in one step
    free = np.full((SMALL.angles, SMALL.ranges), GROUND, np.uint8)
    ahead, aside, far = free.copy(), free.copy(), free.copy()
    ahead[7:9, 1] = aside[0, 1] = far[:, -1] = LABELS.index("OCCUPIED")
    verdicts = [
        robot.query(state, np.zeros(2), cells, heading).verdict for cells in (free, ahead, aside, far)
    ]
    assert verdicts == [Verdict.CLEAR, Verdict.OBSTACLE, Verdict.CLEAR, Verdict.CLEAR]
    assert robot.query(state, np.zeros(2), free, heading).clear


def test_a_map_may_be_judged_by_instead(robot):
    cells = np.full((SMALL.angles, SMALL.ranges), GROUND, np.uint8)
    wall = cells.copy()
    wall[:, 2] = LABELS.index("OCCUPIED")
    belief = BeliefMap(LABELS, 0.02)
    belief.update(wall, SMALL, np.array([1.0, 1.0]), 0.0)
    here, there = np.array([1.0, 1.0, 3.0, 0.0]), np.array([1.0, 1.0, -3.0, 0.0])
    for state, verdict in ((here, Verdict.OBSTACLE), (there, Verdict.CLEAR)):
        answer = robot.query(state, np.zeros(2), cells, 0.0, obstacles=obstacles_of(belief))
        assert answer.verdict is verdict


def test_the_ellipse_is_the_shadow_of_the_region(robot, logs):
    for question in questions(logs.inputs):
        answer = robot.query(*question)
        long = answer.ellipse.semi_axes[1] * np.array(
            [np.cos(answer.ellipse.angle), np.sin(answer.ellipse.angle)]
        )
        shadow = answer.region.marginal((0, 1))
        assert shadow.contains(answer.ellipse.centre + 0.999 * long)
        assert not shadow.contains(answer.ellipse.centre + 1.001 * long)


def test_a_starved_cell_is_unbounded_not_clear(calibration, logs):
    empty = CellScores(np.empty(0), np.zeros(calibration.partition.n_cells + 1, np.int64))
    with pytest.warns(CalibrationWarning, match="fewer than the 9 points"):
        robot = Deployment(replace(calibration, scores=empty))
    answer = robot.query(*next(questions(logs.inputs)))
    assert answer.verdict is Verdict.UNBOUNDED
    assert np.isinf(answer.ellipse.semi_axes).all()


def test_images_are_projected_first(calibration, logs):
    camera = Camera(Intrinsics(32, 24, 20.0, 20.0, 16.0, 12.0), height=0.4, pitch=0.8)
    table = ClassTable({"road": "NOMINAL", "kerb": "OCCUPIED"}, LABELS)
    robot = Deployment(calibration, projector=Projector(camera, SMALL, table))
    rng = np.random.default_rng(0)
    images = (rng.uniform(0.2, 0.8, (24, 32)), rng.integers(0, 2, (24, 32)), ("road", "kerb"))
    state, action, _, heading = next(questions(logs.inputs))
    assert "tables" in vars(robot.projector)  # made before the first query
    by_images = robot.query(state, action, images, heading)
    assert by_images.xi == robot.query(state, action, robot.projector(*images), heading).xi
    with pytest.raises(InputError, match="images are given; allowed are footprints"):
        Deployment(calibration).query(state, action, images, heading)
    with pytest.raises(InputError, match=r"the projector has the geometry .*angles=8"):
        Deployment(calibration, projector=Projector(camera, replace(SMALL, angles=8), table))


def test_bad_questions_are_refused(robot, logs):
    state, action, cells, heading = next(questions(logs.inputs))
    with pytest.raises(InputError, match=r"state has shape \(3,\); allowed is \(4\)"):
        robot.query(state[:3], action, cells, heading)
    with pytest.raises(InputError, match="states has 4 values that are not finite"):
        robot.query(state * np.nan, action, cells, heading)
    with pytest.raises(InputError, match=r"footprint cells has shape \(1, 15, 8\)"):
        robot.query(state, action, cells[1:], heading)
    with pytest.raises(InputError, match="hold the label 9; allowed are 0=OCCUPIED"):
        robot.query(state, action, np.full_like(cells, 9), heading)
    with pytest.raises(InputError, match="seen is None; allowed are a footprint or images"):
        robot.query(state, action, None, heading)
