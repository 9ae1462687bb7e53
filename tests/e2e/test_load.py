"""Load and soak at small size: the code of `python -m stress load soak`, and that it would notice faults."""

import time

import numpy as np
import pytest

from ocular.deployment import Deployment, Verdict
from stress.load import Said, ask_together, make_projector, make_questions, make_robots, queries, said, task
from stress.memory import growth, watched_memory
from stress.soak import soak

SETTLING = 16  # [MiB], by which a process may grow in a run so short that its allocators have not settled


def test_four_threads_get_one_threads_answers_and_memory_stays_flat(tmp_path):
    for figure in queries(tmp_path, True):
        if figure.name == "load_memory_growth_mib":
            assert figure.got < SETTLING, str(figure)
        else:
            assert figure.holds, str(figure)


def test_a_long_drive_does_not_leak_nor_slow_down(tmp_path):
    for figure in soak(tmp_path, True):
        if figure.name == "soak_step_time_drift":
            assert figure.got < 2, str(figure)  # so few steps on a busy machine tell no more
        elif figure.name in ("soak_memory_growth_mib", "soak_monitor_memory_growth_mib"):
            assert figure.got < SETTLING, str(figure)
        else:
            assert figure.holds, str(figure)


@pytest.fixture(scope="module")
def asked():
    """Robots, and questions with one thread's answers."""
    world, logs, calibration = task()
    robots = make_robots(calibration, make_projector(world))
    questions = make_questions(world, logs, 60)
    return robots, questions, {a: [said(robot, q) for q in questions] for a, robot in robots.items()}


def test_questions_are_of_all_kinds(asked):
    _, _, alone = asked
    assert len({answer[3] for answer in alone[0.1]}) > 20  # scales
    assert {answer[4] for answer in alone[0.1]} >= {Verdict.CLEAR, Verdict.OBSTACLE}
    assert alone[0.1] != alone[0.2]


def test_a_single_bit_is_noticed(asked):
    robots, questions, alone = asked
    assert ask_together(lambda: robots, questions, alone, 0, 20) == 0
    bent: dict[float, list[Said]] = {
        alpha: [(*said[:3], float(np.nextafter(said[3], 9.0)), said[4]) for said in answers]
        for alpha, answers in alone.items()
    }
    assert ask_together(lambda: robots, questions, bent, 0, 20) == 80


def test_a_memory_that_threads_share_is_noticed(asked):
    """The fault that all this is there for."""
    robots, questions, alone = asked
    robot, latent = robots[0.1], np.empty(6)

    def encode(cells: np.ndarray) -> np.ndarray:
        latent[:] = Deployment.encode(robot, cells)
        time.sleep(1e-4)  # while others come in
        return latent

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(robot, "encode", encode)
        same = dict.fromkeys(alone, alone[0.1])
        assert ask_together(lambda: dict.fromkeys(robots, robot), questions, same, 0, 100) > 0


def test_a_leak_is_noticed():
    kept: list[bytes] = []
    with watched_memory() as memory:
        for _ in range(40):
            kept.append(b"x" * 10**6)
            memory.read()
    assert all(not figure.holds for figure in memory.figures("x", (0.5, 0.5), 40))
    assert growth([5.0, *[1.0] * 18]) == 0.0
