"""The exported folder alone suffices: observations built by its policy.json lead to the actions
that the run's policy gives."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from export_runs import MakeRun, described, export_of, write_texts

from eureka_agent.export.folder import policy_description
from eureka_agent.records import TaskDescription
from eureka_agent.simulation.loading import load_environment
from eureka_agent.training.policy import load_policy

CARTPOLE_REWARD = "def compute_reward(cart_position):\n    return -cart_position, {}\n"

READER = """
import json, sys
import numpy, onnxruntime
policy = json.load(open("policy.json"))
quantities = json.loads(sys.argv[1])
columns = policy["observation"]["columns"]
row = [quantities[column["name"]] * column["scale"] for column in columns]
session = onnxruntime.InferenceSession("policy.onnx")
(action,) = session.run([policy["action"]["output"]], {policy["observation"]["input"]: numpy.array([row], "float32")})
commands = {
    column["name"]: column["low"] + (float(value) + 1) / 2 * (column["high"] - column["low"])
    for column, value in zip(policy["action"]["columns"], action[0])
}
print(json.dumps({"row": row, "action": action[0].tolist(), "commands": commands}))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit.load. is deprecated")
def test_a_stranger_acts_as_the_run_does(make_run: MakeRun, tmp_path: Path) -> None:
    run, folder = make_run(CARTPOLE_REWARD, described("cartpole")), tmp_path / "taken away"
    export_of(run, folder)
    angle = 0.3
    quantities = {
        "cart_position": 0.5,
        "cart_velocity": -1.0,
        "pole_angle_sine": math.sin(angle),
        "pole_upright": math.cos(angle),
        "pole_angular_velocity": 2.0,
    }
    script = [sys.executable, "-I", "-c", READER, json.dumps(quantities)]
    said = json.loads(
        subprocess.run(script, cwd=folder, capture_output=True, text=True, check=True).stdout
    )
    # the environment itself, put into that state
    environment: Any = load_environment("cartpole").environment_class(1)
    environment.position[:], environment.velocity[:], environment.angle[:] = 0.5, -1.0, angle
    environment.angular_velocity[:] = 2.0
    environment.compute_observations()
    assert said["row"] == pytest.approx(environment.obs_buf[0].tolist(), abs=1e-6)
    expected = float(
        load_policy(run.folder / "best" / "policy.safetensors").act(environment.obs_buf)[0, 0]
    )
    assert said["action"] == pytest.approx([expected], abs=1e-5)
    environment.pre_physics_step(torch.tensor([[expected]]))
    assert said["commands"] == pytest.approx({"cart_force": float(environment.force[0])}, abs=1e-3)
    # the files by themselves say the same
    text = (folder / "policy.json").read_text()
    extra = {"policy.json": ""}
    torch.jit.load(folder / "policy.pt", _extra_files=extra)
    found = extra["policy.json"]
    assert (found.decode() if isinstance(found, bytes) else found) == text
    properties = {each.key: each.value for each in onnx.load(folder / "policy.onnx").metadata_props}
    assert properties["policy.json"] == text
    described_policy = json.loads(text)
    assert (described_policy["control_dt_s"], described_policy["quaternion_order"]) == (
        0.02,
        "wxyz",
    )
    mean = load_policy(run.folder / "best" / "policy.safetensors")._mean.tolist()
    assert [column["mean"] for column in described_policy["observation"]["columns"]] == mean
    readme = (folder / "README.md").read_text()
    assert "| 4 | `pole_angular_velocity` | rad/s | world | 1 |" in readme
    assert "| 0 | `cart_force` | N | world | -10 | 10 | pushes the cart along the track |" in readme


def test_columns_without_names_are_said_to_be_so(
    make_run: MakeRun, description: TaskDescription, tmp_path: Path
) -> None:
    bare = description.model_copy(update={"observation_channels": (), "action_channels": ()})
    count = bare.num_observations
    found = policy_description(bare, [0.0] * count, [1.0] * count, {})
    assert found["observation"]["named"] is False
    assert [column["name"] for column in found["observation"]["columns"]] == [
        f"observation[{i}]" for i in range(count)
    ]
    assert [(column["low"], column["high"]) for column in found["action"]["columns"]] == [
        (None, None)
    ] * bare.num_actions
    readme = (
        write_texts(make_run(CARTPOLE_REWARD, bare), tmp_path / "taken away") / "README.md"
    ).read_text()
    assert "The environment does not name them." in readme
    assert "| 0 | `observation[0]` | ? | ? | 1 | 0.5 | 2 |  |" in readme


def test_choices_and_their_logits_are_described(make_run: MakeRun, tmp_path: Path) -> None:
    cart_pole = described("gymnasium:CartPole-v1")
    found = policy_description(cart_pole, [0.0] * 4, [1.0] * 4, {})
    assert (found["action"]["shape"], found["action"]["dtype"]) == (["batch"], "int64")
    (column,) = found["action"]["columns"]
    assert (column["name"], column["choices"]) == ("choice", 2)
    assert not {"low", "high", "scale"} & set(column)
    assert (found["logits"]["output"], found["logits"]["shape"]) == ("logits", ["batch", 2])
    several = cart_pole.model_copy(update={"num_actions": 2, "action_choices": (3, 4)})
    found = policy_description(several, [0.0] * 4, [1.0] * 4, {})
    assert (found["action"]["shape"], found["logits"]["shape"]) == (["batch", 2], ["batch", 7])
    assert [each["choices"] for each in found["action"]["columns"]] == [3, 4]
    source = "def compute_reward(actions):\n    return actions, {}\n"
    folder = write_texts(make_run(source, cart_pole), tmp_path / "taken away")
    readme = (folder / "README.md").read_text()
    assert "`action` (batch,), int64, and `logits` (batch, 2), float32" in readme
    assert "| 0 | `choice` | 2 | 0 pushes the cart to the left, 1 to the right |" in readme
    assert "[-1, 1]" not in readme
