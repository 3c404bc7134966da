"""Hopper and ant against MuJoCo stepping one simulation, and against what their variables' docs
say."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from eureka_agent.simulation.loading import load_environment

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


def test_positive_ant_hips_swing_feet_forward_and_knees_push_them_down(make: Make) -> None:
    model = make("ant", 1).model
    for leg in ("front_left", "back_left", "back_right", "front_right"):
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        before = data.site(f"{leg}_foot").xpos.copy()
        data.joint(f"{leg}_hip").qpos += 0.2
        mujoco.mj_forward(model, data)
        assert data.site(f"{leg}_foot").xpos[0] > before[0] + 0.02
        data.joint(f"{leg}_hip").qpos -= 0.2
        data.joint(f"{leg}_knee").qpos += 0.2
        mujoco.mj_forward(model, data)
        assert data.site(f"{leg}_foot").xpos[2] < before[2] - 0.02


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


def test_ant_ends_low_and_tipped_over(make: Make) -> None:
    environment = make("ant", 3)
    environment.qpos[2, 3:7] = torch.tensor([0.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    environment.qpos[2, 2] = 1.0
    transition = environment.advance(torch.zeros(3, 8))
    assert transition.causes["tipped_over"].tolist() == [False, False, True]
    # the legs would push a torso set down on the ground up again within the step
    environment.joint_positions[1, 2] = 0.25
    causes = environment.compute_termination()
    assert causes["torso_too_low"].tolist() == [False, True, False]


def test_hopper_stands_at_its_height_and_pitch_is_positive_forward(make: Make) -> None:
    environment = make("hopper", 2)
    environment.qpos[1, 2] = 0.7
    data = single(environment, 1)
    # the torso's upper end moves ahead of its centre
    assert data.body("torso").xmat.reshape(3, 3)[0, 2] == pytest.approx(math.sin(0.7))
    transition = environment.advance(torch.zeros(2, 3))
    assert float(transition.variables["torso_height"][0]) == pytest.approx(1.25, abs=0.02)
    assert transition.causes["tipped_over"].tolist() == [False, True]
    assert float(environment.model.body_mass.sum()) == pytest.approx(16.0, abs=0.3)


@pytest.mark.parametrize("name", ["hopper", "ant"])
def test_fitness_sums_to_the_distance_travelled(make: Make, name: str) -> None:
    environment = make(name, 8)
    fitness = load_environment(name).task("run")[1].fitness
    start = environment.read_variables()["torso_position_w"].clone()
    previous, total = start, torch.zeros(8)
    generator = torch.Generator().manual_seed(1)
    for _ in range(12):
        position = (
            environment.advance(torch.randn(8, environment.num_actions, generator=generator))
            .variables["torso_position_w"]
            .clone()
        )
        total += fitness(torso_position_w=position, previous_torso_position_w=previous)
        previous = position
    assert total.tolist() == pytest.approx((previous - start)[:, 0].tolist(), abs=1e-5)
    assert float(total.abs().max()) > 0.001


@pytest.mark.parametrize("name", ["hopper", "ant"])
def test_a_row_whose_physics_breaks_ends_alone(make: Make, name: str) -> None:
    healthy, broken = make(name, 4), make(name, 4)
    actions = torch.zeros(4, healthy.num_actions)
    broken.qvel[2, 0] = math.nan
    expected, found = healthy.advance(actions), broken.advance(actions)
    assert found.causes["unstable_physics"].tolist() == [False, False, True, False]
    assert found.terminated.tolist() == [False, False, True, False]
    others = [0, 1, 3]
    for variable, value in found.variables.items():
        assert bool(torch.isfinite(value).all()), variable
        assert torch.equal(value[others], expected.variables[variable][others]), variable
    broken.reset_done()
    assert broken.advance(actions).terminated.tolist() == [False] * 4
    assert np.isfinite(broken.qpos.numpy()).all()
