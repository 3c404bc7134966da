"""Unit quaternions (w, x, y, z) that rotate from the body frame to the world frame."""

from __future__ import annotations

import torch
from torch import Tensor


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """Hamilton product. Shape of each: (num_envs, 4)."""
    w, u = left[:, :1], left[:, 1:]
    s, v = right[:, :1], right[:, 1:]
    scalar = w * s - (u * v).sum(dim=-1, keepdim=True)
    return torch.cat((scalar, w * v + s * u + torch.linalg.cross(u, v)), dim=1)


def rotate(quaternion: Tensor, vector: Tensor) -> Tensor:
    """Vector in the body frame to the world frame. Shapes: (num_envs, 4), (num_envs, 3)."""
    u = quaternion[:, 1:]
    twice = 2.0 * torch.linalg.cross(u, vector)
    return vector + quaternion[:, :1] * twice + torch.linalg.cross(u, twice)


def rotate_inverse(quaternion: Tensor, vector: Tensor) -> Tensor:
    """Vector in the world frame to the body frame. Shapes: (num_envs, 4), (num_envs, 3)."""
    u = quaternion[:, 1:]
    twice = 2.0 * torch.linalg.cross(vector, u)
    return vector + quaternion[:, :1] * twice + torch.linalg.cross(twice, u)


def from_rotation_vector(vector: Tensor) -> Tensor:
    """Rotation by |vector| rad about the direction of `vector`. Shapes: (num_envs, 3) to (num_envs, 4)."""
    half = 0.5 * vector
    angle = half.square().sum(dim=-1, keepdim=True).sqrt()
    # torch.sinc(x) is sin(πx)/(πx): sin(angle)/angle without a division by zero
    return torch.cat((torch.cos(angle), torch.sinc(angle / torch.pi) * half), dim=1)


def up_axis(quaternion: Tensor) -> Tensor:
    """The body's z axis in the world frame. Shape: (num_envs, 3)."""
    w, x, y, z = quaternion.unbind(dim=1)
    return torch.stack((2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)), dim=1)
