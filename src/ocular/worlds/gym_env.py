"""The planar world as a gymnasium environment: importing this module registers `ocular/Planar-v0`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ocular.errors import InputError, check_finite, check_shape
from ocular.records import Floats, FootprintGeometry
from ocular.worlds.map_file import PLANAR_LABELS, load_map
from ocular.worlds.planar import PlanarWorld, heading

ENV_ID = "ocular/Planar-v0"

Observation = dict[str, Any]  # of arrays; gymnasium's Dict space promises no more


class PlanarEnv(gymnasium.Env[Observation, Floats]):
    """Drive a map's route: subgoal after subgoal, from rest, without touching an obstacle.

    The reward is the progress towards the current subgoal [m]. `info["reason"]` says why an episode ended:
    "success" or "collision" (terminated), "timeout" (truncated), and "" while it goes on.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  (declared so by gymnasium)

    def __init__(
        self,
        map: str | Path = "S",
        *,
        max_steps: int = 1000,
        subgoal_radius: float = 0.3,  # [m]
        slip: float = 1.3,
        geometry: FootprintGeometry | None = None,
    ) -> None:
        self.world = PlanarWorld(load_map(map), slip=slip, geometry=geometry or FootprintGeometry())
        if self.world.map.start is None or not self.world.map.subgoals:
            raise InputError(f"the map {map!r} has no route; allowed are maps with start and subgoals")
        if max_steps < 1 or not 0 < subgoal_radius < np.inf:
            raise InputError(
                f"max_steps={max_steps}, subgoal_radius={subgoal_radius}; allowed are at least 1 step "
                "and a positive radius"
            )
        self._start = np.array(self.world.map.start)
        self._subgoals = np.array(self.world.map.subgoals)  # (k, 2)
        self._over = True  # until reset
        self._max_steps = max_steps
        self._subgoal_radius = subgoal_radius
        bound = self.world.action_bound
        self.action_space = spaces.Box(-bound, bound, (2,), np.float64)
        shape = (self.world.geometry.angles, self.world.geometry.ranges)
        self.observation_space = spaces.Dict(
            {
                "state": _state_space(self.world),
                "heading": spaces.Box(-np.pi, np.pi, (1,), np.float64),
                "footprint": spaces.Box(0, len(PLANAR_LABELS) - 1, shape, np.uint8),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Rest at the start, looking at the first subgoal."""
        super().reset(seed=seed, options=options)
        self._state = np.concatenate([self._start, np.zeros(2)])
        towards = self._subgoals[0] - self._start
        self._heading = np.arctan2(towards[1:], towards[:1])
        self._steps = 0
        self._reached = 0
        self._over = False
        return self._observation(), self._info("")

    def step(self, action: Floats) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """One noisy step of the true dynamics; an action beyond the bounds is clipped to them."""
        action = np.asarray(action, np.float64)
        check_shape("action", action, (2,))
        check_finite("action", action)
        if self._over:
            raise InputError(
                "step() before reset(), or after the episode has ended; allowed is reset() first"
            )
        bound = self.world.action_bound
        before = self._state
        self._state = self.world.step(self.np_random, before[None], np.clip(action, -bound, bound)[None])[0]
        self._heading = heading(self._state[None], self._heading)
        self._steps += 1
        reward = self._distance(before) - self._distance(self._state)
        reason = self._why_ended(before)
        self._over = reason in ("success", "collision")
        return self._observation(), reward, self._over, reason == "timeout", self._info(reason)

    def _why_ended(self, before: Floats) -> str:
        if not self.world.path_is_free(before[:2], self._state[:2]):
            return "collision"
        if self._distance(self._state) <= self._subgoal_radius:
            self._reached += 1
        if self._reached == len(self._subgoals):
            return "success"
        return "timeout" if self._steps >= self._max_steps else ""

    def _distance(self, state: Floats) -> float:
        """From the robot to its current subgoal [m]."""
        return float(np.hypot(*(state[:2] - self._subgoals[self._reached])))

    def _observation(self) -> Observation:
        return {
            "state": self._state.copy(),
            "heading": self._heading.copy(),
            "footprint": self.world.observe(self._state[None, :2], self._heading)[0],
        }

    def _info(self, reason: str) -> dict[str, Any]:
        return {"reason": reason, "subgoals_reached": self._reached, "steps": self._steps}


def _state_space(world: PlanarWorld) -> spaces.Box:
    """Bounds that no robot gets near: twice the speed reached by crossing the map at full throttle."""
    size = np.array(world.map.size)
    slip = max(world.slip, 1.0)
    speed = 2.0 * np.sqrt(2.0 * slip * world.action_bound * size.max()) + 1.0  # and some for the noise [m/s]
    one_step = slip * world.dt * speed  # how far past the edge a collision may be noticed [m]
    return spaces.Box(
        np.array([-one_step, -one_step, -speed, -speed]),
        np.array([*(size + one_step), speed, speed]),
        dtype=np.float64,
    )


gymnasium.register(ENV_ID, entry_point="ocular.worlds.gym_env:PlanarEnv")
