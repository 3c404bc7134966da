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

from eureka_agent.helper_names import HELPER_NAMES, is_helper_module
from eureka_agent.task import QuaternionOrder
from eureka_agent.training.reward_code import helpers

Array = NDArray[np.float64]
ROWS = 64


def of_axis(axis: Array, angle: float) -> Array:
    """Rotation matrix by Rodrigues' formula."""
    x, y, z = axis / np.linalg.norm(axis)
    turn = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * turn + (1.0 - np.cos(angle)) * (turn @ turn)


class Rotations:
    """Random rotations as axis and angle, as matrices, and as quaternions in one of the two
    orders."""

    def __init__(self, order: QuaternionOrder, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.axes = random.normal(size=(ROWS, 3))
        self.angles = random.uniform(0.1, 3.0, size=ROWS)
        self.matrices = np.stack(
            [of_axis(*pair) for pair in zip(self.axes, self.angles, strict=True)]
        )
        unit = self.axes / np.linalg.norm(self.axes, axis=1, keepdims=True)
        w, v = np.cos(self.angles / 2)[:, None], np.sin(self.angles / 2)[:, None] * unit
        self.q = tensor(np.concatenate([w, v] if order == "wxyz" else [v, w], axis=1))


def tensor(array: Array) -> Tensor:
    return torch.tensor(array, dtype=torch.float64)


def vectors(seed: int) -> Array:
    return np.random.default_rng(100 + seed).normal(size=(ROWS, 3))


def rotated(matrices: Array, v: Array) -> Array:
    return np.einsum("nij,nj->ni", matrices, v)


def assert_close(actual: Tensor, expected: Array) -> None:
    np.testing.assert_allclose(actual.numpy(), expected, atol=1e-9)


@pytest.fixture(params=["wxyz", "xyzw"])
def order(request: pytest.FixtureRequest) -> QuaternionOrder:
    order: QuaternionOrder = request.param
    return order


@pytest.fixture
def function(order: QuaternionOrder) -> dict[str, Callable[..., Any]]:
    return helpers(order)


def matrix_of(function: dict[str, Callable[..., Any]], q: Tensor) -> Array:
    """The matrix that `quat_rotate`, itself compared with numpy below, makes of a quaternion."""
    columns = [
        function["quat_rotate"](q, torch.eye(3, dtype=q.dtype)[axis].expand(len(q), 3))
        for axis in range(3)
    ]
    matrix: Array = torch.stack(columns, dim=-1).numpy()
    return matrix


def test_vectors_are_rotated_as_by_the_matrix(
    function: dict[str, Callable[..., Any]], order: QuaternionOrder
) -> None:
    a, v = Rotations(order, 1), vectors(1)
    forth, back = rotated(a.matrices, v), rotated(a.matrices.transpose(0, 2, 1), v)
    for name in ("quat_apply", "quat_rotate", "my_quat_rotate", "get_basis_vector", "tf_vector"):
        assert_close(function[name](a.q, tensor(v)), forth)
    assert_close(function["quat_rotate_inverse"](a.q, tensor(v)), back)
    assert_close(function["quat_apply"](function["quat_conjugate"](a.q), tensor(v)), back)
    for axis in range(3):
        assert_close(function["quat_axis"](a.q, axis), a.matrices[:, :, axis])


def test_a_product_is_the_matrices_product(
    function: dict[str, Callable[..., Any]], order: QuaternionOrder
) -> None:
    a, b = Rotations(order, 1), Rotations(order, 2)
    assert_close(
        tensor(matrix_of(function, function["quat_mul"](a.q, b.q))), a.matrices @ b.matrices
    )
    angles = np.arccos(
        (np.trace(a.matrices @ b.matrices.transpose(0, 2, 1), axis1=1, axis2=2) - 1.0) / 2.0
    )
    assert_close(function["quat_diff_rad"](a.q, b.q), angles)
    assert_close(function["quat_unit"](3.0 * a.q), a.q.numpy())


def test_axis_and_angle(function: dict[str, Callable[..., Any]], order: QuaternionOrder) -> None:
    a = Rotations(order, 1)
    unit = a.axes / np.linalg.norm(a.axes, axis=1, keepdims=True)
    assert_close(function["quat_from_angle_axis"](tensor(a.angles), tensor(a.axes)), a.q.numpy())
    angle, axis = function["quat_to_angle_axis"](a.q)
    assert_close(angle, a.angles)
    assert_close(axis, unit)
    exponential = a.angles[:, None] * unit
    assert_close(function["quat_to_exp_map"](a.q), exponential)
    assert_close(function["axisangle2quat"](tensor(exponential)), a.q.numpy())


def test_euler_angles(function: dict[str, Callable[..., Any]], order: QuaternionOrder) -> None:
    random = np.random.default_rng(3)
    roll, yaw = random.uniform(-3.1, 3.1, size=(2, ROWS))
    pitch = random.uniform(-1.5, 1.5, size=ROWS)
    x, y, z = np.eye(3)
    expected = np.stack(
        [
            of_axis(z, c) @ of_axis(y, b) @ of_axis(x, a)
            for a, b, c in zip(roll, pitch, yaw, strict=True)
        ]
    )
    q = function["quat_from_euler_xyz"](tensor(roll), tensor(pitch), tensor(yaw))
    assert_close(tensor(matrix_of(function, q)), expected)
    for found, angle in zip(function["get_euler_xyz"](q), (roll, pitch, yaw), strict=True):
        assert_close(found, angle % (2 * np.pi))


def test_headings(function: dict[str, Callable[..., Any]], order: QuaternionOrder) -> None:
    a = Rotations(order, 1)
    headings = np.arctan2(a.matrices[:, 1, 0], a.matrices[:, 0, 0])
    about_z = np.stack([of_axis(np.eye(3)[2], heading) for heading in headings])
    assert_close(function["calc_heading"](a.q), headings)
    assert_close(tensor(matrix_of(function, function["calc_heading_quat"](a.q))), about_z)
    assert_close(
        tensor(matrix_of(function, function["calc_heading_quat_inv"](a.q))),
        about_z.transpose(0, 2, 1),
    )


def test_transforms(function: dict[str, Callable[..., Any]], order: QuaternionOrder) -> None:
    a, b, s, t, v = Rotations(order, 1), Rotations(order, 2), vectors(2), vectors(3), vectors(4)
    in_b = rotated(b.matrices, v) + t
    in_a = rotated(a.matrices, in_b) + s
    assert_close(function["tf_apply"](b.q, tensor(t), tensor(v)), in_b)
    both = function["tf_combine"](a.q, tensor(s), b.q, tensor(t))
    assert_close(function["tf_apply"](*both, tensor(v)), in_a)
    assert_close(function["tf_apply"](*function["tf_inverse"](b.q, tensor(t)), tensor(in_b)), v)
    pose = torch.cat([tensor(t), b.q], dim=-1)
    assert_close(function["local_to_world_space"](tensor(v), pose), in_b)


def test_what_locomotion_tasks_ask_of_a_torso(
    function: dict[str, Callable[..., Any]], order: QuaternionOrder
) -> None:
    a, start = Rotations(order, 1), Rotations(order, 2)
    way, velocity, spin = vectors(2), vectors(3), vectors(4)
    ahead, upwards = (np.tile(np.eye(3)[axis], (ROWS, 1)) for axis in (0, 2))
    turned = a.matrices @ start.matrices
    found = function["compute_heading_and_up"](
        a.q, start.q, tensor(way), tensor(ahead), tensor(upwards), 2
    )
    assert_close(tensor(matrix_of(function, found[0])), turned)
    assert_close(found[1], turned[:, 2, 2])
    assert_close(found[2], (turned[:, :, 0] * way).sum(axis=1) / np.linalg.norm(way, axis=1))
    assert_close(found[3], turned[:, :, 2])
    assert_close(found[4], turned[:, :, 0])
    target = vectors(5)
    local, local_spin, roll, pitch, yaw, to_target = function["compute_rot"](
        a.q, tensor(velocity), tensor(spin), tensor(target), tensor(target - way)
    )
    assert_close(local, rotated(a.matrices.transpose(0, 2, 1), velocity))
    assert_close(local_spin, rotated(a.matrices.transpose(0, 2, 1), spin))
    # a rotation matrix of roll, pitch and yaw has these entries
    assert_close(roll, np.arctan2(a.matrices[:, 2, 1], a.matrices[:, 2, 2]) % (2 * np.pi))
    assert_close(pitch, -np.arcsin(a.matrices[:, 2, 0]) % (2 * np.pi))
    assert_close(yaw, np.arctan2(a.matrices[:, 1, 0], a.matrices[:, 0, 0]) % (2 * np.pi))
    assert_close(to_target, np.arctan2(way[:, 2], way[:, 0]) - yaw.numpy())


def test_ranges_and_signs() -> None:
    function = helpers("wxyz")
    x = torch.tensor([[-1.0, 0.0], [0.5, 2.0]])
    lower, upper = torch.tensor([-2.0, 0.0]), torch.tensor([2.0, 10.0])
    for to_range in (
        "scale",
        "unscale_transform",
    ):  # -1 is the lower end, 0 the middle, 1 the upper end
        assert function[to_range](x, lower, upper).tolist() == [[-2.0, 5.0], [1.0, 15.0]]
        assert function[to_range](x, -4.0, 4.0).tolist() == [[-4.0, 0.0], [2.0, 8.0]]
    for from_range in ("unscale", "scale_transform"):
        assert function[from_range](x, lower, upper).tolist() == [
            [-0.5, -1.0],
            [0.25, -0.6000000238418579],
        ]
    for limited in ("saturate", "tensor_clamp"):
        assert function[limited](x, lower, upper).tolist() == [[-1.0, 0.0], [0.5, 2.0]]
        assert function[limited](x, torch.tensor([-0.5, 1.0]), upper).tolist() == [
            [-0.5, 1.0],
            [0.5, 2.0],
        ]
        assert function[limited](x, -0.5, 1.0).tolist() == [[-0.5, 0.0], [0.5, 1.0]]
    assert function["copysign"](-2.0, torch.tensor([3.0, -0.1, 0.0])).tolist() == [2.0, -2.0, 0.0]
    assert function["normalize"](torch.tensor([[3.0, 4.0]])).tolist() == [
        [pytest.approx(0.6), pytest.approx(0.8)]
    ]
    angles = function["normalize_angle"](torch.tensor([0.5, 0.5 + 4 * np.pi, 3.5]))
    assert angles.tolist() == pytest.approx([0.5, 0.5, 3.5 - 2 * np.pi], abs=1e-5)


VECTOR_ARGUMENTS = {
    "v",
    "b",
    "t",
    "t1",
    "t2",
    "axis",
    "vec",
    "vec0",
    "vec1",
    "to_target",
    "pos_offset_local",
} | {
    "velocity",
    "ang_velocity",
    "targets",
    "torso_positions",
}


def special(name: str, helper: str, lead: tuple[int, ...]) -> list[Any]:
    """Values of one argument that a division, root or arcus function may stumble over."""
    quaternion = helper in ("quat_mul", "quat_diff_rad")
    if helper == "quat_axis" and name == "axis":
        return [0]
    if name == "up_idx":
        return [2]
    if name == "eps":
        return [1e-9]
    if name in ("lower", "upper", "min_t", "max_t"):
        return [torch.zeros(3)]
    if name in ("angle", "roll", "pitch", "yaw"):
        return [torch.zeros(lead), torch.full(lead, torch.pi)]
    if name == "pose_global":
        return [torch.zeros(*lead, 7)]
    if (name in ("x", "a") and not helper.startswith("quat_")) or (
        name == "t" and helper == "tensor_clamp"
    ):
        return [torch.zeros(*lead, 3), 1e3 * torch.ones(*lead, 3)]
    if name in VECTOR_ARGUMENTS and not quaternion:
        return [torch.zeros(*lead, 3), 1e3 * torch.ones(*lead, 3)]
    # the zero, the unit ones along each axis, a longer one, and one that rounding has made longer
    # than 1
    return [
        torch.zeros(*lead, 4),
        *(row.expand(*lead, 4) for row in [*torch.eye(4), *(-torch.eye(4))]),
    ] + [scale * torch.ones(*lead, 4) for scale in (0.5, 0.50001, 2.0)]


@pytest.mark.parametrize("helper", HELPER_NAMES)
@pytest.mark.parametrize("lead", [(), (5,), (2, 5)])
def test_all_of_them_are_finite_for_any_leading_dimensions(
    function: dict[str, Callable[..., Any]], helper: str, lead: tuple[int, ...]
) -> None:
    names = list(inspect.signature(function[helper]).parameters)
    columns = [special(name, helper, lead) for name in names]
    for index in range(max(map(len, columns))):
        given = [column[index % len(column)] for column in columns]
        result = function[helper](*given)
        for value in result if isinstance(result, tuple) else (result,):
            assert value.isfinite().all(), (helper, given)
            assert value.shape[: len(lead)] == lead, (helper, value.shape)


def test_the_names_are_the_functions_and_the_modules_those_of_published_rewards() -> None:
    assert tuple(helpers("wxyz")) == HELPER_NAMES == tuple(sorted(HELPER_NAMES))
    for module in (
        "isaacgym.torch_utils",
        "utils.torch_jit_utils",
        "isaacgymenvs.utils.torch_jit_utils",
    ):
        assert is_helper_module(module)
    assert not is_helper_module("torch.utils")
    assert not is_helper_module(None)
