"""The ball on the tray against the mechanics of a rolling sphere and of a plate on three legs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from by_hand import looked_at

GRAVITY = 9.81
TRAY = 100.0 * math.pi * 0.5**2 * 0.02
BALL = 200.0 * 4.0 / 3.0 * math.pi * 0.1**3
Make = Callable[..., Any]


def put_ball(environment: Any, x: float, y: float) -> None:
    """At rest on the level tray, in all rows."""
    environment.qpos[:, 3:6] = torch.tensor([x, y, 0.71])
    environment.qvel.zero_()
    looked_at(environment)


def advance(environment: Any, actions: list[float], steps: int) -> Any:
    for _ in range(steps):
        transition = environment.advance(torch.tensor([actions] * environment.num_envs))
    return transition.variables


def test_legs_carry_the_weight_at_each_place_of_the_ball(make: Make) -> None:
    """The forces balance the weights and their moments about x and y."""
    environment = make("ball_balance", 1)
    angles = np.array([0.0, 2.0, 4.0]) * math.pi / 3.0
    arms = np.stack((np.ones(3), 0.4 * np.cos(angles), 0.4 * np.sin(angles)))
    for x, y in ((0.0, 0.0), (0.0, 0.2)):
        put_ball(environment, x, y)
        values = advance(environment, [0.0, 0.0, 0.0], 25)
        x, y, _ = values["ball_position_w"][0].tolist()  # it has rolled a little
        load = GRAVITY * np.array([TRAY + BALL, BALL * x, BALL * y])
        forces = np.linalg.solve(arms, load)
        assert values["leg_forces"][0].tolist() == pytest.approx(forces.tolist(), rel=0.05)
    assert values["leg_forces"][0, 1] > 1.5 * values["leg_forces"][0, 2]


@pytest.mark.parametrize("leg", [0, 1, 2])
def test_ball_rolls_away_from_a_longer_leg(make: Make, leg: int) -> None:
    """With 5/7 of the acceleration of a point that slides down a plane without friction."""
    environment = make("ball_balance", 1)
    put_ball(environment, 0.0, 0.0)
    actions = [-0.5, -0.5, -0.5]
    actions[leg] = 1.0
    values = advance(environment, actions, 2)
    assert values["leg_targets"][0, leg] == pytest.approx(0.04)
    start = advance(environment, [0.0, 0.0, 0.0], 10)["ball_velocity_w"][0].clone()
    values = advance(environment, [0.0, 0.0, 0.0], 10)
    gain = values["ball_velocity_w"][0] - start
    # 0.06 m higher than the two others, which are 0.6 m away
    tilt = math.atan(0.06 / 0.6)
    expected = 5.0 / 7.0 * GRAVITY * math.sin(tilt) * math.cos(tilt) * 0.2
    angle = 2.0 * math.pi / 3.0 * leg
    away = torch.tensor([-math.cos(angle), -math.sin(angle)])
    assert (gain[0:2] * away).sum().item() == pytest.approx(expected, rel=0.08)
    assert gain[0:2].norm().item() == pytest.approx(expected, rel=0.08)
    tilted = values["tray_up_w"][0, 0:2]
    assert (tilted * away).sum().item() == pytest.approx(math.sin(tilt), rel=0.08)
