"""The planner: OCULAR's step against exact evaluation, plain MPPI against pytorch_mppi, LUCCa's overhead."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytorch_mppi
import torch

from benchmarks.core import torch_encoder, torch_latents
from benchmarks.timing import Comparison, compare
from ocular.calibrators import Calibration
from ocular.experiments.planar import PlanarSettings
from ocular.experiments.planning import route_of
from ocular.experiments.workshop import Workshop
from ocular.footprint import scan
from ocular.planning.belief import BeliefMap
from ocular.planning.ellipse import obstacles_of
from ocular.planning.mppi import MPPI, PlannerSettings
from ocular.planning.scale_field import ConstantScale, ScaleField, TreeScale, scale_field
from ocular.records import Floats
from ocular.worlds.planar import PlanarWorld, heading

WORK = Path("out/work")
SETTINGS = PlannerSettings()


@dataclass
class Drive:
    """A robot under way on one map; every control step is timed, map update and all."""

    truth: PlanarWorld
    calibration: Calibration
    threads: int
    settings: PlannerSettings = SETTINGS

    def __post_init__(self) -> None:
        self.belief = BeliefMap(self.truth.map.grid.names)
        self.field = scale_field(self.calibration, self.settings.alpha, self.belief, threads=self.threads)
        self.planner = MPPI(self.calibration.model, self.calibration.state_cov, self.settings)
        self.route = route_of(self.truth.map, 0.3)
        self.state = np.concatenate([self.route.start, np.zeros(2)])
        self.looking = float(np.arctan2(*(self.route.subgoals[0] - self.route.start)[::-1]))
        self.reached = 0
        self.rng = np.random.default_rng(0)
        self.step_ms: list[float] = []

    def step(self) -> bool:
        """One control step; false at the end of the route."""
        self.looking = float(heading(self.state[None], np.array([self.looking]))[0])
        cells = self.truth.observe(self.state[None, :2], np.array([self.looking]))[0]
        start = time.perf_counter()
        self.belief.update(cells, self.truth.geometry, self.state[:2], self.looking)
        if isinstance(self.field, TreeScale):
            self.field.refresh(cells, self.state[:2], self.looking)
        plan = self.plan(self.field)
        self.step_ms.append(1e3 * (time.perf_counter() - start))
        self.state = self.truth.step(self.rng, self.state[None], plan.action[None])[0]
        while np.linalg.norm(self.state[:2] - self.goal) <= self.route.reach:
            self.reached += 1
            if self.reached == len(self.route.subgoals):
                return False
        return True

    @property
    def goal(self) -> Floats:
        """The subgoal that is driven to."""
        return self.route.subgoals[self.reached]

    def plan(self, field: ScaleField):
        """Plan from here, with this field."""
        obstacles = obstacles_of(self.belief)
        return self.planner.plan(self.state, self.looking, self.goal, obstacles, field, self.rng)


class ExactTorchField:
    """Every pose of every sample, step and iteration: scanned as it is, encoded by PyTorch."""

    def __init__(self, calibration: Calibration, belief: BeliefMap, rounded: TreeScale) -> None:
        self.network, self.belief, self.rounded = torch_encoder(calibration.encoder), belief, rounded
        self.calibration = calibration

    def scales(self, means: Floats, headings: Floats, actions: Floats) -> Floats:
        """xi of each sample."""
        positions = np.asarray(means[:, :2], np.float64)
        cells = scan(self.belief.grid(), self.calibration.encoder.geometry, positions, np.float64(headings))
        latents = torch_latents(self.network, cells).astype(np.float64)
        return self.rounded.scales_given(means, headings, actions, latents)


def calibrated(map_name: str, method: str) -> Calibration:
    """The calibration of the committed planning run, made now if it is not there."""
    workshop = Workshop.under(WORK, PlanarSettings())
    for name in ("S", "L", "H", "U"):
        workshop.collect(name)
    return workshop.calibration(map_name, method)


def ocular_step(report: Callable[[str, str, float, int], None]) -> Comparison:
    """A whole drive of map H by OCULAR, every step timed; the alternative does some of its steps exactly."""
    drive = Drive(PlanarSettings().world("H"), calibrated("H", "ocular"), threads=2)
    exact = ExactTorchField(drive.calibration, drive.belief, drive.field)
    exact_ms: list[float] = []
    agreeing = asked = 0
    steps = 0
    while drive.step():
        steps += 1
        if steps in (40, 90, 140):
            planner, drive.planner = (
                drive.planner,
                MPPI(drive.calibration.model, drive.calibration.state_cov, replace(SETTINGS, warmup=0)),
            )
            start = time.perf_counter()
            drive.plan(exact)
            exact_ms.append(1e3 * (time.perf_counter() - start))
            drive.planner = planner
        if steps % 5 == 0:
            within, of = agreement(drive)
            agreeing, asked = agreeing + within, asked + of
    warm = np.array(drive.step_ms[1:])  # the first step has ten more updates
    report("ocular_step_ms_p50", "<=50", float(np.median(warm)), len(warm))
    report("ocular_step_ms_p99", "<=100", float(np.quantile(warm, 0.99)), len(warm))
    report("ocular_xi_within_10_percent_of_exact", ">=0.97", agreeing / asked, asked)
    return Comparison(
        "ocular_step",
        float(np.median(warm)),
        float(np.median(exact_ms)),
        "every pose exactly, encoded by PyTorch",
        "ms",
    )


def agreement(drive: Drive) -> tuple[int, int]:
    """How many scales of the poses of one plan's samples are within 10 % of the exact ones."""
    asked = []

    class Listening:
        def scales(self, means: Floats, headings: Floats, actions: Floats) -> Floats:
            pick = slice(0, 2048, 16)
            asked.append((means[pick].copy(), headings[pick].copy(), actions[pick].copy()))
            return drive.field.scales(means, headings, actions)

    planner, drive.planner = (
        drive.planner,
        MPPI(drive.calibration.model, drive.calibration.state_cov, replace(SETTINGS, warmup=0)),
    )
    state = drive.rng.bit_generator.state
    drive.plan(Listening())
    drive.planner, drive.rng.bit_generator.state = planner, state
    rounded = np.concatenate([drive.field.scales(*a) for a in asked])
    exact = np.concatenate([drive.field.exact_scales(*a) for a in asked])
    return int((np.abs(rounded / exact - 1) <= 0.1).sum()), len(exact)


