"""Unit quaternions (w, x, y, z) that rotate from the body frame to the world frame.

Entries come first and the batch last, (4, num_envs) and (3, num_envs): torch is several times
faster on long rows than on rows of three.
"""

from __future__ import annotations

import torch
from torch import Tensor


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """Hamilton product. Shape of each: (4, num_envs)."""
    w, u = left[:1], left[1:]
    s, v = right[:1], right[1:]
    scalar = w * s - (u * v).sum(dim=0, keepdim=True)
    return torch.cat((scalar, w * v + s * u + torch.linalg.cross(u, v, dim=0)))


def to_body(quaternion: Tensor, vector: Tensor) -> Tensor:
    """A vector in the world frame, seen in the body frame. Shapes: (4, num_envs), (3, num_envs)."""
    u = quaternion[1:]
    twice = 2.0 * torch.linalg.cross(vector, u, dim=0)
    return vector + quaternion[:1] * twice + torch.linalg.cross(twice, u, dim=0)


def from_rotation_vector(vector: Tensor) -> Tensor:
    """Rotation by |vector| rad about the direction of `vector`. Shapes: (3, num_envs) to (4,
    num_envs)."""
    half = 0.5 * vector
    angle = half.square().sum(dim=0, keepdim=True).sqrt()
    # away from 0 by less than float32 resolves, so that sin(angle)/angle is defined
    angle = angle.clamp(min=1e-12)
    return torch.cat((torch.cos(angle), torch.sin(angle) / angle * half))


def up_axis(quaternion: Tensor) -> Tensor:
    """The body's z axis in the world frame. Shape: (3, num_envs)."""
    w, x, y, z = quaternion
    return torch.stack((2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)))
