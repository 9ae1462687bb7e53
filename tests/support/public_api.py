"""The public functions room by room, each with small arguments that it takes."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path

import numpy as np
from tests.conftest import LABELS, SMALL, random_encoder, random_transitions
from tests.support.hostile import Call
from tests.support.obstacles import corridor

import ocular
from ocular.conformal import (
    CellScores,
    conformal_quantile,
    conformal_rank,
    exact_fraction,
    squared_mahalanobis,
)
from ocular.dynamics import fit_linear, fit_unicycle, held_out, load_robot, save_robot
from ocular.encoding import TrainingSettings
from ocular.errors import LARGEST
from ocular.footprint import (
    Camera,
    ClassTable,
    Intrinsics,
    LabelGrid,
    Projector,
    load_classes,
    scan,
    uniform_footprints,
)
from ocular.monitor import Monitor, Novelty, Policy, Responses, Step, TestMartingale
from ocular.partition import TreePartition, TreeSettings
from ocular.planning.belief import BeliefMap
from ocular.planning.cost import CostWeights
from ocular.planning.ellipse import obstacles_of
from ocular.planning.mppi import MPPI, PlannerSettings
from ocular.planning.safety import SafetyFilter
from ocular.planning.scale_field import ConstantScale, scale_field
from ocular.records import FARTHEST
from ocular.seeds import integer, stream
from ocular.worlds import GridSpec, load_map

MODEL = ocular.double_integrator(0.05, floor=1e-6)
DRIVE = ocular.differential_drive(0.5, 1e-3 * np.eye(3), wheel_radius=0.3, baseline=1.0)
STATE_COV = 1e-4 * np.eye(4)
TREE = TreeSettings(max_depth=2, min_leaf=10)
GAUSSIAN = ocular.Gaussian(np.ones((3, 4)), np.eye(4))
LENS = {"width": 8, "height": 6, "fx": 5.0, "fy": 5.0, "cx": 4.0, "cy": 3.0}
CAMERA = Camera(Intrinsics(**LENS), 0.5, 0.4)
TABLE = ClassTable({"road": "NOMINAL"}, LABELS, "unknown")
PROJECTOR = Projector(CAMERA, SMALL, TABLE)
IMAGES = {"depth": np.ones((6, 8), np.float32), "semantics": np.zeros((6, 8), np.uint8), "classes": ("road",)}
Calls = dict[str, Call]


def call(function: Callable[..., object], most: float = np.inf, nan: bool = False, **arguments) -> Call:
    """With these arguments."""
    return Call(function, arguments, nan, most)


def fields_of(record: object) -> dict[str, object]:
    """What it was made of."""
    return {each.name: getattr(record, each.name) for each in fields(record)}


@dataclass
class Kit:
    """One of everything that takes a while to make."""

    folder: Path
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def __post_init__(self) -> None:
        places = ("here", "there")
        self.logs = random_transitions(self.rng, 120, MODEL.step, footprints=50, environments=places)
        self.inputs, self.footprints = self.logs.inputs, self.logs.inputs.footprints
        self.cells, self.encoder = self.footprints.cells[0], random_encoder(0)
        calibrator = ocular.ocular(lambda *_: self.encoder, tree=TREE)
        self.calibrated = calibrator.fit(self.logs, MODEL, STATE_COV, seed=0)
        self.plain = ocular.SplitCP().fit(self.logs, MODEL, STATE_COV, seed=0)
        self.file = self.folder / "robot.ocular"
        ocular.save(self.calibrated, self.file)
        self.now = {"state": self.inputs.states[0], "action": self.inputs.actions[0], "heading": 0.3}


def records(kit: Kit) -> Calls:
    """ocular.records, and seeds."""
    logs, inputs, footprints = kit.logs, kit.inputs, kit.footprints
    return {
        "Gaussian": call(ocular.Gaussian, nan=True, mean=np.ones((3, 4)), cov=np.eye(4), angles=(2,)),
        "Gaussian.deviation": call(GAUSSIAN.deviation, most=LARGEST, points=np.zeros((3, 4))),
        "FootprintGeometry": call(
            ocular.FootprintGeometry, angles=8, ranges=8, field_of_view=1.0, max_range=1.0
        ),
        "Footprints": call(ocular.Footprints, **fields_of(footprints)),
        "Inputs": call(ocular.Inputs, **fields_of(inputs)),
        "Inputs.take": call(inputs.take, rows=np.arange(3)),
        "Transitions": call(ocular.Transitions, **fields_of(logs)),
        "Transitions.take": call(logs.take, rows=np.arange(3)),
        "concatenate": call(ocular.concatenate, parts=[logs, logs]),
        "concatenate two": call(lambda a, b: ocular.concatenate([a, b]), a=logs, b=logs),
        "stream": call(lambda seed: stream(seed, "a").random(), seed=0),
        "integer": call(lambda seed: integer(seed, "a"), seed=0),
    }


def dynamics(kit: Kit) -> Calls:
    """ocular.dynamics."""
    few = random_transitions(kit.rng, 60, MODEL.step, environments=("here", "there"))
    states = few.inputs.states[:, :3]
    inputs = replace(few.inputs, states=states, headings=states[:, 2])
    driven = replace(few, inputs=inputs, next_states=DRIVE.step(kit.rng, states, inputs.actions))
    model = kit.folder / "robot.toml"
    model.write_text('kind = "linear"\nA = [[1.0]]\nB = [[1.0]]\nQ = 1.0\n')
    pose, three = ocular.Gaussian(np.ones((3, 3)), np.eye(3)), np.ones((3, 2))
    gains = {"speed_gain": 1.0, "turn_gain": 0.8}
    return {
        "LinearGaussian": call(ocular.LinearGaussian, A=MODEL.A, B=MODEL.B, Q=MODEL.Q),
        "LinearGaussian.predict": call(MODEL.predict, most=LARGEST, state=GAUSSIAN, actions=three),
        "double_integrator": call(ocular.double_integrator, dt=0.1, slip=1.3, noise=0.1, floor=1e-6),
        "Unicycle": call(ocular.Unicycle, dt=0.1, G=DRIVE.G, Q=DRIVE.Q),
        "Unicycle.predict": call(DRIVE.predict, most=LARGEST, state=pose, actions=three),
        "unicycle": call(ocular.unicycle, dt=0.1, Q=DRIVE.Q, **gains),
        "differential_drive": call(
            ocular.differential_drive, dt=0.1, Q=DRIVE.Q, wheel_radius=0.3, baseline=1.0, **gains
        ),
        "fit_linear": call(fit_linear, transitions=kit.logs),
        "fit_unicycle": call(fit_unicycle, transitions=driven, dt=0.5),
        "held_out": call(partial(held_out, fit_linear), transitions=kit.logs),
        "load_model": call(ocular.load_model, path=model),
        "save_robot": call(save_robot, robot=load_robot(model), path=kit.folder / "other.toml"),
    }


def footprint(kit: Kit) -> Calls:
    """ocular.footprint, and worlds."""
    grid = LabelGrid(np.zeros((20, 30), np.uint8), LABELS, 0.1, (0.0, 0.0), "OCCUPIED")
    table = kit.folder / "classes.toml"
    table.write_text('road = "NOMINAL"\n')
    return {
        "Intrinsics": call(Intrinsics, **LENS),
        "Intrinsics.of_field_of_view": call(
            Intrinsics.of_field_of_view, width=8, height=6, horizontal=1.0, vertical=0.8
        ),
        "Camera": call(Camera, **fields_of(CAMERA)),
        "ClassTable": call(ClassTable, **fields_of(TABLE)),
        "ClassTable.numbers": call(TABLE.numbers, classes=("road", "kerb")),
        "load_classes": call(load_classes, path=table, labels=LABELS, missing="error"),
        "Projector": call(Projector, **fields_of(PROJECTOR)),
        "Projector()": call(PROJECTOR, **IMAGES),
        "LabelGrid": call(LabelGrid, **fields_of(grid)),
        "LabelGrid.at": call(grid.at, points=np.ones((3, 2))),
        "scan": call(
            scan, grid=grid, geometry=SMALL, positions=np.ones((2, 2)), headings=np.zeros(2), threads=1
        ),
        "uniform_footprints": call(uniform_footprints, grounds=["ice", "road"], geometry=SMALL),
        "load_map": call(load_map, name_or_path="S"),
        "GridSpec": call(GridSpec, **fields_of(GridSpec())),
    }


def conformal(kit: Kit) -> Calls:
    """ocular.conformal."""
    region = ocular.Region(GAUSSIAN, np.ones(3))
    scores, cells = np.arange(6.0), np.array([0, 1, 0, 1, 2, 2])

    def regions(ask: str, cov: object, threshold: object) -> object:
        return getattr(ocular.Region(ocular.Gaussian(np.ones((3, 4)), cov), threshold), ask)()

    return {
        "squared_mahalanobis": call(squared_mahalanobis, prediction=GAUSSIAN, outcomes=np.zeros((3, 4))),
        "Region": call(ocular.Region, prediction=GAUSSIAN, threshold=np.ones(3)),
        "Region.contains": call(region.contains, outcomes=np.zeros((3, 4))),
        "Region.marginal": call(region.marginal, dims=(0, 1)),
        "Region.semi_axes": call(partial(regions, "semi_axes"), cov=np.eye(4), threshold=np.ones(3)),
        "Region.volume": call(partial(regions, "volume"), cov=np.eye(4), threshold=np.ones(3)),
        "conformal_rank": call(conformal_rank, n=9, alpha=0.1),
        "conformal_quantile": call(conformal_quantile, sorted_scores=np.arange(20.0), alpha=0.1),
        "exact_fraction": call(exact_fraction, alpha=0.1),
        "CellScores": call(CellScores, scores=scores, offsets=np.array([0, 3, 6])),
        "CellScores.group": call(CellScores.group, scores=scores, cells=cells, n_cells=3),
        "CellScores.thresholds": call(
            CellScores(np.arange(60.0), np.array([0, 30, 60])).thresholds, alpha=0.1
        ),
        "TreeSettings": call(TreeSettings, max_depth=2, min_leaf=10),
        "TreePartition.fit": call(
            TreePartition.fit,
            **{"features": kit.rng.normal(size=(60, 3)), "targets": kit.rng.normal(size=60)},
            **{"settings": TREE, "seed": 0},
        ),
        "TreePartition.apply": call(kit.calibrated.partition.apply, features=np.ones((5, 9))),
    }


def calibration(kit: Kit) -> Calls:
    """ocular.encoding and ocular.calibrators."""
    calibrated, five = kit.calibrated, kit.inputs.take(np.arange(5))
    calibrators = {
        "NoCP": ocular.NoCP(),
        "SplitCP": ocular.SplitCP(),
        "lucca": ocular.lucca(tree=TREE),
        "ocular": ocular.ocular(lambda *_: kit.encoder, tree=TREE),
        "ocular_no_encode": ocular.ocular_no_encode(tree=TREE, fallback=True),
    }
    logs = {"transitions": kit.logs, "model": MODEL, "state_cov": STATE_COV, "seed": 0}
    return {
        "TrainingSettings": call(TrainingSettings, **fields_of(TrainingSettings())),
        "ConvEncoder": call(ocular.ConvEncoder, **fields_of(kit.encoder)),
        "ConvEncoder.encode": call(kit.encoder.encode, cells=kit.footprints.cells[:3], threads=1),
        **{f"{name}.fit": call(calibrator.fit, **logs) for name, calibrator in calibrators.items()},
        "ocular": call(ocular.ocular, features="body", tree=TREE, fallback=True),
        "lucca": call(ocular.lucca, tree=TREE, fallback=False),
        "Calibration.region": call(calibrated.region, inputs=five, alpha=0.1),
        "Calibration.scale": call(calibrated.scale, inputs=five, alpha=0.1),
        "Calibration.threshold": call(calibrated.threshold, inputs=five, alpha=0.1),
        "Calibration.thresholds": call(calibrated.thresholds, alpha=0.1),
        "Calibration.scales": call(kit.plain.scales, alpha=0.1),
        "Calibration.cells": call(calibrated.cells, inputs=kit.inputs),
        "Calibration.score": call(kit.plain.score, transitions=kit.logs),
        "save": call(ocular.save, calibration=calibrated, path=kit.folder / "other.ocular"),
        "load": call(ocular.load, path=kit.file),
    }


def deployment(kit: Kit) -> Calls:
    """ocular.deployment."""
    robot, blind = ocular.Deployment(kit.calibrated, 0.1), ocular.Deployment(kit.plain, 0.1)
    sees = ocular.Deployment(kit.calibrated, 0.1, PROJECTOR)

    def look(depth: object, semantics: object, classes: object) -> object:
        return sees.query(**kit.now, seen=(depth, semantics, classes))

    return {
        "Deployment": call(ocular.Deployment, calibration=kit.calibrated, alpha=0.1, projector=None),
        "Deployment.load": call(ocular.Deployment.load, path=kit.file, alpha=0.1, projector=None),
        "Deployment.query": call(robot.query, **kit.now, seen=kit.cells),
        "Deployment.query a map": call(robot.query, **kit.now, seen=kit.cells, obstacles=corridor()),
        "Deployment.query blindly": call(blind.query, **kit.now, seen=None),
        "Deployment.query images": call(look, **IMAGES),
    }


def monitor(kit: Kit) -> Calls:
    """ocular.monitor."""
    calibrated, footprints = kit.calibrated, kit.footprints
    step = Step(**kit.now, cells=kit.cells, next_state=kit.logs.next_states[0])
    novelty = Novelty.fit(footprints, 0)
    wary = Policy(calibrated, 0.1, responses=Responses(new="stop"), novelty=novelty)
    policy = {"alpha": 0.1, "responses": Responses(), "novelty": novelty, "delta": 0.01, "seed": 0}
    return {
        "Monitor": call(Monitor, calibration=calibrated, delta=0.01, alpha=0.1, bets="mixture", seed=0),
        "Monitor.observe": call(lambda **now: Monitor(calibrated).observe(Step(**now)), **fields_of(step)),
        "Monitor.observe a step": call(lambda step: Monitor(calibrated).observe(step), step=step),
        "Monitor.score": call(lambda **now: Monitor(calibrated).score(**now), cell=0, score=1.0),
        "TestMartingale": call(TestMartingale, kind="mixture", runs=2),
        "TestMartingale.update": call(lambda p: TestMartingale(runs=2).update(p), p=np.array([0.1, 0.9])),
        "Responses": call(Responses, changed="adapt", new="keep", new_below=0.01),
        "Policy": call(Policy, calibration=calibrated, **policy),
        "Policy.see": call(wary.see, cells=kit.cells),
        "Policy.learn": call(lambda **now: Policy(calibrated, 0.1).learn(Step(**now)), **fields_of(step)),
        "Novelty.fit": call(Novelty.fit, footprints=footprints, seed=0),
        "Novelty.score": call(novelty.score, cells=footprints.cells[:2]),
        "Novelty.p_values": call(novelty.p_values, cells=footprints.cells[:2]),
    }


def planning(kit: Kit) -> Calls:
    """ocular.planning."""
    settings = PlannerSettings(samples=8, horizon=2, iterations=1, warmup=0)
    safety = SafetyFilter(MODEL, STATE_COV, choices=3)
    belief = BeliefMap(LABELS, 0.05)
    scales = scale_field(kit.calibrated, 0.1, belief)
    goal, state, three = np.array([1.0, 0.4]), np.array([0.3, 0.4, 0.5, 0.0]), np.ones((3, 2))
    here = {"state": state, "heading": 0.0, "obstacles": corridor()}

    def plan(**how: object) -> object:
        return MPPI(MODEL, STATE_COV, settings).plan(**how, rng=np.random.default_rng(0))

    return {
        "CostWeights": call(CostWeights, **fields_of(CostWeights())),
        "PlannerSettings": call(PlannerSettings, **fields_of(settings)),
        "MPPI": call(MPPI, model=MODEL, state_cov=STATE_COV, settings=settings),
        "MPPI.plan": call(plan, **here, goal=goal, scale_field=scales),
        "MPPI.plan plainly": call(plan, **here, goal=goal, scale_field=None),
        "SafetyFilter": call(SafetyFilter, **fields_of(safety)),
        "SafetyFilter.check": call(
            safety.check, **here, action=kit.now["action"], scale_field=ConstantScale(1.5)
        ),
        "ConstantScale": call(ConstantScale, xi=1.0),
        "scale_field": call(scale_field, calibration=kit.calibrated, alpha=0.1, belief=belief),
        "TreeScale.scales": call(
            scales.scales, most=FARTHEST, means=np.tile(state, (3, 1)), headings=np.zeros(3), actions=three
        ),
        "TreeScale.refresh": call(scales.refresh, cells=kit.cells, position=goal, heading=0.0),
        "BeliefMap": call(
            BeliefMap, names=LABELS, resolution=0.05, extent=(0.0, 0.0, 1.0, 1.0), distance_cap=1.0
        ),
        "BeliefMap.update": call(
            lambda **how: BeliefMap(LABELS, 0.05).update(**how),
            **{"cells": kit.cells, "geometry": SMALL, "position": goal, "heading": 0.0},
        ),
        "obstacles_of": call(obstacles_of, belief=belief),
    }


def data(kit: Kit) -> Calls:
    """ocular.data."""
    shape = {"labels": LABELS, "geometry": SMALL, "state_dim": 4, "action_dim": 2}
    store = ocular.TransitionStore.create(kit.folder / "logs", **shape)
    few = kit.logs.take(np.arange(4))
    store.append("one", few)

    def create(path: object, **how: object) -> None:
        ocular.TransitionStore.create(path, **how)
        shutil.rmtree(path)

    def append(name: object, transitions: object) -> None:
        grown = ocular.TransitionStore.create(kit.folder / "grown", **shape)
        try:
            grown.append(name, transitions)
        finally:
            shutil.rmtree(grown.path)

    return {
        "TransitionStore.create": call(create, path=kit.folder / "new", **shape),
        "TransitionStore.open": call(ocular.TransitionStore.open, path=kit.folder / "logs"),
        "TransitionStore.append": call(append, name="two", transitions=few),
        "TransitionStore.load": call(store.load, parts=("one",)),
        "TransitionStore.logs": call(store.logs, parts=("one",)),
    }


ROOMS: tuple[Callable[[Kit], Calls], ...] = (
    *(records, dynamics, footprint, conformal, calibration, deployment, monitor, planning, data),
)
