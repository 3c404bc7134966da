"""Isaac Gym's helper functions, against rotation matrices that numpy calculates from their
definitions, for both orders of a quaternion."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from eureka_agent.reward_names import HELPER_NAMES, is_helper_module
from eureka_agent.task import QuaternionOrder
from eureka_agent.training.compiled_reward import helpers

Array = NDArray[np.float64]
Helpers = dict[str, Callable[..., Any]]
ROWS = 64


def of_axis(axis: Array, angle: float) -> Array:
    """Rotation matrix by Rodrigues' formula."""
    x, y, z = axis / np.linalg.norm(axis)
    turn = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * turn + (1.0 - np.cos(angle)) * (turn @ turn)


class Rotations:
    """Random rotations as axis and angle, as matrices, and as quaternions in an order."""

    def __init__(self, order: QuaternionOrder, seed: int) -> None:
        random = np.random.default_rng(seed)
        axes = random.normal(size=(ROWS, 3))
        self.angles = random.uniform(0.1, 3.0, size=ROWS)
        self.matrices = np.stack([of_axis(*pair) for pair in zip(axes, self.angles, strict=True)])
        self.axes = axes / np.linalg.norm(axes, axis=1, keepdims=True)
        w, v = np.cos(self.angles / 2)[:, None], np.sin(self.angles / 2)[:, None] * self.axes
        self.q = torch.tensor(np.concatenate([w, v] if order == "wxyz" else [v, w], axis=1))


def vectors(seed: int) -> Array:
    return np.random.default_rng(100 + seed).normal(size=(ROWS, 3))


def rotated(matrices: Array, v: Array) -> Array:
    return np.einsum("nij,nj->ni", matrices, v)


def assert_close(actual: Tensor, expected: Array) -> None:
    np.testing.assert_allclose(actual.numpy(), expected, atol=1e-9)


def matrix_of(function: Helpers, q: Tensor) -> Tensor:
    """The matrix that `quat_axis`, itself compared with numpy below, makes of a quaternion."""
    return torch.stack([function["quat_axis"](q, axis) for axis in range(3)], dim=-1)


@pytest.mark.parametrize("order", ["wxyz", "xyzw"])
def test_rotations_are_those_of_the_matrices(order: QuaternionOrder) -> None:
    function, a, b, v = helpers(order), Rotations(order, 1), Rotations(order, 2), vectors(1)
    given, transposed = torch.tensor(v), a.matrices.transpose(0, 2, 1)
    for name in ("quat_apply", "quat_rotate", "tf_vector"):
        assert_close(function[name](a.q, given), rotated(a.matrices, v))
    back = rotated(transposed, v)
    assert_close(function["quat_rotate_inverse"](a.q, given), back)
    assert_close(function["quat_apply"](function["quat_conjugate"](a.q), given), back)
    assert_close(matrix_of(function, a.q), a.matrices)
    product = function["quat_mul"](a.q, b.q)
    assert_close(matrix_of(function, product), a.matrices @ b.matrices)
    traces = np.trace(b.matrices @ transposed, axis1=1, axis2=2)
    assert_close(function["quat_diff_rad"](a.q, b.q), np.arccos((traces - 1.0) / 2.0))
    assert_close(function["quat_unit"](3.0 * a.q), a.q.numpy())
    found = function["quat_from_angle_axis"](torch.tensor(a.angles), torch.tensor(2.0 * a.axes))
    assert_close(found, a.q.numpy())
    angle, axis = function["quat_to_angle_axis"](a.q)
    assert_close(angle, a.angles)
    assert_close(axis, a.axes)
    # a rotation matrix of roll, pitch and yaw has these entries
    roll, pitch, yaw = function["get_euler_xyz"](a.q)
    assert_close(roll, np.arctan2(a.matrices[:, 2, 1], a.matrices[:, 2, 2]) % (2 * np.pi))
    assert_close(pitch, -np.arcsin(a.matrices[:, 2, 0]) % (2 * np.pi))
    assert_close(yaw, np.arctan2(a.matrices[:, 1, 0], a.matrices[:, 0, 0]) % (2 * np.pi))


