"""The quadruped against Unitree's numbers for its Go1, numpy and MuJoCo, and its tracking error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from by_hand import fitness_of, looked_at
from torch import Tensor

Make = Callable[..., Any]
LEGS = ("front_left", "front_right", "back_left", "back_right")


def put(environment: Any, qpos: np.ndarray, qvel: np.ndarray) -> None:
    """Set the state of all rows without a step."""
    environment.qpos[:], environment.qvel[:] = torch.from_numpy(qpos), torch.from_numpy(qvel)
    looked_at(environment)


def step_values(
    commanded: list[float], reached: list[float], time_left: float, terminated: float
) -> dict[str, Tensor]:
    """Variables of a step of one row; velocities are ahead, left and turn."""
    return {
        "commanded_velocity_b": torch.tensor([commanded[:2]]),
        "commanded_yaw_rate": torch.tensor(commanded[2:]),
        "torso_velocity_b": torch.tensor([[*reached[:2], 9.0]]),
        "torso_angular_velocity_b": torch.tensor([[9.0, 9.0, reached[2]]]),
        "time_left": torch.tensor([time_left]),
        "terminated": torch.tensor([terminated]),
    }


def test_masses_and_lengths_are_those_of_a_go1(make: Make) -> None:
    model = make("quadruped", 1).model
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert float(model.body("torso").mass[0]) == pytest.approx(5.204)
    for leg in LEGS:
        hip, thigh, calf = (data.body(f"{leg}_{part}").xpos for part in ("hip", "thigh", "calf"))
        foot = data.site(f"{leg}_foot").xpos
        ahead, left = 1.0 if "front" in leg else -1.0, 1.0 if "left" in leg else -1.0
        assert (hip - data.body("torso").xpos).tolist() == pytest.approx(
            [0.1881 * ahead, 0.04675 * left, 0.0]
        )
        assert (thigh - hip).tolist() == pytest.approx([0.0, 0.08 * left, 0.0])
        assert [np.linalg.norm(calf - thigh), np.linalg.norm(foot - calf)] == pytest.approx(
            [0.213, 0.213]
        )
        masses = [float(model.body(f"{leg}_{part}").mass[0]) for part in ("hip", "thigh", "calf")]
        assert masses == pytest.approx([0.68, 1.009, 0.196 + 0.06])
        for part, limits, torque in (
            ("hip", (-0.863, 0.863), 23.7),
            ("thigh", (-0.686, 4.501), 23.7),
            ("calf", (-2.818, -0.888), 35.55),
        ):
            assert model.joint(f"{leg}_{part}").range.tolist() == pytest.approx(limits)
            assert model.actuator(f"{leg}_{part}").forcerange.tolist() == [-torque, torque]


def test_stands_still_without_an_action(make: Make) -> None:
    environment = make("quadruped", 2)
    for _ in range(200):
        transition = environment.advance(torch.zeros(2, 12))
        assert not bool(transition.terminated.any())
    values = transition.variables
    assert float(values["torso_height"][0]) == pytest.approx(0.265, abs=0.01)
    assert float(values["torso_upright"][0]) > 0.99
    assert float(values["torso_velocity_b"].abs().max()) < 0.01
    weight = 9.81 * (5.204 + 4 * (0.68 + 1.009 + 0.196 + 0.06))
    assert float(values["foot_contact_forces"][0].sum()) == pytest.approx(weight, rel=0.01)
    assert values["foot_air_times"][0].tolist() == [0.0] * 4
    # motors hold a posture below their targets by torque / 60 N·m/rad
    sag = values["joint_target_offsets"] - values["joint_offsets"]
    assert values["joint_torques"][0].tolist() == pytest.approx((60.0 * sag[0]).tolist(), abs=0.05)


def test_velocities_and_errors_are_in_the_torsos_own_frame(make: Make) -> None:
    environment = make("quadruped", 1)
    generator = np.random.default_rng(0)
    for _ in range(5):
        turn = generator.normal(size=4)
        turn /= np.linalg.norm(turn)
        rotation = np.zeros(9)
        mujoco.mju_quat2Mat(rotation, turn)
        to_body = rotation.reshape(3, 3).T
        velocity_w, rate_b = generator.normal(size=3), generator.normal(size=3)
        qpos = np.concatenate(([0.0, 0.0, 1.0], turn, np.tile([0.0, 0.9, -1.8], 4)))
        put(environment, qpos, np.concatenate((velocity_w, rate_b, np.zeros(12))))
        values = environment.read_variables()
        velocity_b = to_body @ velocity_w
        assert values["torso_velocity_b"][0].tolist() == pytest.approx(velocity_b, abs=1e-5)
        assert values["gravity_direction_b"][0].tolist() == pytest.approx(
            to_body @ [0.0, 0.0, -1.0], abs=1e-5
        )
        ahead, left, yaw_rate = environment.commands[0].tolist()
        error = (velocity_b[0] - ahead) ** 2 + (velocity_b[1] - left) ** 2
        error += (rate_b[2] - yaw_rate) ** 2
        assert float(fitness_of("quadruped", "follow", values)[0]) == pytest.approx(
            -0.02 * error / 10.0, rel=1e-4
        )


def test_a_fall_counts_the_rest_of_the_episode_as_worse_than_standing() -> None:
    command = [0.6, 0.0, 0.8]  # 0.36 + 0.64: standing still has an error of 1
    standing = 500 * float(
        fitness_of("quadruped", "follow", step_values(command, [0.0, 0.0, 0.0], 3.0, 0.0))[0]
    )
    assert standing == pytest.approx(-1.0)
    # perfect for 4 s, and then a fall, which counts 6 s with an error of 2
    fall = float(fitness_of("quadruped", "follow", step_values(command, command, 6.0, 1.0))[0])
    assert fall == pytest.approx(-6.0 * 2.0 / 10.0)
    assert fall < standing
    at_the_end = float(
        fitness_of("quadruped", "follow", step_values(command, command, 0.0, 1.0))[0]
    )
    assert at_the_end == pytest.approx(0.0)


def test_commands_are_constant_in_an_episode_and_drawn_evenly(make: Make) -> None:
    environment = make("quadruped", 400)
    first = environment.commands.clone()
    widest = np.array([1.0, 0.5, 1.0])
    assert first.abs().amax(dim=0).tolist() == pytest.approx(widest, rel=0.03)
    assert first.abs().mean(dim=0).tolist() == pytest.approx(widest / 2.0, rel=0.15)
    environment.advance(torch.zeros(400, 12))
    assert torch.equal(environment.commands, first)
    environment.reset_rows(torch.tensor([7]))
    assert (environment.commands != first).any(dim=1).nonzero().flatten().tolist() == [7]
