"""Hopper and ant against MuJoCo stepping one simulation, and against what their variables' docs
say."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mujoco
import pytest
import torch

Make = Callable[..., Any]


def single(environment: Any, row: int) -> mujoco.MjData:
    """A MuJoCo simulation of its own in the state of a row."""
    data = mujoco.MjData(environment.model)
    data.qpos[:], data.qvel[:] = environment.qpos[row].numpy(), environment.qvel[row].numpy()
    mujoco.mj_forward(environment.model, data)
    return data


@pytest.mark.parametrize("name", ["hopper", "ant"])
def test_trajectory_is_that_of_a_single_mujoco_simulation(make: Make, name: str) -> None:
    environment = make(name, 4)
    data = single(environment, 2)
    actions = torch.randn(
        20, 4, environment.num_actions, generator=torch.Generator().manual_seed(0)
    )
    for step in actions:
        values = environment.advance(step).variables
        data.ctrl[:] = step[2].clamp(-1, 1).numpy()
        mujoco.mj_step(environment.model, data, nstep=2)
    assert environment.qpos[2].numpy() == pytest.approx(data.qpos, abs=1e-6)
    assert environment.qvel[2].numpy() == pytest.approx(data.qvel, abs=1e-5)
    # sensors describe the state reached, not the one a substep before it
    mujoco.mj_forward(environment.model, data)
    for sensor in ("foot_velocity", "torso_velocity_b"):
        if sensor in environment.sensors:
            assert environment.sensors[sensor][2].tolist() == pytest.approx(
                data.sensor(sensor).data.tolist(), abs=1e-4
            )
    assert float(values["torso_height"][2]) == pytest.approx(
        data.qpos[1 if name == "hopper" else 2], abs=1e-5
    )


@pytest.mark.parametrize("name", ["cartpole", "quadcopter", "hopper", "ant"])
def test_a_row_is_bitwise_the_same_alone_and_among_others(make: Make, name: str) -> None:
    alone, among = make(name, 1, seed=1), make(name, 16, seed=2)
    row, resets = 11, 0
    alone.seed_rows(torch.tensor([0]), torch.tensor([9]))
    among.seed_rows(torch.tensor([row]), torch.tensor([9]))
    # rows end at different times: some are reset in nearly every step
    among.progress_buf[:] = torch.arange(16)
    alone.max_episode_length = among.max_episode_length = 23
    alone.reset()
    among.reset_rows(torch.tensor([row]))
    actions = torch.randn(80, 16, alone.num_actions, generator=torch.Generator().manual_seed(0))
    for step in actions:
        one, other = alone.advance(step[row : row + 1]), among.advance(step)
        for variable, value in one.variables.items():
            assert torch.equal(value[0], other.variables[variable][row]), variable
        assert torch.equal(one.observations[0], other.observations[row])
        assert one.truncated[0] == other.truncated[row]
        resets += int(alone.reset_buf[0])
        assert torch.equal(alone.reset_done()[0], among.reset_done()[row])
    assert resets >= 3


def test_ant_at_rest_carries_its_weight_on_four_feet(make: Make) -> None:
    environment = make("ant", 1)
    for _ in range(150):
        values = environment.advance(torch.zeros(1, 8)).variables
    forces = values["foot_contact_forces"][0]
    mass = float(environment.model.body_mass.sum())
    assert mass == pytest.approx(9.0, abs=0.2)
    assert float(forces.sum()) == pytest.approx(9.81 * mass, rel=0.02)
    assert values["feet_in_contact"][0].tolist() == [1.0] * 4
    assert float(values["torso_height"][0]) == pytest.approx(0.56, abs=0.02)
    assert float(values["torso_upright"][0]) > 0.95


def test_ant_directions_follow_its_orientation(make: Make) -> None:
    environment = make("ant", 1)
    # 90° to the left about z, moving along world y: that is ahead in the body's frame
    environment.qpos[0, 3:7] = torch.tensor(
        [math.cos(math.pi / 4), 0.0, 0.0, math.sin(math.pi / 4)], dtype=torch.float64
    )
    environment.qpos[0, 2] = 2.0
    environment.qvel[0] = 0.0
    environment.qvel[0, 1] = 1.5
    values = environment.advance(torch.zeros(1, 8)).variables
    assert values["heading_w"][0].tolist() == pytest.approx([0.0, 1.0], abs=0.02)
    assert float(values["heading_angle"][0]) == pytest.approx(math.pi / 2, abs=0.02)
    assert values["torso_velocity_b"][0, :2].tolist() == pytest.approx([1.5, 0.0], abs=0.05)
    assert values["torso_velocity_w"][0, :2].tolist() == pytest.approx([0.0, 1.5], abs=0.05)
