"""Isaac Gym's tensor and quaternion functions, which published rewards call. Imports torch alone.
Leading dimensions broadcast. Quaternions: (..., 4), in `QUATERNION_ORDER`; vectors: (..., 3).
Finite inputs give finite outputs, also for zero vectors and empty ranges."""

from __future__ import annotations

import math

import torch
from torch import Tensor

QUATERNION_ORDER = "wxyz"
"""`"wxyz"` has the real part first, `"xyzw"` (Isaac Gym's) last."""
_SMALLEST_SINE = 1e-5


# ── numbers and vectors ───────────────────────────────────────────────────────────────────────────


def normalize(x: Tensor, eps: float = 1e-9) -> Tensor:
    """Vectors of length 1; a zero vector stays zero."""
    return x / x.norm(dim=-1, keepdim=True).clamp(min=eps)


def normalize_angle(x: Tensor) -> Tensor:
    """The same angle between -pi and pi."""
    return torch.atan2(x.sin(), x.cos())


def tensor_clamp(t: Tensor, min_t: float | Tensor, max_t: float | Tensor) -> Tensor:
    """Clamp `t` between two bounds."""
    return t.clamp(max=max_t).clamp(min=min_t)


def scale(x: Tensor, lower: float | Tensor, upper: float | Tensor) -> Tensor:
    """From [-1, 1] to [lower, upper]."""
    return lower + (x + 1.0) * (upper - lower) / 2.0


def unscale(x: Tensor, lower: float | Tensor, upper: float | Tensor) -> Tensor:
    """From [lower, upper] to [-1, 1]."""
    return (2.0 * x - (lower + upper)) / _width(lower, upper)


def _width(lower: float | Tensor, upper: float | Tensor) -> float | Tensor:
    """Width of a range as a divisor: 1 for an empty range."""
    width = upper - lower
    if isinstance(width, Tensor):
        return torch.where(width == 0, torch.ones_like(width), width)
    return width or 1.0


# ── quaternions ───────────────────────────────────────────────────────────────────────────────────


def _parts(q: Tensor) -> tuple[Tensor, Tensor]:
    """Real part, shape (..., 1), and imaginary part, shape (..., 3)."""
    if QUATERNION_ORDER == "xyzw":
        return q[..., 3:], q[..., :3]
    return q[..., :1], q[..., 1:]


def _quaternion(real: Tensor, imaginary: Tensor) -> Tensor:
    """The quaternion with these parts, of shapes (..., 1) and (..., 3)."""
    return torch.cat((imaginary, real) if QUATERNION_ORDER == "xyzw" else (real, imaginary), dim=-1)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(dim=-1, keepdim=True)


def quat_mul(a: Tensor, b: Tensor) -> Tensor:
    """The product `a b`: the rotation `b`, then `a`."""
    (a_real, a_vector), (b_real, b_vector) = _parts(a), _parts(b)
    real = a_real * b_real - _dot(a_vector, b_vector)
    vector = a_real * b_vector + b_real * a_vector + torch.linalg.cross(a_vector, b_vector)
    return _quaternion(real, vector)


def quat_conjugate(a: Tensor) -> Tensor:
    """The inverse rotation of a unit quaternion."""
    real, vector = _parts(a)
    return _quaternion(real, -vector)


def quat_unit(a: Tensor) -> Tensor:
    """The quaternion of length 1 in the same direction."""
    return normalize(a)


def quat_apply(a: Tensor, b: Tensor) -> Tensor:
    """The vector `b` rotated by `a`."""
    real, vector = _parts(a)
    half = torch.linalg.cross(vector, b)
    return b + 2.0 * (real * half + torch.linalg.cross(vector, half))


def quat_rotate(q: Tensor, v: Tensor) -> Tensor:
    """The vector `v` rotated by `q`: from the body's frame into the world's."""
    real, vector = _parts(q)
    return _rotated(real, vector, v)


