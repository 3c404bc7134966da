"""Joints, actuators, sensors, bodies, sites and contacts of a MujocoTask, as live views: copy what
must outlast a step. The first dimension is the environment; a group found by a list has a second
one, in the list's order. Only a group with unevenly spaced columns is a copy."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from eureka_agent.simulation.mujoco_lookups import MujocoLookups

Limits = tuple[Tensor, Tensor]


class Columns:
    """Columns of tensors with a row per environment."""

    def __init__(self, columns: Sequence[int], device: torch.device, single: bool = False) -> None:
        """`single`: one column without a dimension of its own."""
        self._single = columns[0] if single else None
        self._index = torch.tensor(columns, device=device)
        step = columns[1] - columns[0] if len(columns) > 1 else 1
        even = step > 0 and list(columns) == list(range(columns[0], columns[-1] + 1, step))
        self._slice = slice(columns[0], columns[-1] + 1, step) if even else None

    def of(self, tensor: Tensor) -> Tensor:
        """Shape: (num_envs,) or (num_envs, n)."""
        if self._single is not None:
            return tensor[:, self._single]
        if self._slice is not None:
            return tensor[:, self._slice]
        return tensor.index_select(1, self._index)

    def fill(self, tensor: Tensor, values: Tensor) -> None:
        """Set these columns in all rows; values may be broadcast."""
        if self._slice is None:
            tensor[:, self._index] = values.to(tensor)
        else:
            self.of(tensor).copy_(values)

    def write(self, tensor: Tensor, env_ids: Tensor, values: Tensor | None) -> None:
        """Set these columns in the rows `env_ids` (int64), if there are values."""
        if values is not None:
            values = values if self._single is None else values.unsqueeze(-1)
            tensor[env_ids.unsqueeze(-1), self._index] = values.to(tensor)


class View:
    """Base of views, which keep no task alive: it is freed at once, without a cycle."""

    def __init__(self, state: MujocoLookups) -> None:
        self._state: MujocoLookups = weakref.proxy(state)


class Joint(View):
    def __init__(
        self, state: MujocoLookups, positions: Columns, velocities: Columns, limits: Limits
    ) -> None:
        super().__init__(state)
        self._positions, self._velocities = positions, velocities
        self.lower, self.upper = limits
        """Limits, rad or m; -inf and inf without limits. Shape: () or (n,)."""
        self._middle = (self.lower + self.upper) / 2.0
        self._half_range = (self.upper - self.lower) / 2.0

    @property
    def position(self) -> Tensor:
        """Angle in rad or distance in m, float32. Shape: (num_envs,) or (num_envs, n); for a ball
        joint (num_envs, 4), quaternion w, x, y, z; for a free one (num_envs, 7), position, then
        quaternion."""
        return self._positions.of(self._state.joint_positions)

    @property
    def velocity(self) -> Tensor:
        """In rad/s or m/s. Shape: (num_envs[, n]); of a ball joint (…, 3), of a free one (…, 6)."""
        return self._velocities.of(self._state.joint_velocities)

    @property
    def scaled_position(self) -> Tensor:
        """Position scaled to the limits: -1 lower, 1 upper, NaN without. Shape: as `position`."""
        return (self.position - self._middle) / self._half_range

    def write(
        self, env_ids: Tensor, *, position: Tensor | None = None, velocity: Tensor | None = None
    ) -> None:
        """Set rows `env_ids` (int64), in `place`. Shapes: (len(env_ids),) or (len(env_ids), n)."""
        self._positions.write(self._state.qpos, env_ids, position)
        self._velocities.write(self._state.qvel, env_ids, velocity)


class FreeJoint(View):
    """A joint with all degrees of freedom; pose and velocity are those of its body."""

    def __init__(self, state: MujocoLookups, position: int, velocity: int) -> None:
        """`position`, `velocity`: first columns in qpos and qvel."""
        super().__init__(state)
        begins = ((position, 3), (position + 3, 4), (velocity, 3), (velocity + 3, 3))
        views = (Columns(range(begin, begin + n), state.device) for begin, n in begins)
        self._place, self._turn, self._linear, self._angular = views

    @property
    def position_w(self) -> Tensor:
        """Position of the body's origin in the world, m. Shape: (num_envs, 3)."""
        return self._place.of(self._state.joint_positions)

    @property
    def orientation_w(self) -> Tensor:
        """Orientation in the world, a quaternion w, x, y, z. Shape: (num_envs, 4)."""
        return self._turn.of(self._state.joint_positions)

    @property
    def linear_velocity_w(self) -> Tensor:
        """Velocity of the body's origin in the world's frame, m/s. Shape: (num_envs, 3)."""
        return self._linear.of(self._state.joint_velocities)

    @property
    def angular_velocity_b(self) -> Tensor:
        """Angular velocity in the body's own frame, rad/s. Shape: (num_envs, 3)."""
        return self._angular.of(self._state.joint_velocities)

    def write(
        self,
        env_ids: Tensor,
        *,
        position_w: Tensor | None = None,
        orientation_w: Tensor | None = None,
        linear_velocity_w: Tensor | None = None,
        angular_velocity_b: Tensor | None = None,
    ) -> None:
        """Set rows `env_ids` in `place`. Shapes: (len(env_ids), 3), orientation: (…, 4)."""
        self._place.write(self._state.qpos, env_ids, position_w)
        self._turn.write(self._state.qpos, env_ids, orientation_w)
        self._linear.write(self._state.qvel, env_ids, linear_velocity_w)
        self._angular.write(self._state.qvel, env_ids, angular_velocity_b)


