"""Isaac Gym's helpers as the corpus calls them, written from their definitions: what a call of an
undefined `quat_mul` means.

Quaternions are x, y, z, w. Independent of whatever the program under test has under these names.
"""

from __future__ import annotations

import math

import torch
from corpus_world import inverse, product, rotated
from torch import Tensor

__all__ = [
    "compute_heading_and_up",
    "get_euler_xyz",
    "normalize",
    "quat_axis",
    "quat_conjugate",
    "quat_from_angle_axis",
    "quat_mul",
    "quat_rotate",
    "quat_rotate_inverse",
    "quat_to_angle_axis",
    "tensor_clamp",
    "tf_vector",
    "unscale",
]

quat_mul = product
quat_conjugate = inverse
quat_rotate = rotated
tf_vector = rotated


def quat_rotate_inverse(rotation: Tensor, vector: Tensor) -> Tensor:
    return rotated(inverse(rotation), vector)


def quat_axis(rotation: Tensor, axis: int = 0) -> Tensor:
    return rotated(rotation, torch.eye(3)[axis].expand(len(rotation), 3))


def normalize(vector: Tensor, eps: float = 1e-9) -> Tensor:
    return vector / vector.norm(dim=-1, keepdim=True).clamp(min=eps)


def quat_from_angle_axis(angle: Tensor, axis: Tensor) -> Tensor:
    half = 0.5 * angle.unsqueeze(-1)
    return torch.cat([half.sin() * normalize(axis), half.cos()], dim=-1)


def quat_to_angle_axis(rotation: Tensor) -> tuple[Tensor, Tensor]:
    """Angle in (-pi, pi] and axis."""
    angle = 2.0 * torch.acos(rotation[:, 3].clamp(-1.0, 1.0))
    return torch.remainder(angle + math.pi, 2.0 * math.pi) - math.pi, normalize(rotation[:, :3])


def get_euler_xyz(rotation: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Roll, pitch, yaw in [0, 2 pi)."""
    x, y, z, w = rotation.unbind(dim=-1)
    roll = torch.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = torch.asin((2.0 * (w * y - z * x)).clamp(-1.0, 1.0))
    yaw = torch.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    roll, pitch, yaw = (torch.remainder(angle, 2.0 * math.pi) for angle in (roll, pitch, yaw))
    return roll, pitch, yaw


def tensor_clamp(value: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return torch.maximum(torch.minimum(value, high), low)


def unscale(value: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """From [low, high] to [-1, 1]."""
    return (2.0 * value - high - low) / (high - low)


def compute_heading_and_up(
    torso: Tensor,
    inverse_start: Tensor,
    to_target: Tensor,
    forward: Tensor,
    up: Tensor,
    up_index: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Torso's quaternion, upright projection, heading projection, up and heading vector."""
    rotation = product(torso, inverse_start)
    up_vector, heading = rotated(rotation, up), rotated(rotation, forward)
    return (
        rotation,
        up_vector[:, up_index],
        (heading * normalize(to_target)).sum(dim=-1),
        up_vector,
        heading,
    )