def quat_rotate_inverse(q: Tensor, v: Tensor) -> Tensor:
    """The vector `v` rotated by the inverse of `q`: from the world's frame into the body's."""
    real, vector = _parts(q)
    return _rotated(-real, vector, v)


def _rotated(real: Tensor, vector: Tensor, v: Tensor) -> Tensor:
    turned = real * torch.linalg.cross(vector, v) + vector * _dot(vector, v)
    return (2.0 * real.square() - 1.0) * v + 2.0 * turned


def quat_axis(q: Tensor, axis: int = 0) -> Tensor:
    """The body's axis of this number in the world's frame."""
    basis = q.new_zeros(*q.shape[:-1], 3)
    basis[..., axis] = 1.0
    return quat_rotate(q, basis)


def quat_diff_rad(a: Tensor, b: Tensor) -> Tensor:
    """Angle between two rotations, 0 to pi. Shape: (...)."""
    _, vector = _parts(quat_mul(a, quat_conjugate(b)))
    return 2.0 * vector.norm(dim=-1).clamp(max=1.0).asin()


# ── other forms of a rotation ─────────────────────────────────────────────────────────────────────


def quat_from_angle_axis(angle: Tensor, axis: Tensor) -> Tensor:
    """The rotation by `angle`, shape (...), about `axis`, which need not have length 1."""
    half = angle.unsqueeze(-1) / 2.0
    vector = half.sin() * normalize(axis)
    return quat_unit(_quaternion(half.cos().expand_as(vector[..., :1]), vector))


def quat_to_angle_axis(q: Tensor) -> tuple[Tensor, Tensor]:
    """Angle in [-pi, pi], shape (...), and axis of a unit quaternion; z axis for no rotation."""
    real, vector = _parts(q)
    cosine = real.squeeze(-1).clamp(-1.0, 1.0)
    sine = (1.0 - cosine.square()).sqrt()
    rotates = sine > _SMALLEST_SINE
    angle = normalize_angle(2.0 * cosine.acos())
    upwards = torch.zeros_like(vector)
    upwards[..., 2] = 1.0
    divided = vector / sine.clamp(min=_SMALLEST_SINE).unsqueeze(-1)
    axis = torch.where(rotates.unsqueeze(-1), divided, upwards)
    return torch.where(rotates, angle, torch.zeros_like(angle)), axis


def get_euler_xyz(q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Roll, pitch and yaw of a unit quaternion, each in [0, 2 pi], shape (...)."""
    real, vector = _parts(q)
    w, (x, y, z) = real.squeeze(-1), vector.unbind(-1)
    roll = torch.atan2(2.0 * (w * x + y * z), w * w - x * x - y * y + z * z)
    pitch = (2.0 * (w * y - z * x)).clamp(-1.0, 1.0).asin()
    yaw = torch.atan2(2.0 * (w * z + x * y), w * w + x * x - y * y - z * z)
    whole = 2.0 * math.pi
    return roll % whole, pitch % whole, yaw % whole


# ── frames: a rotation and a translation ──────────────────────────────────────────────────────────


def tf_vector(q: Tensor, v: Tensor) -> Tensor:
    """The direction `v` of a frame with rotation `q` in its parent frame."""
    return quat_apply(q, v)


def compute_heading_and_up(
    torso_rotation: Tensor,
    inv_start_rot: Tensor,
    to_target: Tensor,
    vec0: Tensor,
    vec1: Tensor,
    up_idx: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Rotation of a torso since its start; up vector on the axis `up_idx` and heading towards the
    target, shape (...); both vectors. `vec0`, `vec1`: heading and up vector at the start."""
    rotation = quat_mul(torso_rotation, inv_start_rot)
    up, heading = quat_rotate(rotation, vec1), quat_rotate(rotation, vec0)
    return rotation, up[..., up_idx], _dot(heading, normalize(to_target)).squeeze(-1), up, heading
