"""brax's PPO on points, and MuJoCo Playground's pendulum, in their own Python."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from job_folders import ADAPTERS, PROGRAMS, ROOT, JobFolder, MakeFolder

PYTHON = os.environ.get("EUREKA_BRAX_PYTHON")
EXAMPLE = ROOT / "examples" / "commands" / "playground_pendulum"
FITNESS = """
def compute_fitness(distance, previous_distance):
    return previous_distance - distance
"""
REWARD = """
import torch

def compute_reward(place, previous_place, distance, native_reward, actions, terminated):
    terms = {
        "near": torch.exp(-distance.square()),
        "moved": (place - previous_place).norm(dim=-1),
        "effort": -0.1 * actions.square().sum(dim=-1),
        "native": 0.5 * native_reward,
        "left": -terminated,
    }
    return sum(terms.values()), terms
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason="EUREKA_BRAX_PYTHON names no Python with brax"),
]


def run(folder: JobFolder, what: str = "", script: Path = PROGRAMS / "jax_point.py") -> int:
    environment = {**os.environ, "PYTHONPATH": str(ADAPTERS), "MUJOCO_GL": "egl"}
    assert PYTHON is not None
    return subprocess.run(
        [PYTHON, str(script), what, str(folder.path)],
        env=environment,
        capture_output=True,
        check=False,
        timeout=500,
    ).returncode


def test_equal_seeds_train_the_same_and_native_terms_as_brax_alone(folder: MakeFolder) -> None:
    native = "def compute_reward(native_reward):\n    return native_reward, {}\n"
    policies, events = [], []
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        made = folder(FITNESS, name)
        made.train(1600, native, num_envs=8, seed=seed, rungs=[500])
        assert run(made) == 0
        events.append(made.events())
        policies.append(dict(np.load(made.path / "policy-a-end.npz", allow_pickle=False)))
    assert events[0] == events[1] != events[2]
    trained = events[0][-1]
    # updates of 16 × 2 × 5 env steps
    assert [each["env_steps"] for each in trained["policies"]] == [500, 1600]
    made.job("train", env_steps=1600, num_envs=8, trainings=[{"seed": 1}])
    assert run(made, "alone") == 0
    alone = np.load(made.path / "alone.npz")
    assert set(alone.files) == set(policies[0])
    for name in alone.files:
        np.testing.assert_array_equal(policies[0][name], policies[1][name])
        np.testing.assert_allclose(policies[0][name], alone[name], rtol=1e-2, atol=1e-4)


def test_a_reward_gets_the_states_before_resets_and_pays_what_its_file_says(
    folder: MakeFolder,
) -> None:
    made = folder(FITNESS)
    made.train(800, REWARD, num_envs=8)
    assert run(made, "record") == 0
    steps = dict(np.load(made.path / "steps.npz"))
    done = steps["terminated"] | steps["truncated"]
    for now, after in zip(range(99), range(1, 100), strict=True):
        # a row goes on from where it is, or from the start after its end
        place = steps["start_place"][now]
        np.testing.assert_array_equal((place == steps["place"][now]).all(axis=1) | done[now], True)
        reached = place + 0.2 * steps["actions"][after]
        np.testing.assert_allclose(steps["place"][after], reached, atol=1e-6)
    distances = np.linalg.norm(steps["place"], axis=-1)
    np.testing.assert_array_equal(steps["terminated"], distances > 1.5)
    np.testing.assert_array_equal(steps["left"], steps["terminated"])
    np.testing.assert_allclose(steps["native_reward"], -np.abs(steps["place"]).sum(-1), atol=1e-6)
    assert steps["terminated"].any()
    assert steps["truncated"].any()
    totals = []
    previous = np.concatenate(
        [steps["place"][:1] - 0.2 * steps["actions"][:1], steps["start_place"]]
    )
    namespace: dict[str, Any] = {}
    exec(REWARD, namespace)
    names = ("place", "distance", "native_reward", "actions", "terminated")
    for number in range(100):
        given = {name: torch.as_tensor(steps[name][number]).float() for name in names}
        before = torch.as_tensor(previous[number])
        totals.append(namespace["compute_reward"](previous_place=before, **given)[0].numpy())
    np.testing.assert_allclose(steps["total"], np.stack(totals), atol=1e-5)
    curves = made.events("curve")
    counted = {"left": int(steps["left"].sum()), "time_out": int(steps["truncated"].sum())}
    ends = [each["ends"] for each in curves]
    assert counted == {name: sum(each.get(name, 0) for each in ends) for name in counted}


