"""Load: four threads ask deployments 100,000 times. Answers must be one thread's to the bit, memory flat."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ocular.calibrators import Calibration, load, ocular, save
from ocular.deployment import Deployment, Verdict
from ocular.encoding.untrained import untrained
from ocular.experiments.limits import Limited
from ocular.footprint import Camera, ClassTable, Intrinsics, Projector
from ocular.planning.belief import BeliefMap
from ocular.planning.ellipse import obstacles_of
from ocular.progress import progress
from ocular.records import Transitions
from ocular.seeds import stream
from ocular.worlds.collect import CALIBRATION_GRID, collect_transitions
from ocular.worlds.map_file import PLANAR_LABELS, load_map
from ocular.worlds.planar import PlanarWorld
from stress.memory import watched_memory

MAP, ALPHAS = "S", (0.1, 0.2)
THREADS = 4
OWN = 5  # queries of each thread in a round to deployments that it made itself
SWITCH_SECONDS = 1e-5  # from one thread to the next: 500 times as often as usual, for races to show
GROUND_CLASSES = {"road": "NOMINAL", "ice": "LOW_FRICTION", "kerb": "OCCUPIED"}

Question = tuple[tuple[Any, ...], dict[str, Any]]  # what a query is given, by place and by name
Said = tuple[bytes, bytes, bytes, float, Verdict]  # mean, covariance, threshold, xi, verdict
Robots = Mapping[float, Deployment]  # by alpha


def task() -> tuple[PlanarWorld, Transitions, Calibration]:
    """Map S with its logs of the paper's size, and OCULAR on them with an encoder that nobody trained."""
    world = PlanarWorld(load_map(MAP))
    logs = collect_transitions(world, CALIBRATION_GRID, stream(0, "stress", "load"))
    return world, logs, ocular(untrained).fit(logs, world.nominal, world.state_cov, seed=0)


def queries(scratch: Path, quick: bool) -> Iterator[Limited]:
    """In each round four new threads ask shared deployments, then some that they make themselves at once."""
    world, logs, calibration = task()
    path, projector = scratch / "robot.ocular", make_projector(world)
    save(calibration, path)
    questions = make_questions(world, logs, 200 if quick else 1000)
    shared = make_robots(load(path), projector)
    alone = {alpha: [said(robot, question) for question in questions] for alpha, robot in shared.items()}
    robots = make_robots(load(path), projector)
    rounds, total = (20, 4_000) if quick else (100, 100_000)
    differing = differing_own = 0
    with watched_memory() as memory, restless(), progress("rounds of queries", rounds) as advance:
        for number in range(rounds):
            fresh = load(path)  # its tables are not made yet
            differing += ask_together(lambda: robots, questions, alone, number, total // (rounds * THREADS))
            differing_own += ask_together(_maker(fresh, projector), questions, alone, number, OWN)
            memory.read()
            advance(f"{differing + differing_own} answers differ")
    yield Limited("load_answers_differing_from_one_thread", "<=0", differing, total)
    yield Limited("load_answers_of_own_deployments_differing", "<=0", differing_own, rounds * THREADS * OWN)
    yield from memory.figures("load", (2.0, 0.05), total)


def ask_together(
    robots: Callable[[], Robots],
    questions: Sequence[Question],
    alone: Mapping[float, Sequence[Said]],
    number: int,
    each: int,
) -> int:
    """How many answers differ from those that one thread got, of four threads that begin at once."""
    barrier = threading.Barrier(THREADS)

    def ask(k: int) -> int:
        rng = stream(0, "stress", "load", number, k)
        rows, alphas = rng.integers(len(questions), size=each), rng.choice(ALPHAS, size=each)
        barrier.wait()
        mine = robots()
        return sum(
            said(mine[alpha], questions[row]) != alone[alpha][row]
            for row, alpha in zip(rows.tolist(), alphas.tolist(), strict=True)
        )

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(ask, range(THREADS)))


def said(robot: Deployment, question: Question) -> Said:
    """All of an answer, to the bit."""
    answer = robot.query(*question[0], **question[1])
    region = answer.region
    arrays = region.prediction.mean, region.prediction.cov, region.threshold
    mean, cov, threshold = (np.asarray(array).tobytes() for array in arrays)
    return mean, cov, threshold, answer.xi, answer.verdict


def make_robots(calibration: Calibration, projector: Projector) -> Robots:
    """A deployment for each alpha, of one calibration."""
    return {alpha: Deployment(calibration, alpha, projector) for alpha in ALPHAS}


def _maker(calibration: Calibration, projector: Projector) -> Callable[[], Robots]:
    return lambda: make_robots(calibration, projector)


def make_projector(world: PlanarWorld) -> Projector:
    """A small camera on this robot."""
    camera = Camera(Intrinsics.of_field_of_view(64, 48, 1.6, 1.2), height=0.3, pitch=0.8)
    return Projector(camera, world.geometry, ClassTable(GROUND_CLASSES, PLANAR_LABELS))


def make_questions(world: PlanarWorld, logs: Transitions, count: int) -> list[Question]:
    """Logged steps of all kinds: by footprint, beside a map that the robot remembers, and by images."""
    rng, inputs, belief = stream(0, "stress", "questions"), logs.inputs, BeliefMap(PLANAR_LABELS)
    rows = rng.choice(len(inputs), size=count, replace=False).tolist()
    footprints = [inputs.footprints.cells[inputs.footprint_index[row]] for row in rows]
    for row, cells in zip(rows, footprints, strict=True):
        belief.update(cells, world.geometry, inputs.states[row, :2], inputs.headings[row])
    obstacles, size = obstacles_of(belief), (48, 64)
    questions: list[Question] = []
    for number, (row, cells) in enumerate(zip(rows, footprints, strict=True)):
        state, heading = inputs.states[row], float(inputs.headings[row])
        seen: Any = cells
        if number % 5 == 4:
            patches = rng.integers(0, len(GROUND_CLASSES), (6, 8)).astype(np.uint8)
            depth = rng.uniform(0.2, 0.6, size).astype(np.float32)
            seen = depth, patches.repeat(8, axis=0).repeat(8, axis=1), tuple(GROUND_CLASSES)
        named = {"obstacles": obstacles} if number % 5 == 3 else {}
        questions.append(((state, inputs.actions[row], seen, heading), named))
    return questions


@contextmanager
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
