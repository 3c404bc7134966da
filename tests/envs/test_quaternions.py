"""Quaternions in torch against MuJoCo's own, and the angles of rotations that are known."""

from __future__ import annotations

import importlib
import math
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from eureka_agent.resources import resource_folder
from eureka_agent.simulation.user_modules import import_folder

# of the files that the environments share
quaternions: Any = importlib.import_module(
    f"{import_folder(resource_folder('envs') / 'allegro_hand')}.quaternions"
)


def random_pairs(count: int) -> tuple[np.ndarray, ...]:
    generator = np.random.default_rng(0)
    first, second = generator.normal(size=(2, count, 4))
    return tuple(each / np.linalg.norm(each, axis=1, keepdims=True) for each in (first, second))


def test_products_and_rotated_vectors_are_those_of_mujoco() -> None:
    left, right = random_pairs(20)
    vectors = np.random.default_rng(1).normal(size=(20, 3))
    products = quaternions.multiply(torch.from_numpy(left), torch.from_numpy(right))
    rotated = quaternions.rotate(torch.from_numpy(left), torch.from_numpy(vectors))
    expected_product, expected_vector = np.zeros(4), np.zeros(3)
    for row in range(20):
        mujoco.mju_mulQuat(expected_product, left[row], right[row])
        mujoco.mju_rotVecQuat(expected_vector, vectors[row], left[row])
        assert products[row].tolist() == pytest.approx(expected_product)
        assert rotated[row].tolist() == pytest.approx(expected_vector)


def test_rotation_vectors_and_angles_take_the_shorter_way() -> None:
    left, _ = random_pairs(20)
    expected = np.zeros(3)
    for quaternion in (*left, -left[0], np.array([1.0, 0.0, 0.0, 0.0])):
        mujoco.mju_quat2Vel(expected, quaternion, 1.0)
        found = torch.from_numpy(quaternion)
        assert quaternions.to_rotation_vector(found).tolist() == pytest.approx(expected, abs=1e-9)
        angle = float(quaternions.angle(found))
        assert angle == pytest.approx(np.linalg.norm(expected), abs=1e-9)
        assert angle <= math.pi


def test_the_part_about_z_is_left_by_a_tilt() -> None:
    turns = torch.tensor([-3.0, -0.5, 0.0, 0.4, 3.0])
    tilt = torch.tensor([math.cos(0.3), math.sin(0.3), 0.0, 0.0])
    for rotation in (quaternions.about_z(turns), -quaternions.about_z(turns)):
        tilted = quaternions.multiply(rotation, tilt)
        assert quaternions.angle_about_z(tilted).tolist() == pytest.approx(turns.tolist(), abs=1e-6)


def test_uniform_rotations_take_an_axis_everywhere_alike() -> None:
    numbers = torch.rand(20_000, 3, generator=torch.Generator().manual_seed(0))
    rotations = quaternions.uniform(numbers)
    assert rotations.norm(dim=-1).sub(1.0).abs().max() < 1e-5
    up = quaternions.rotate(rotations, torch.tensor([0.0, 0.0, 1.0]))
    # uniform on the sphere: each coordinate is uniform in [-1, 1], whose deviation is 1/sqrt(3)
    assert up.mean(dim=0).abs().max() < 0.02
    assert up.std(dim=0).tolist() == pytest.approx([3.0**-0.5] * 3, rel=0.02)
    # the angle's density is (1 - cos a)/pi, so its mean is pi/2 + 2/pi
    assert float(quaternions.angle(rotations).mean()) == pytest.approx(
        math.pi / 2.0 + 2.0 / math.pi, abs=0.02
    )
