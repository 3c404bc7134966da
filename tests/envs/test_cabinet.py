"""The arm against the Panda's published kinematics, and a drawer that opens where it is pulled."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from by_hand import compute_reward, looked_at
from torch import Tensor

Make = Callable[..., Any]

BEFORE = [2.013, -1.441, -0.652, -1.943, -2.227, 1.892, -0.024]
"""Joints with the gripper 0.1 m before the handle, pointing at it, the left finger above."""
PATH = (
    [2.195, -1.392, -0.770, -1.642, -2.320, 2.036, -0.100],
    [2.053, -1.431, -0.683, -1.881, -2.254, 1.923, -0.039],
    [1.898, -1.484, -0.511, -2.147, -2.115, 1.765, 0.017],
    [1.801, -1.520, -0.291, -2.317, -1.928, 1.613, 0.053],
    [1.754, -1.516, -0.084, -2.373, -1.750, 1.491, 0.075],
)
"""With it at the handle, and where the handle comes to as the drawer opens."""


def put(environment: Any, joints: list[float] | np.ndarray, fingers: float = 0.04) -> None:
    """Set all rows' joints and targets, at rest."""
    state = torch.tensor([*joints, fingers, fingers])
    environment.qpos[:, 0:9], environment.targets[:] = state, state
    environment.qvel.zero_()
    looked_at(environment)


def drive(environment: Any, joints: list[float], fingers: float, steps: int) -> Any:
    """Move the targets evenly to these, by actions."""
    goal = torch.tensor([[*joints, fingers, fingers]])
    # an action of 1 moves a joint's target by 0.06 rad, a finger's by 0.006 m
    scale = torch.tensor([[0.06] * 7 + [0.006] * 2])
    for left in range(steps, 0, -1):
        transition = environment.advance((goal - environment.targets) / left / scale)
    return transition.variables


def panda(joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Position of the point between the pads and orientation of the hand, from the published
    (modified) Denavit-Hartenberg parameters a, d, alpha; the hand is turned by -45 degrees."""
    quarter = math.pi / 2.0
    rows = (
        (0.0, 0.333, 0.0),
        (0.0, 0.0, -quarter),
        (0.0, 0.316, quarter),
        (0.0825, 0.0, quarter),
        (-0.0825, 0.384, -quarter),
        (0.0, 0.0, quarter),
        (0.088, 0.0, quarter),
        (0.0, 0.107 + 0.0984, 0.0),
    )
    pose = np.eye(4)
    for (a, d, alpha), theta in zip(rows, (*joints, -math.pi / 4.0), strict=True):
        ca, sa, ct, st = math.cos(alpha), math.sin(alpha), math.cos(theta), math.sin(theta)
        pose = pose @ np.array(
            [
                [ct, -st, 0.0, a],
                [st * ca, ct * ca, -sa, -d * sa],
                [st * sa, ct * sa, ca, d * ca],
                [0.0, 0.0, 0.0, 1.0],
            ]
        )
    return pose[:3, 3], pose[:3, :3]


def test_gripper_is_where_the_published_parameters_put_it(make: Make) -> None:
    environment = make("cabinet", 1)
    generator = np.random.default_rng(0)
    lower, upper = environment.drives.lower[:7].numpy(), environment.drives.upper[:7].numpy()
    for _ in range(5):
        joints = generator.uniform(lower, upper)
        put(environment, joints, fingers=0.03)
        values = environment.read_variables()
        position, rotation = panda(joints)
        found = {name: values[name][0].numpy() for name in values}
        np.testing.assert_allclose(found["grip_position_w"], position, atol=1e-4)
        np.testing.assert_allclose(found["grip_forward_w"], rotation[:, 2], atol=1e-4)
        np.testing.assert_allclose(found["grip_up_w"], rotation[:, 1], atol=1e-4)
        root = position - 0.04 * rotation[:, 2]
        for name, side in (("left", 1.0), ("right", -1.0)):
            expected = root + side * 0.03 * rotation[:, 1]
            np.testing.assert_allclose(found[f"{name}_finger_position_w"], expected, atol=1e-4)


def test_closed_fingers_pull_the_drawer_open_and_open_ones_do_not(make: Make) -> None:
    openings = {}
    for fingers in (0.0, 0.04):
        environment = make("cabinet", 1)
        put(environment, BEFORE)
        drive(environment, PATH[0], 0.04, 50)
        values = drive(environment, PATH[0], 0.04, 40)
        assert values["handle_distance"].item() < 0.01
        assert values["fingers_around_handle"].item() == 1.0
        assert values["fingers_touching"].tolist() == [[0.0, 0.0]]
        values = drive(environment, PATH[0], fingers, 30)
        assert values["fingers_touching"].tolist() == [[float(fingers == 0.0)] * 2]
        for joints in PATH[1:]:
            drive(environment, joints, fingers, 45)
        values = drive(environment, PATH[-1], fingers, 40)
        openings[fingers] = values["drawer_opening"].item()
        # the handle moves towards the robot as the drawer opens
        assert values["handle_position_w"][0, 0].item() == pytest.approx(
            0.65 - openings[fingers], abs=1e-4
        )
    assert openings[0.0] > 0.38
    assert abs(openings[0.04]) < 0.005


def reward_of(values: dict[str, Tensor]) -> dict[str, float]:
    total, components = compute_reward("cabinet")(**values)
    assert total.item() == pytest.approx(sum(each.item() for each in components.values()))
    return {name: each.item() for name, each in components.items()}


def test_human_reward_has_the_weights_of_its_source() -> None:
    """The gripper tilted by 60 degrees, 0.5 m before a drawer that is open by 0.3 m."""
    values = {
        "handle_distance": torch.tensor([0.5]),
        "grip_forward_w": torch.tensor([[0.5, 0.75**0.5, 0.0]]),
        "grip_up_w": torch.tensor([[0.0, 0.0, -1.0]]),
        "left_finger_position_w": torch.tensor([[0.2, 0.0, 0.83]]),
        "right_finger_position_w": torch.tensor([[0.2, 0.0, 0.79]]),
        "handle_position_w": torch.tensor([[0.35, 0.0, 0.8]]),
        "fingers_around_handle": torch.tensor([1.0]),
        "drawer_opening": torch.tensor([0.3]),
        "actions": torch.ones(1, 9),
    }
    components = reward_of(values)
    assert components == pytest.approx(
        {
            "near": 2.0 / 1.25**2,
            "turned": 0.5 * 0.5 * (0.25 - 1.0),
            "around": 0.25 * 0.5,
            "closed": 5.0 * (0.01 + 0.03),
            "open": 7.5 * (0.3 * 0.5 + 0.3),
            "stages": 0.5 + 0.5,
            "action_cost": -0.09,
            "bad_style": 0.0,
        },
        abs=1e-6,
    )
    beyond = {**values, "left_finger_position_w": torch.tensor([[0.4, 0.0, 0.83]])}
    components = reward_of(beyond)
    assert components.pop("bad_style") == -1.0
    assert set(components.values()) == {0.0}
