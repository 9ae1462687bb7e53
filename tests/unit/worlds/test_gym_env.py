import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

from ocular.errors import InputError
from ocular.records import FootprintGeometry
from ocular.worlds import packaged_maps
from ocular.worlds.gym_env import ENV_ID

COARSE = FootprintGeometry(angles=12, ranges=8)
IDLE = np.zeros(2)


def make(**settings):
    return gymnasium.make(ENV_ID, **({"map": "S", "geometry": COARSE} | settings))


@pytest.mark.parametrize("name", packaged_maps())
def test_gymnasium_finds_nothing_to_complain_about(name):
    check_env(make(map=name).unwrapped)


def test_the_same_seed_and_actions_give_the_same_episode():
    episodes = []
    for seed in (4, 4, 5):
        env = make(map="U")
        steps = [env.reset(seed=seed)]
        rng = np.random.default_rng(0)
        steps += [env.step(rng.uniform(-0.9, 0.9, 2)) for _ in range(20)]
        episodes.append(steps)
    assert data_equivalence(episodes[0], episodes[1], exact=True)
    assert not data_equivalence(episodes[0], episodes[2], exact=True)


def drive(env, aim_of, gain=1.5):
    """Steer at a fixed moderate speed until the episode ends."""
    observation, info = env.reset(seed=0)
    total, ended = 0.0, False
    while not ended:
        towards = aim_of(info) - observation["state"][:2]
        wanted = 0.4 * towards / np.hypot(*towards)
        action = np.clip(gain * (wanted - observation["state"][2:]), -0.9, 0.9)
        observation, reward, terminated, truncated, info = env.step(action)
        total += reward
        ended = terminated or truncated
    return observation, total, terminated, info


def test_a_driver_along_the_subgoals_arrives_and_the_episode_is_over():
    env = make(map="H")
    goals = np.array(env.unwrapped.world.map.subgoals)
    observation, total, terminated, info = drive(env, lambda info: goals[info["subgoals_reached"]])
    assert (terminated, info["reason"], info["subgoals_reached"]) == (True, "success", len(goals))
    assert np.hypot(*(observation["state"][:2] - goals[-1])) <= 0.3
    assert total > 0
    with pytest.raises(InputError, match="after the episode has ended; allowed is reset"):
        env.step(IDLE)
    assert env.reset()[1] == {"reason": "", "subgoals_reached": 0, "steps": 0}


def test_a_driver_into_the_wall_collides():
    _, _, terminated, info = drive(make(), lambda _: np.array([0.6, -5.0]))
    assert (terminated, info["reason"]) == (True, "collision")


def test_an_idle_driver_runs_out_of_time():
    env = make(max_steps=3)
    env.reset(seed=0)
    outcomes = [env.step(IDLE)[2:] for _ in range(3)]
    assert [outcome[:2] for outcome in outcomes] == [(False, False), (False, False), (False, True)]
    assert outcomes[-1][2]["reason"] == "timeout"


def test_actions_beyond_the_bounds_are_clipped_to_them():
    after = []
    for scale in (1.0, 100.0):
        env = make(disable_env_checker=True)
        env.reset(seed=1)
        after.append(env.step(scale * np.array([0.9, -0.9]))[0]["state"])
    assert np.array_equal(*after)


def test_the_robot_starts_at_rest_looking_at_the_first_subgoal():
    observation, _ = make(map="U").reset(seed=0)
    assert observation["state"].tolist() == [0.8, 0.8, 0.0, 0.0]
    assert observation["heading"] == pytest.approx(np.pi / 2)
    assert observation["footprint"].shape == (12, 8)


def test_mistakes_say_what_is_allowed(tmp_path):
    (tmp_path / "room.toml").write_text("size = [1, 1]\n[[free]]\nx = [0, 1]\ny = [0, 1]\n")
    with pytest.raises(InputError, match="has no route; allowed are maps with start and subgoals"):
        make(map=tmp_path / "room.toml")
    with pytest.raises(InputError, match="max_steps=0"):
        make(max_steps=0)
    with pytest.raises(InputError, match="subgoal_radius=nan"):
        make(subgoal_radius=float("nan"))
    env = make().unwrapped
    with pytest.raises(InputError, match=r"before reset\(\)"):
        env.step(IDLE)
    env.reset(seed=0)
    with pytest.raises(InputError, match="action has 1 values that are not finite"):
        env.step(np.array([np.nan, 0.0]))
    with pytest.raises(InputError, match=r"action has shape \(3,\)"):
        env.step(np.zeros(3))
