"""Tasks of mjlab, in the Python that has it (`make test-adapters`)."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest
from job_folders import PROGRAMS, JobFolder, MakeFolder

PYTHON = os.environ.get("EUREKA_MJLAB_PYTHON", "")
FITNESS = "def compute_fitness(joint_pos):\n    return joint_pos[:, 1].cos()\n"
REWARD = (
    "def compute_reward(age, previous_cosine, cosine):\n"
    "    up = cosine - previous_cosine\n    return up, {'up': up, 'age': age}\n"
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="EUREKA_MJLAB_PYTHON is not set"),
]


def did(made: JobFolder, mode: str, task: str = "Short", **fields: Any) -> list[dict[str, Any]]:
    """Events of a job."""
    made.job(mode, options={"task": task}, **{"num_envs": 4, **fields})
    (made.path / "steps.jsonl").unlink(missing_ok=True)
    result = made.run(PROGRAMS / "short_cartpole.py", PYTHON)
    assert result.returncode == 0 or made.events("fault"), result.stderr[-3000:]
    return made.events()


def trained(
    made: JobFolder, state: str | None = None, save_every_s: float = 600, **rewards: str
) -> list[dict[str, Any]]:
    entry = {"seed": 5, "state": state, "rungs": []}
    for name, reward in rewards.items():
        made.write(f"{name}.py", reward)
    entries = [{"id": name, "reward": f"{name}.py", **entry} for name in rewards]
    sizes = {"env_steps": 256, "num_envs": 8 * len(rewards), "save_every_s": save_every_s}
    return did(made, "train", trainings=entries, **sizes)


def test_a_task_describes_itself_and_its_steps(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    described, *episodes = did(made, "describe", episodes=4, most_steps=20)
    variables = {each["name"]: each for each in described["variables"]}
    assert len(variables) < 60
    assert variables["joint_pos"]["doc"] == "Joint positions, in order: slider, hinge_1"
    position = variables["body_link_pos_w"]
    told = [position[name] for name in ("shape", "unit", "frame")]
    assert told == [[3, 3], "m", "world"]
    # the cart stands on the world
    assert not [name for name in variables if name.startswith(("root_", "terrain_"))]
    assert described["ends"] == {"far": "End when the cart is far from the middle"}
    assert (described["control_dt"], described["max_episode_length"]) == (0.05, 20)
    assert (described["num_observations"], described["num_actions"]) == (5, 1)
    assert (described["can"]["film"], described["can"]["rewards"]) == (True, 8)
    own = "; term of the simulator's own reward"
    # weights of a step of 0.05 s; without the term that weighs nothing
    assert [(each["name"], each["weight"]) for each in described["native_terms"]] == [
        ("smooth_reward", pytest.approx(0.05)),
        ("term_joint_vel", pytest.approx(-0.025)),
        ("age", pytest.approx(0.15)),
    ]
    assert variables["age"] == {
        "name": "age",
        "shape": [],
        "unit": "1",
        "frame": "-",
        "doc": "Count the steps of the episode" + own,
    }

    steps = [json.loads(line) for line in (made.path / "steps.jsonl").read_text().splitlines()]
    assert {each["ended_by"] for each in episodes} == {"far", "time_out"}
    for by in ("zero", "random"):
        of_rows = [each for each in episodes if each["by"] == by]
        count = max(each["length"] for each in of_rows)
        batch, steps = steps[:count], steps[count:]
        for row, episode in enumerate(of_rows):
            values, length = episode["values"], episode["length"]
            weighted = [
                each["weight"] * np.array(values[each["name"]])
                for each in described["native_terms"]
            ]
            rewards = [each["reward"][row] for each in batch[:length]]
            np.testing.assert_allclose(sum(weighted), rewards, rtol=1e-5, atol=1e-6)
            assert "env_origin" not in values, "all share one place, and there is no grid"
            assert values["age"] == list(range(1, length + 1))
            # the state that mjlab reset, not the one that it reset to
            before = batch[length - 1]["ended"][str(row)]
            np.testing.assert_allclose(values["joint_pos"][-1], before, atol=1e-6)
            assert (abs(before[0]) > 0.15) == (episode["ended_by"] == "far")
            assert values["terminated"][-1] == (episode["ended_by"] == "far")
            np.testing.assert_allclose(
                values["cosine"], np.cos(values["joint_pos"])[:, 1], atol=1e-6
            )
            assert episode["start"]["joint_pos"][0] == 0.0
    assert steps == []


def test_equal_seeds_train_the_same_and_a_policy_is_filmed(folder: MakeFolder) -> None:
    policies = []
    for name in ("first", "second"):
        made = folder(FITNESS, name)
        (event,) = [each for each in trained(made, a=REWARD) if each["event"] == "trained"]
        assert event["env_steps"] == 256
        policies.append(np.load(made.path / event["policies"][-1]["policy"]))
    first, second = policies
    for name in first.files:
        np.testing.assert_array_equal(first[name], second[name])
    # counted through the ends of episodes: a term keeps its state
    assert 1 < made.events("curve")[-1]["terms"]["age"]["mean"] < 20
    entry = {"id": "p", "policy": event["policies"][-1]["policy"], "seed": 3, "episodes": 2}
    sizes = {"size": [64, 48], "most_steps": 5, "every": 2, "num_envs": 2}
    (filmed,) = did(made, "film", policies=[{**entry, "record": [0, 1]}], **sizes)[:1]
    pictures = np.fromfile(made.path / filmed["pictures"], np.uint8).reshape(-1, 48, 64, 3)
    assert len(pictures) == 3
    assert pictures.std() > 5


def test_what_counts_a_training_goes_on_with_it(folder: MakeFolder) -> None:
    made, reward = folder(FITNESS), "def compute_reward(counter):\n    return counter, {}\n"
    saved = [each for each in trained(made, None, 0.0, a=reward) if each["event"] == "saved"]
    state = saved[0]
    assert state["env_steps"] == 128
    curve = [each for each in trained(made, state["state"], a=reward) if each["event"] == "curve"]
    # 8 rows: steps 17 to 32 of each
    assert curve[-1]["reward"] == pytest.approx(24.5, abs=1.0)


def test_rewards_share_a_process_and_a_wrong_one_ends_alone(folder: MakeFolder) -> None:
    wrong = "def compute_reward(age):\n    return age[:, None], {}\n"
    made = folder(FITNESS)
    events = trained(made, a=REWARD, b=wrong, c=REWARD.replace("up =", "up = 100 + "))
    faults = [each for each in events if each["event"] == "fault"]
    assert [(each["training"], each["whose"]) for each in faults] == [("b", "reward")]
    assert {each["training"] for each in events if each["event"] == "trained"} == {"a", "c"}
    means = {each["training"]: each["reward"] for each in events if each["event"] == "curve"}
    assert means["c"] - 100 == pytest.approx(0, abs=1)
    assert abs(means["a"]) < 1


def test_a_task_that_is_not_there_is_told(folder: MakeFolder) -> None:
    (fault,) = did(folder(FITNESS), "describe", task="Mjlab-Car", episodes=1, most_steps=2)
    assert fault["whose"] == "environment"
    assert "'Mjlab-Car', expected one of ['Mjlab-Cartpole-Balance'" in fault["message"]
