"""Algebra of unit quaternions w, x, y, z for environments whose batch comes first. Imports torch
alone. Leading dimensions broadcast; quaternions have the shape (..., 4), vectors (..., 3)."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """Hamilton product: the rotation `right`, then `left`. Shape: (..., 4)."""
    left, right = torch.broadcast_tensors(left, right)
    w, u = left[..., :1], left[..., 1:]
    s, v = right[..., :1], right[..., 1:]
    scalar = w * s - (u * v).sum(dim=-1, keepdim=True)
    return torch.cat((scalar, w * v + s * u + torch.linalg.cross(u, v)), dim=-1)


def conjugate(quaternion: Tensor) -> Tensor:
    """Inverse rotation. Shape: (..., 4)."""
    return torch.cat((quaternion[..., :1], -quaternion[..., 1:]), dim=-1)


def rotate(quaternion: Tensor, vector: Tensor) -> Tensor:
    """`vector` turned by the rotation: from a body's frame into the world's. Shape: (..., 3)."""
    axis, vector = torch.broadcast_tensors(quaternion[..., 1:], vector)
    twice = 2.0 * torch.linalg.cross(axis, vector)
    return vector + quaternion[..., :1] * twice + torch.linalg.cross(axis, twice)


def about_z(angle: Tensor) -> Tensor:
    """Rotation by `angle` rad about z. Shapes: (...) to (..., 4)."""
    half = 0.5 * angle
    none = torch.zeros_like(half)
    return torch.stack((half.cos(), none, none, half.sin()), dim=-1)


def angle(quaternion: Tensor) -> Tensor:
    """Angle of the rotation by its shorter way, rad, 0 to pi. Shapes: (..., 4) to (...)."""
    sine = quaternion[..., 1:].square().sum(dim=-1).sqrt()
    return 2.0 * torch.atan2(sine, quaternion[..., 0].abs())


def angle_about_z(quaternion: Tensor) -> Tensor:
    """Angle of the twist about z in a swing-twist decomposition, rad, -pi to pi.
    Shapes: (..., 4) to (...)."""
    sign = torch.where(quaternion[..., 0] < 0.0, -1.0, 1.0)
    return 2.0 * torch.atan2(sign * quaternion[..., 3], quaternion[..., 0].abs())


def to_rotation_vector(quaternion: Tensor) -> Tensor:
    """Axis times angle (rad, at most pi) of the shorter way. Shapes: (..., 4) to (..., 3)."""
    axis = torch.where(quaternion[..., :1] < 0.0, -1.0, 1.0) * quaternion[..., 1:]
    sine = axis.square().sum(dim=-1, keepdim=True).sqrt()
    turned = 2.0 * torch.atan2(sine, quaternion[..., :1].abs())
    # at 0 the ratio of angle and sine is 2, and both are 0
    return axis * torch.where(sine > 1e-9, turned / sine.clamp(min=1e-9), 2.0)


def uniform(numbers: Tensor) -> Tensor:
    """Rotations that are uniform among all, from three uniform numbers in [0, 1) (Shoemake 1992,
    "Uniform random rotations"). Shapes: (..., 3) to (..., 4)."""
    first, second, third = numbers.unbind(dim=-1)
    low, high = (1.0 - first).sqrt(), first.sqrt()
    a, b = 2.0 * math.pi * second, 2.0 * math.pi * third
    parts = (high * b.cos(), low * a.sin(), low * a.cos(), high * b.sin())
    return torch.stack(parts, dim=-1)
