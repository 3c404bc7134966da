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


def copysign(a: float | Tensor, b: Tensor) -> Tensor:
    """Magnitude of `a` with the sign of `b`; 0 where `b` is 0."""
    return torch.as_tensor(a, dtype=b.dtype, device=b.device).abs() * b.sign()


def tensor_clamp(t: Tensor, min_t: float | Tensor, max_t: float | Tensor) -> Tensor:
    """Clamp `t` between two bounds."""
    return t.clamp(max=max_t).clamp(min=min_t)


def saturate(x: Tensor, lower: float | Tensor, upper: float | Tensor) -> Tensor:
    """Clamp `x` between two bounds."""
    return tensor_clamp(x, lower, upper)


def scale(x: Tensor, lower: float | Tensor, upper: float | Tensor) -> Tensor:
    """From [-1, 1] to [lower, upper]."""
    return lower + (x + 1.0) * (upper - lower) / 2.0


def unscale(x: Tensor, lower: float | Tensor, upper: float | Tensor) -> Tensor:
    """From [lower, upper] to [-1, 1]."""
    return (2.0 * x - (lower + upper)) / _width(lower, upper)


scale_transform, unscale_transform = unscale, scale


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
    return _quaternion(
        real, a_real * b_vector + b_real * a_vector + torch.linalg.cross(a_vector, b_vector)
    )


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


my_quat_rotate = get_basis_vector = quat_rotate


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
    axis = torch.where(
        rotates.unsqueeze(-1), vector / sine.clamp(min=_SMALLEST_SINE).unsqueeze(-1), upwards
    )
    return torch.where(rotates, angle, torch.zeros_like(angle)), axis


def quat_to_exp_map(q: Tensor) -> Tensor:
    """The axis of a unit quaternion with the angle as its length. Shape: (..., 3)."""
    angle, axis = quat_to_angle_axis(q)
    return angle.unsqueeze(-1) * axis


def axisangle2quat(vec: Tensor, eps: float = 1e-6) -> Tensor:
    """The rotation about `vec` by its length; identity where that is at most `eps`."""
    angle = vec.norm(dim=-1, keepdim=True)
    rotates = angle > eps
    vector = torch.where(
        rotates, vec * (angle / 2.0).sin() / angle.clamp(min=eps), torch.zeros_like(vec)
    )
    return _quaternion(torch.where(rotates, (angle / 2.0).cos(), torch.ones_like(angle)), vector)


def quat_from_euler_xyz(roll: Tensor, pitch: Tensor, yaw: Tensor) -> Tensor:
    """Rotation about the world's x, then its y, then its z axis. Shape of each angle: (...)."""
    x, y, z = roll / 2.0, pitch / 2.0, yaw / 2.0
    zero = torch.zeros_like(x + y + z)
    one_axis = [
        _quaternion((zero + half.cos()).unsqueeze(-1), torch.stack(parts, dim=-1))
        for half, parts in (
            (x, (zero + x.sin(), zero, zero)),
            (y, (zero, zero + y.sin(), zero)),
            (z, (zero, zero, zero + z.sin())),
        )
    ]
    return quat_mul(one_axis[2], quat_mul(one_axis[1], one_axis[0]))


def get_euler_xyz(q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Roll, pitch and yaw of a unit quaternion, each in [0, 2 pi], shape (...)."""
    real, vector = _parts(q)
    w, (x, y, z) = real.squeeze(-1), vector.unbind(-1)
    roll = torch.atan2(2.0 * (w * x + y * z), w * w - x * x - y * y + z * z)
    pitch = (2.0 * (w * y - z * x)).clamp(-1.0, 1.0).asin()
    yaw = torch.atan2(2.0 * (w * z + x * y), w * w + x * x - y * y - z * z)
    whole = 2.0 * math.pi
    return roll % whole, pitch % whole, yaw % whole


def calc_heading(q: Tensor) -> Tensor:
    """Direction of the body's x axis on the ground, -pi to pi. Shape: (...)."""
    forward = quat_axis(q, 0)
    return torch.atan2(forward[..., 1], forward[..., 0])


def calc_heading_quat(q: Tensor) -> Tensor:
    """The rotation by the heading about the z axis."""
    heading = calc_heading(q)
    upwards = torch.stack(
        (torch.zeros_like(heading), torch.zeros_like(heading), torch.ones_like(heading)), dim=-1
    )
    return quat_from_angle_axis(heading, upwards)


def calc_heading_quat_inv(q: Tensor) -> Tensor:
    """The inverse of `calc_heading_quat`."""
    return quat_conjugate(calc_heading_quat(q))


# ── frames: a rotation and a translation ──────────────────────────────────────────────────────────


def tf_apply(q: Tensor, t: Tensor, v: Tensor) -> Tensor:
    """The point `v` of the frame (q, t) in its parent frame."""
    return quat_apply(q, v) + t


def tf_vector(q: Tensor, v: Tensor) -> Tensor:
    """The direction `v` of a frame with rotation `q` in its parent frame."""
    return quat_apply(q, v)


def tf_inverse(q: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """Rotation and translation of the inverse transform."""
    inverse = quat_conjugate(q)
    return inverse, -quat_apply(inverse, t)


def tf_combine(q1: Tensor, t1: Tensor, q2: Tensor, t2: Tensor) -> tuple[Tensor, Tensor]:
    """Rotation and translation of the second transform, then the first."""
    return quat_mul(q1, q2), tf_apply(q1, t1, t2)


def local_to_world_space(pos_offset_local: Tensor, pose_global: Tensor) -> Tensor:
    """A body's point in the world frame. `pose_global`: position and quaternion, shape (..., 7)."""
    position, rotation = pose_global[..., :3], pose_global[..., 3:7]
    point = _quaternion(torch.zeros_like(pos_offset_local[..., :1]), pos_offset_local)
    _, offset = _parts(quat_mul(quat_mul(rotation, point), quat_conjugate(rotation)))
    return position + offset


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


def compute_rot(
    torso_quat: Tensor,
    velocity: Tensor,
    ang_velocity: Tensor,
    targets: Tensor,
    torso_positions: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Velocity and angular velocity in the torso's frame; roll, pitch, yaw; angle to the target,
    from x and z coordinates as in Isaac Gym's locomotion."""
    way = targets - torso_positions
    roll, pitch, yaw = get_euler_xyz(torso_quat)
    velocity = quat_rotate_inverse(torso_quat, velocity)
    ang_velocity = quat_rotate_inverse(torso_quat, ang_velocity)
    angle = torch.atan2(way[..., 2], way[..., 0]) - yaw
    return velocity, ang_velocity, roll, pitch, yaw, angle