@pytest.mark.parametrize("order", ["wxyz", "xyzw"])
def test_heading_and_up_vector_of_a_torso(order: QuaternionOrder) -> None:
    function, a, start, way = helpers(order), Rotations(order, 1), Rotations(order, 2), vectors(2)
    ahead, upwards = (torch.eye(3, dtype=torch.float64)[each].expand(ROWS, 3) for each in (0, 2))
    turned = a.matrices @ start.matrices
    given = a.q, start.q, torch.tensor(way), ahead, upwards, 2
    rotation, up, heading, up_vector, heading_vector = function["compute_heading_and_up"](*given)
    assert_close(matrix_of(function, rotation), turned)
    assert_close(up, turned[:, 2, 2])
    assert_close(heading, (turned[:, :, 0] * way).sum(axis=1) / np.linalg.norm(way, axis=1))
    assert_close(up_vector, turned[:, :, 2])
    assert_close(heading_vector, turned[:, :, 0])


def test_ranges_and_angles() -> None:
    function = helpers("wxyz")
    x = torch.tensor([[-1.0, 0.0], [0.5, 2.0]])
    lower, upper = torch.tensor([-2.0, 0.0]), torch.tensor([2.0, 10.0])
    # -1 is the lower end, 0 the middle, 1 the upper end
    assert function["scale"](x, lower, upper).tolist() == [[-2.0, 5.0], [1.0, 15.0]]
    assert function["scale"](x, -4.0, 4.0).tolist() == [[-4.0, 0.0], [2.0, 8.0]]
    expected = torch.tensor([[-0.5, -1.0], [0.25, -0.6]])
    torch.testing.assert_close(function["unscale"](x, lower, upper), expected)
    assert function["tensor_clamp"](x, -0.5, 1.0).tolist() == [[-0.5, 0.0], [0.5, 1.0]]
    clamped = function["tensor_clamp"](x, torch.tensor([-0.5, 1.0]), upper)
    assert clamped.tolist() == [[-0.5, 1.0], [0.5, 2.0]]
    normalized = function["normalize"](torch.tensor([[3.0, 4.0]]))
    torch.testing.assert_close(normalized, torch.tensor([[0.6, 0.8]]))
    angles = function["normalize_angle"](torch.tensor([0.5, 0.5 + 4 * np.pi, 3.5]))
    assert angles.tolist() == pytest.approx([0.5, 0.5, 3.5 - 2 * np.pi], abs=1e-5)


QUATERNIONS = ("q", "torso_rotation", "inv_start_rot")


def special(name: str, helper: str, lead: tuple[int, ...]) -> list[Any]:
    """Values of one argument that a division, root or arcus function may stumble over."""
    numbers = {"up_idx": 2, "eps": 1e-9, "axis": 0 if helper == "quat_axis" else None}
    if numbers.get(name) is not None:
        return [numbers[name]]
    if name == "angle":
        return [torch.zeros(lead), torch.full(lead, torch.pi)]
    first = name in ("a", *QUATERNIONS) and helper.startswith(("quat_", "get_", "tf_", "compute"))
    if first or (name == "b" and helper != "quat_apply"):
        # the zero, unit ones along each axis, and some that rounding has made longer than 1
        return [torch.zeros(*lead, 4), *(row.expand(*lead, 4) for row in torch.eye(4))] + [
            scale * torch.ones(*lead, 4) for scale in (-0.5, 0.50001, 2.0)
        ]
    return [torch.zeros(*lead, 3), 1e3 * torch.ones(*lead, 3)]


@pytest.mark.parametrize("order", ["wxyz", "xyzw"])
@pytest.mark.parametrize("lead", [(), (2, 5)])
def test_all_of_them_are_finite_for_any_leading_dimensions(
    order: QuaternionOrder, lead: tuple[int, ...]
) -> None:
    for helper, function in helpers(order).items():
        columns = [special(name, helper, lead) for name in inspect.signature(function).parameters]
        for index in range(max(map(len, columns))):
            given = [column[index % len(column)] for column in columns]
            result = function(*given)
            for value in result if isinstance(result, tuple) else (result,):
                assert value.isfinite().all(), (helper, given)
                assert value.shape[: len(lead)] == lead, (helper, value.shape)


def test_the_names_are_the_functions_and_the_modules_those_of_published_rewards() -> None:
    assert tuple(helpers("wxyz")) == HELPER_NAMES == tuple(sorted(HELPER_NAMES))
    modules = ("isaacgym.torch_utils", "utils.torch_jit_utils", "isaacgymenvs.utils.torch_utils")
    assert all(map(is_helper_module, modules))
    assert not is_helper_module("torch.utils")
    assert not is_helper_module(None)
