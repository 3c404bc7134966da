"""Tasks of Isaac Lab on its Newton physics, in the Python that has it (`make test-adapters`)."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest
from job_folders import PROGRAMS, JobFolder, MakeFolder

PYTHON = os.environ.get("EUREKA_ISAAC_PYTHON", "")
FITNESS = "def compute_fitness(joint_pos):\n    return joint_pos[:, 1].cos()\n"
REWARD = (
    "def compute_reward(native_reward, previous_goal, goal):\n"
    "    passed = goal - previous_goal\n"
    "    return native_reward, {'native': native_reward, 'passed': passed}\n"
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="EUREKA_ISAAC_PYTHON is not set"),
]


def did(made: JobFolder, mode: str, task: str, **fields: Any) -> list[dict[str, Any]]:
    """Events of a job."""
    made.job(mode, options={"task": task}, **{"num_envs": 4, **fields})
    (made.path / "steps.jsonl").unlink(missing_ok=True)
    result = made.run(PROGRAMS / "short_isaac_cartpole.py", PYTHON)
    assert result.returncode == 0 or made.events("fault"), result.stderr[-3000:]
    return made.events()


def trained(made: JobFolder, task: str, **rewards: str) -> list[dict[str, Any]]:
    entry = {"seed": 5, "state": None, "rungs": []}
    for name, reward in rewards.items():
        made.write(f"{name}.py", reward)
    entries = [{"id": name, "reward": f"{name}.py", **entry} for name in rewards]
    sizes = {"env_steps": 512, "num_envs": 8 * len(rewards), "save_every_s": 600}
    return did(made, "train", task, trainings=entries, **sizes)


@pytest.mark.parametrize("task", ["Short", "Short-Direct"])
def test_values_and_terms_are_those_before_the_resets(folder: MakeFolder, task: str) -> None:
    made = folder(FITNESS)
    described, *episodes = did(made, "describe", task, episodes=4, most_steps=30)
    variables = {each["name"]: each for each in described["variables"]}
    order = ", in order: slider_to_cart, cart_to_pole"
    assert variables["joint_pos"]["doc"] == "Joint positions of all joints" + order
    # three numbers in torch, one in Warp
    position = variables["body_link_pos_w"]
    assert [position[name] for name in ("shape", "unit", "frame")] == [[3, 3], "m", "world"]
    assert not [name for name in variables if name.startswith("root_")]
    assert described["quaternion_order"] == "xyzw"
    assert described["control_dt"] == pytest.approx(1 / 60)
    terms = {each["name"]: each["weight"] for each in described["native_terms"]}
    if task == "Short":
        # weights of a step of 1/60 s; without the term that weighs nothing
        weights = {"alive": 1, "terminating": -2, "pole_pos": -1, "cart_vel": -0.01}
        weights["pole_vel"] = -0.005
        assert terms == {name: pytest.approx(each / 60) for name, each in weights.items()}
        assert list(described["ends"]) == ["far"]
    else:
        assert terms == {"native_reward": 1.0}
        assert list(described["ends"]) == ["terminated"]

    steps = [json.loads(line) for line in (made.path / "steps.jsonl").read_text().splitlines()]
    (early,) = described["ends"]
    assert {each["ended_by"] for each in episodes} == {early, "time_out"}
    for by in ("zero", "random"):
        of_rows = [each for each in episodes if each["by"] == by]
        count = max(each["length"] for each in of_rows)
        batch, steps = steps[:count], steps[count:]
        for row, episode in enumerate(of_rows):
            values, length = episode["values"], episode["length"]
            weighted = sum(weight * np.array(values[name]) for name, weight in terms.items())
            rewards = [each["reward"][row] for each in batch[:length]]
            np.testing.assert_allclose(weighted, rewards, rtol=1e-4, atol=1e-6)
            # the state that Isaac Lab reset, not the one that it reset to
            before = batch[length - 1]["ended"][str(row)]
            np.testing.assert_allclose(values["joint_pos"][-1], before, atol=1e-5)
            assert (abs(before[0]) > 0.9) == (episode["ended_by"] == early)
            assert values["terminated"][-1] == (episode["ended_by"] == early)
            # the pole turns about x, and a quaternion ends with its w
            turned = np.array(values["body_link_quat_w"])[:, 2, 3]
            angles = np.array(values["joint_pos"])[:, 1]
            np.testing.assert_allclose(np.abs(turned), np.abs(np.cos(angles / 2)), atol=1e-4)
            if task == "Short-Direct":
                # the reward moved it on after that
                assert np.diff(values["goal"]).tolist() == [1.0] * (length - 1)
                assert values["goal"][0] == episode["start"]["goal"]
    assert steps == []


def test_equal_seeds_train_the_same_and_a_policy_is_evaluated(folder: MakeFolder) -> None:
    policies = []
    for name in ("first", "second"):
        made = folder(FITNESS, name)
        (event,) = [
            each for each in trained(made, "Short-Direct", a=REWARD) if each["event"] == "trained"
        ]
        assert event["env_steps"] == 512
        policies.append(np.load(made.path / event["policies"][-1]["policy"]))
    first, second = policies
    for name in first.files:
        np.testing.assert_array_equal(first[name], second[name])
    curve = made.events("curve")[-1]
    assert curve["terms"]["passed"]["mean"] == pytest.approx(1, abs=0.1)
    assert set(curve["ends"]) <= {"terminated", "time_out"}
    entry = {"id": "p", "policy": event["policies"][-1]["policy"], "seed": 3, "episodes": 3}
    *episodes, evaluated = did(made, "evaluate", "Short-Direct", policies=[{**entry, "record": []}])
    assert evaluated == {"event": "evaluated", "policy": "p"}
    assert len({each["fitness"] for each in episodes}) == 3


def test_rewards_share_a_process_and_a_wrong_one_ends_alone(folder: MakeFolder) -> None:
    reward = "def compute_reward(alive):\n    return 5 * alive, {'alive': alive}\n"
    wrong = "def compute_reward(alive):\n    return alive[:, None], {}\n"
    made = folder(FITNESS)
    events = trained(made, "Short", a=reward, b=wrong)
    faults = [each for each in events if each["event"] == "fault"]
    assert [(each["training"], each["whose"]) for each in faults] == [("b", "reward")]
    assert [each["training"] for each in events if each["event"] == "trained"] == ["a"]
    (mean, *_) = [each["reward"] for each in events if each["event"] == "curve"]
    assert 4 < mean <= 5


def test_a_fault_is_told_before_the_simulator_is_left(folder: MakeFolder) -> None:
    made = folder("def compute_fitness(height):\n    return height\n")
    events = did(made, "describe", "Short", episodes=1, most_steps=2)
    (fault,) = [each for each in events if each["event"] == "fault"]
    assert (fault["whose"], "'height'" in fault["message"]) == ("environment", True)
    (fault,) = did(made, "describe", "Isaac-Cartpole-v0", episodes=1, most_steps=2)
    assert "'Isaac-Cartpole-v0', expected one of [" in fault["message"]
