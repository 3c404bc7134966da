"""The humanoid's masses and lengths, directions of its joints, human reward and end."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from by_hand import compute_reward
from torch import Tensor

Make = Callable[..., Any]


def capsule_kilograms(radius: float, length: float) -> float:
    """Of the density of water."""
    return 1000.0 * (math.pi * radius**2 * length + 4.0 / 3.0 * math.pi * radius**3)


def still(model: mujoco.MjModel) -> mujoco.MjData:
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return data


def test_masses_and_lengths(make: Make) -> None:
    model = make("humanoid", 1).model
    data = still(model)
    assert float(model.body_mass.sum()) == pytest.approx(41.65, abs=0.05)
    for side, left in (("right", -1.0), ("left", 1.0)):
        thigh, shin, foot = (data.body(f"{side}_{part}").xpos for part in ("thigh", "shin", "foot"))
        assert np.linalg.norm(shin - thigh) == pytest.approx(0.4, abs=0.001)
        assert np.linalg.norm(foot - shin) == pytest.approx(0.39)
        assert thigh[1] == pytest.approx(0.1 * left)
        assert float(model.body(f"{side}_thigh").mass[0]) == pytest.approx(
            capsule_kilograms(0.06, math.hypot(0.01, 0.34))
        )
    radii = model.geom_size[1:, 0]
    lowest = min(data.geom_xpos[1:, 2] - radii)
    highest = max(data.geom_xpos[1:, 2] + radii)
    assert lowest == pytest.approx(0.0, abs=0.005)
    assert highest == pytest.approx(1.56, abs=0.005)


# joint, part that moves, axis (x ahead, y left, z up), direction
DIRECTIONS = [
    *[(f"{side}_hip_y", f"{side}_foot", 0, 1.0) for side in ("right", "left")],
    *[(f"{side}_knee", f"{side}_foot", 0, -1.0) for side in ("right", "left")],
    ("right_hip_x", "right_foot", 1, -1.0),
    ("left_hip_x", "left_foot", 1, 1.0),
    *[(f"{side}_shoulder_y", f"{side}_lower_arm", 0, 1.0) for side in ("right", "left")],
    ("right_shoulder_x", "right_lower_arm", 1, -1.0),
    ("left_shoulder_x", "left_lower_arm", 1, 1.0),
    ("abdomen_y", "pelvis", 0, 1.0),
    ("abdomen_x", "pelvis", 1, 1.0),
]


@pytest.mark.parametrize(("joint", "part", "axis", "direction"), DIRECTIONS)
def test_positive_angles_move_parts_as_told(
    make: Make, joint: str, part: str, axis: int, direction: float
) -> None:
    model = make("humanoid", 1).model
    data = still(model)
    before = data.body(part).xpos[axis]
    data.joint(joint).qpos += 0.3
    mujoco.mj_forward(model, data)
    assert direction * (data.body(part).xpos[axis] - before) > 0.015


def test_human_reward_by_hand() -> None:
    values: dict[str, Tensor] = {
        "torso_velocity_w": torch.tensor([[1.5, 0.3, 0.0]]).expand(2, -1),
        "torso_upright": torch.tensor([0.95, 0.95]),
        "heading_w": torch.tensor([[0.6, 0.8]]).expand(2, -1),
        "joint_velocities": torch.tensor([[2.0, -4.0]]).expand(2, -1),
        "joint_limit_nearness": torch.tensor([[0.5, 1.0]]).expand(2, -1),
        "motor_strengths": torch.tensor([[1.0, 0.5]]).expand(2, -1),
        "actions": torch.tensor([[0.5, 1.0]]).expand(2, -1),
        "terminated": torch.tensor([0.0, 1.0]),
    }
    total, components = compute_reward("humanoid")(**values)
    expected = {
        "progress": 1.5,
        "heading": 0.5 * 0.6 / 0.8,
        "upright": 0.1,
        "alive": 2.0,
        "action_cost": -0.01 * (0.25 + 1.0),
        "electricity_cost": -0.05 * (0.5 * 0.2 * 1.0 + 1.0 * 0.4 * 0.5),
        "joint_limit_cost": -0.25 * 0.5,
        "death": 0.0,
    }
    assert {name: float(value[0]) for name, value in components.items()} == pytest.approx(expected)
    assert total.tolist() == pytest.approx([sum(expected.values()), -1.0])