@pytest.mark.parametrize(
    ("body", "line", "said"),
    [
        ("    raise ValueError('no')", 2, "ValueError: no"),
        ("    return distance.log() * float('nan'), {}", 2, "not finite"),
        ("    return place, {}", 2, "expected a real tensor of shape (8,)"),
        ("    return missing", 2, "NameError"),
    ],
)
def test_a_wrong_reward_is_the_rewards_fault(
    folder: MakeFolder, body: str, line: int, said: str
) -> None:
    made = folder(FITNESS)
    made.train(800, f"def compute_reward(place, distance):\n{body}\n", num_envs=8)
    assert run(made) == 1
    fault = made.events()[-1]
    assert (fault["event"], fault["whose"], fault["training"]) == ("fault", "reward", "a")
    assert fault["line"] == line
    assert said in fault["message"]


@pytest.mark.parametrize("whose", ["environment", "trainer"])
def test_other_faults_are_the_simulators_or_the_trainers(folder: MakeFolder, whose: str) -> None:
    made = folder(FITNESS)
    made.train(800, REWARD, num_envs=8)
    assert run(made, whose) == 1
    assert [(each["event"], each["whose"]) for each in made.events()] == [("fault", whose)]


def test_a_state_goes_on_and_an_evaluation_is_the_same_twice(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    made.train(3200, REWARD, num_envs=8, save_every_s=0)
    assert run(made) == 0
    assert made.events("saved")[-1]["env_steps"] == 3200
    made.train(3360, REWARD, num_envs=8, state="state-a-3200.pt")
    assert run(made) == 0
    assert made.events("trained")[0]["env_steps"] == 3360
    # each parameter goes on from where it was: Adam's step is at most some 1e-3 in each of 8
    before = np.load(made.path / "state-a-3200.pt")
    after = np.load(made.path / "policy-a-end.npz")
    policy = [name for name in after.files if "kernel" in name]
    assert max(np.abs(after[name] - before[f"[0]{name}"]).max() for name in policy) < 0.02
    told = []
    for _ in range(2):
        made.evaluate("policy-a-end.npz", record="extremes", episodes=6)
        assert run(made) == 0
        told.append(made.events())
    assert told[0] == told[1]
    (worst, *_) = [each for each in made.events("episode") if "values" in each]
    places = np.array([worst["start"]["place"], *worst["values"]["place"]])
    pushes = 0.2 * np.array(worst["values"]["actions"])
    np.testing.assert_allclose(np.diff(places, axis=0), pushes, atol=1e-5)
    distances = np.linalg.norm(places, axis=1)
    assert worst["fitness"] == pytest.approx(distances[0] - distances[-1], abs=1e-4)


def test_playgrounds_pendulum_describes_itself(folder: MakeFolder) -> None:
    made = folder("def compute_fitness(upright):\n    return (upright > 0.955).float()\n")
    made.job("describe", episodes=24, most_steps=60, options={"task": "PendulumSwingup"})
    assert run(made, script=EXAMPLE / "train.py") == 0
    described, *episodes = made.events()
    assert (described["num_observations"], described["num_actions"]) == (3, 1)
    assert described["control_dt"] == 0.05
    assert [each["name"] for each in described["native_terms"]] == ["native_reward"]
    assert len(episodes) == 48
    for episode in episodes:
        values = {name: np.array(each) for name, each in episode["values"].items()}
        angles = np.unwrap(np.arctan2(values["sine"], values["upright"]))
        speed = values["angular_velocity"]
        # two semi-implicit Euler steps of 0.025 s, the first to about the mean of both speeds
        moved = 0.025 * ((speed[:-1] + speed[1:]) / 2 + speed[1:])
        np.testing.assert_allclose(np.diff(angles), moved, atol=0.005)
        # Playground's reward reads the pole of the substep before
        pole = np.cos(angles - 0.025 * speed)
        np.testing.assert_array_equal(values["native_reward"], pole >= np.cos(np.deg2rad(8)))
    assert any(max(each["values"]["native_reward"]) for each in episodes)