def lucca_overhead() -> Comparison:
    """LUCCa's control steps over NoCP's, from the same places: every tenth of a drive of map H by LUCCa."""
    drive = Drive(PlanarSettings().world("H"), calibrated("H", "lucca"), threads=1)
    places = []
    while drive.step():
        places.append((drive.state.copy(), drive.looking, drive.reached))
    places = places[5::10]

    def plan_everywhere(field: ScaleField) -> None:
        for drive.state, drive.looking, drive.reached in places:
            drive.plan(field)

    found = compare(
        "lucca_overhead",
        lambda: plan_everywhere(drive.field),
        lambda: plan_everywhere(ConstantScale(1.0)),
        "NoCP's control step",
        unit="ms",
        per=1e-3 * len(places),
        rounds=15,
    )
    return replace(found, is_overhead=True)


def plain_mppi(samples: int, horizon: int) -> Comparison:
    """One update without uncertainty: distance, and a price on samples that meet an obstacle."""
    truth = PlanarSettings().world("H")
    drive = Drive(truth, Calibration("nocp", truth.nominal, truth.state_cov), threads=1)
    for _ in range(60):
        drive.step()
    settings = replace(SETTINGS, samples=samples, horizon=horizon, iterations=1, warmup=0)
    planner = MPPI(truth.nominal, truth.state_cov, settings)
    obstacles = obstacles_of(drive.belief)
    rng = np.random.default_rng(0)
    theirs = torch_planner(truth, drive, settings)
    state = torch.tensor(drive.state, dtype=torch.float32)
    return compare(
        f"plain_mppi_{samples}x{horizon}",
        lambda: planner.plan(drive.state, drive.looking, drive.goal, obstacles, None, rng),
        lambda: theirs.command(state),
        "pytorch_mppi",
        unit="ms",
        per=1e-3,
        rounds=40,
    )


def torch_planner(truth: PlanarWorld, drive: Drive, settings: PlannerSettings) -> pytorch_mppi.MPPI:
    """The same problem for pytorch_mppi."""
    A, B = (torch.tensor(m, dtype=torch.float32) for m in (truth.nominal.A, truth.nominal.B))
    goal = torch.tensor(drive.goal, dtype=torch.float32)
    grid = drive.belief.grid()
    occupied = torch.tensor(grid.labels == grid.index("OCCUPIED"))
    origin = torch.tensor(grid.origin, dtype=torch.float32)
    weights = settings.weights

    def running_cost(states: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        cell = ((states[:, :2] - origin) / grid.resolution).floor().long()
        inside = (
            (cell[:, 0] >= 0)
            & (cell[:, 1] >= 0)
            & (cell[:, 0] < occupied.shape[1])
            & (cell[:, 1] < occupied.shape[0])
        )
        cell[:, 0].clamp_(0, occupied.shape[1] - 1)
        cell[:, 1].clamp_(0, occupied.shape[0] - 1)
        hit = occupied[cell[:, 1], cell[:, 0]] & inside
        return weights.running * (states[:, :2] - goal).norm(dim=1) + weights.collision * hit

    def terminal_cost(states: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return weights.terminal * (states[..., -1, :2] - goal).norm(dim=-1)

    return pytorch_mppi.MPPI(
        dynamics=lambda s, a: s @ A.T + a @ B.T,
        running_cost=running_cost,
        terminal_state_cost=terminal_cost,
        nx=4,
        noise_sigma=torch.eye(2),
        num_samples=settings.samples,
        horizon=settings.horizon,
        lambda_=settings.temperature,
        u_min=torch.tensor([-settings.max_action] * 2),
        u_max=torch.tensor([settings.max_action] * 2),
    )
