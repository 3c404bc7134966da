"""Quadcopter against the mechanics of a rigid body."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.vec_task import VecTask

Make = Callable[..., VecTask]

WEIGHT_PER_ROTOR = 9.81 / 4  # N, at 1 kg
ARM = 0.15  # m
INERTIA = np.array([0.02, 0.02, 0.035])  # kg·m²


def at_rest(environment: VecTask) -> None:
    environment.position[:] = torch.tensor([[0.0], [0.0], [50.0]])
    environment.goal[:] = environment.position
    environment.velocity.zero_()
    environment.angular_velocity.zero_()
    environment.orientation.zero_()
    environment.orientation[0] = 1.0


def rotation_matrix(quaternion: np.ndarray) -> np.ndarray:
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


@pytest.mark.parametrize(
    ("actions", "axis", "lever", "inertia"),
    [
        # rotors: front left, back left, back right, front right; x ahead, y left, so more thrust on
        # the left rolls to the right
        ((0.1, 0.1, -0.1, -0.1), 0, 4 * ARM, 0.02),
        # more thrust at the back pitches the nose down: positive about y
        ((-0.1, 0.1, 0.1, -0.1), 1, 4 * ARM, 0.02),
        # rotors on one diagonal turn the same way; drag is 0.05 N·m per N
        ((0.1, -0.1, 0.1, -0.1), 2, 4 * 0.05, 0.035),
    ],
)
def test_torque_turns_about_one_axis(
    make: Make, actions: tuple[float, ...], axis: int, lever: float, inertia: float
) -> None:
    environment = make("quadcopter", 1)
    at_rest(environment)
    for _ in range(10):
        values = environment.advance(torch.tensor([actions])).variables
    acceleration = lever * 0.1 * WEIGHT_PER_ROTOR / inertia
    expected_rate, angle = [0.0, 0.0, 0.0], 0.5 * acceleration * 0.2**2
    expected_rate[axis] = acceleration * 0.2
    assert values["angular_velocity_b"][0].tolist() == pytest.approx(expected_rate, abs=1e-4)
    expected = [math.cos(angle / 2), 0.0, 0.0, 0.0]
    expected[1 + axis] = math.sin(angle / 2)
    assert values["orientation_w"][0].tolist() == pytest.approx(expected, abs=1e-4)


def test_a_symmetric_top_precesses_and_keeps_its_angular_momentum(make: Make) -> None:
    environment = make("quadcopter", 1)
    at_rest(environment)
    environment.angular_velocity[:, 0] = torch.tensor([1.0, 0.0, 4.0])
    momentum = INERTIA * np.array([1.0, 0.0, 4.0])  # body and world frame coincide at first
    for _ in range(50):
        values = environment.advance(-torch.ones(1, 4)).variables
    # Euler: the transverse part turns with (Iz - Ix)/Ix · ωz = 0.75 · 4 = 3 rad/s; 1 s on
    rate = values["angular_velocity_b"][0].double().numpy()
    assert rate == pytest.approx([math.cos(3.0), math.sin(3.0), 4.0], abs=2e-3)
    orientation = values["orientation_w"][0].double().numpy()
    assert np.linalg.norm(orientation) == pytest.approx(1.0, abs=1e-6)
    assert rotation_matrix(orientation) @ (INERTIA * rate) == pytest.approx(momentum, abs=3e-4)


def test_observation_is_seen_from_the_body(make: Make) -> None:
    environment = make("quadcopter", 1)
    at_rest(environment)
    quaternion = np.array([0.5, 0.5, -0.1, 0.7])
    quaternion /= np.linalg.norm(quaternion)
    environment.orientation[:, 0] = torch.from_numpy(quaternion)
    environment.goal[:, 0] = torch.tensor([1.0, 2.0, 53.0])
    environment.compute_observations()
    matrix = rotation_matrix(quaternion)
    assert environment.obs_buf[0, 0:3].tolist() == pytest.approx(
        (matrix.T @ [1.0, 2.0, 3.0]).tolist(), abs=1e-5
    )
    assert environment.obs_buf[0, 6:9].tolist() == pytest.approx(matrix[2].tolist(), abs=1e-6)


def test_a_crash_is_never_better_than_to_stay_away(make: Make) -> None:
    """The fitness of `approach` is the negative mean distance over 10 s, of which an early end
    counts the rest with 4 m."""
    task = load_environment("quadcopter").task("approach")[1]
    scores = {}
    for thrust in (0.0, -1.0):
        environment = make("quadcopter", 1, task="approach")
        at_rest(environment)
        environment.position[2], environment.goal[2] = 2.0, 3.0
        total, steps, ended = 0.0, 0, False
        while not ended:
            transition = environment.advance(torch.full((1, 4), thrust))
            values = transition.variables
            total += task.fitness(
                values["goal_distance"], values["time_left"], values["terminated"]
            ).item()
            steps += 1
            ended = bool(transition.terminated | transition.truncated)
        scores[thrust] = (total, steps)
    assert scores[0.0] == (pytest.approx(-1.0, abs=1e-3), 500)
    # free fall from 2 m to 0.1 m takes 0.622 s, 32 steps of 0.02 s, at 1 + 9.81 t²/2 m from the
    # goal; 9.36 s are left
    fallen = sum(1.0 + 4.905 * (0.02 * step) ** 2 for step in range(1, 33)) * 0.002
    assert scores[-1.0] == (pytest.approx(-fallen - 0.4 * 9.36, abs=0.01), 32)