class Actuator(View):
    def __init__(self, state: MujocoLookups, columns: Columns, limits: Limits) -> None:
        super().__init__(state)
        self._columns = columns
        self.lower, self.upper = limits
        """Range of the control in its unit; -inf and inf without one. Shape: () or (n,)."""

    @property
    def control(self) -> Tensor:
        """Control in its own unit, writable. Shape: (num_envs,) or (num_envs, n)."""
        return self._columns.of(self._state.ctrl)

    @control.setter
    def control(self, values: Tensor) -> None:
        self._columns.fill(self._state.ctrl, values)


class Sensor(View):
    def __init__(self, state: MujocoLookups, columns: Columns) -> None:
        super().__init__(state)
        self._columns = columns

    @property
    def value(self) -> Tensor:
        """Values. Shape: (num_envs,) for one entry, else (num_envs, entries), all of a group."""
        return self._columns.of(self._state._sensor_values)


class AddedValues(View):
    """Values of sensors added for a lookup. Shape: (num_envs, *shape, entries)."""

    def __init__(
        self, state: MujocoLookups, first: int, shape: tuple[int, ...], entries: int
    ) -> None:
        super().__init__(state)
        self._shape = (*shape, entries)
        self._slice = slice(first, first + entries * (shape[0] if shape else 1))

    def read(self) -> Tensor:
        return self._state._added_values[:, self._slice].unflatten(1, self._shape)


@dataclass(frozen=True)
class Frame:
    """A body or site, or a group of them. Shapes: (num_envs, 3), for a group (num_envs, n, 3)."""

    _position: AddedValues
    _orientation: AddedValues
    _linear: AddedValues
    _angular: AddedValues

    @property
    def position_w(self) -> Tensor:
        """Position of its origin in the world, m."""
        return self._position.read()

    @property
    def orientation_w(self) -> Tensor:
        """Quaternion w, x, y, z in the world. Shape: (num_envs, 4) or (num_envs, n, 4)."""
        return self._orientation.read()

    @property
    def linear_velocity_w(self) -> Tensor:
        """Velocity of its origin in the world's frame, m/s."""
        return self._linear.read()

    @property
    def angular_velocity_w(self) -> Tensor:
        """Angular velocity in the world's frame, rad/s."""
        return self._angular.read()

    @property
    def linear_velocity_b(self) -> Tensor:
        """Velocity of its origin in its own frame, m/s; calculated at each access."""
        return _into_frame(self.orientation_w, self.linear_velocity_w)

    @property
    def angular_velocity_b(self) -> Tensor:
        """Angular velocity in its own frame, rad/s; calculated at each access."""
        return _into_frame(self.orientation_w, self.angular_velocity_w)


class MocapBody(View):
    """A body whose pose is written and not simulated. Its children and welds follow it."""

    def __init__(self, state: MujocoLookups, number: int) -> None:
        """`number`: among the mocap bodies."""
        super().__init__(state)
        self._number = number

    @property
    def position_w(self) -> Tensor:
        """Position in the world, m, the simulator's own; writable. Shape: (num_envs, 3)."""
        return self._state.physics.mocap_pos[:, self._number]

    @position_w.setter
    def position_w(self, values: Tensor) -> None:
        self.position_w.copy_(values)

    def write(
        self,
        env_ids: Tensor,
        *,
        position_w: Tensor | None = None,
        orientation_w: Tensor | None = None,
    ) -> None:
        """Set rows `env_ids` (int64), in `place`; values may be broadcast. Shapes:
        (len(env_ids), 3), and (len(env_ids), 4) for quaternions w, x, y, z."""
        physics = self._state.physics
        if position_w is not None:
            physics.mocap_pos[env_ids, self._number] = position_w.to(physics.mocap_pos)
        if orientation_w is not None:
            physics.mocap_quat[env_ids, self._number] = orientation_w.to(physics.mocap_quat)


@dataclass(frozen=True)
class Contact:
    """Contacts of a geom or body, or of each of a group, with another object or with any."""

    _values: AddedValues

    @property
    def force_w(self) -> Tensor:
        """Net force on it in the world, N, in the last physics step. Shape: (num_envs, [n,] 3)."""
        return self._values.read()[..., 1:4]

    @property
    def is_touching(self) -> Tensor:
        """True for a contact, also without force. Shape: (num_envs,) or (num_envs, n)."""
        return self._values.read()[..., 0] > 0.0


def _into_frame(quaternion: Tensor, vector: Tensor) -> Tensor:
    """Rotate a vector from the world's frame into that of the quaternion w, x, y, z."""
    real, axis = quaternion[..., 0:1], quaternion[..., 1:4]
    across = torch.linalg.cross(axis, vector)
    return vector + 2.0 * (torch.linalg.cross(axis, across) - real * across)
