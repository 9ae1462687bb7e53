"""A world of one's own: a slope that pulls robots down wherever it is icy, logged, calibrated and driven."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ocular
from ocular.evaluation.episodes import Route, run_episode
from ocular.planning.belief import BeliefMap
from ocular.planning.mppi import MPPI, PlannerSettings
from ocular.planning.scale_field import scale_field
from ocular.seeds import stream
from ocular.worlds.collect import GridSpec, collect_transitions
from ocular.worlds.map_file import load_map
from ocular.worlds.planar import PlanarWorld

MAP = Path("slope.toml")
MAP.write_text(
    """
size = [2.4, 1.2]
start = [0.3, 0.6]
subgoals = [[0.9, 0.6], [1.5, 0.6], [2.1, 0.6]]
free = [{ x = [0.1, 2.3], y = [0.1, 1.1] }]
slippery = [{ x = [1.2, 2.3], y = [0.1, 1.1] }]
"""
)


@dataclass(frozen=True)
class Slope(PlanarWorld):
    """Whatever moves differently goes into `expected`; the robot's own model stays `nominal`."""

    pull: float = 0.02  # [m/s a step]

    def expected(self, states, actions, slippery=None):
        """Next states without noise."""
        icy = self.region(states[..., :2]) if slippery is None else slippery
        following = super().expected(states, actions, slippery=np.zeros_like(icy))
        return following - self.pull * icy[..., None] * np.array([0.0, 0.0, 0.0, 1.0])


world = Slope(load_map(MAP))
logs = collect_transitions(world, GridSpec(positions=16, velocities=6, actions=2), stream(0, "logs"))
calibration = ocular.lucca().fit(logs, world.nominal, world.state_cov, seed=0)

settings = PlannerSettings(samples=512)
driven = run_episode(
    world,
    Route(np.array(world.map.start), np.array(world.map.subgoals)),
    MPPI(calibration.model, calibration.state_cov, settings),
    BeliefMap(world.map.grid.names),
    lambda belief: scale_field(calibration, settings.alpha, belief),
    seed=0,
    max_steps=200,
)
print(f"{driven.outcome} after {driven.steps} steps, {driven.subgoals} of {len(world.map.subgoals)} subgoals")
