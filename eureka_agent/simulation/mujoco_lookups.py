"""Lookups of a MujocoTask: joints, actuators, sensors, bodies, sites and contacts by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.mujoco_names import (
    Kind,
    Names,
    can_touch,
    controls_of,
    find,
    find_geoms,
)
from eureka_agent.simulation.mujoco_readings import (
    AddedSensors,
    Target,
    contact_readings,
    frame_readings,
)
from eureka_agent.simulation.mujoco_views import (
    Actuator,
    AddedValues,
    Columns,
    Contact,
    Frame,
    FreeJoint,
    Joint,
    MocapBody,
    Sensor,
)
from eureka_agent.simulation.physics import Physics

_OBJECTS: dict[Kind, mujoco.mjtObj] = {
    "body": mujoco.mjtObj.mjOBJ_XBODY,
    "site": mujoco.mjtObj.mjOBJ_SITE,
}
_WIDTHS = {
    mujoco.mjtJoint.mjJNT_FREE: (7, 6),
    mujoco.mjtJoint.mjJNT_BALL: (4, 3),
    mujoco.mjtJoint.mjJNT_SLIDE: (1, 1),
    mujoco.mjtJoint.mjJNT_HINGE: (1, 1),
}
"""Entries of a joint in qpos and in qvel."""


class MujocoLookups(ABC):
    """Lookups by name, called once in `__init__` after `super().__init__(…)`. A name gives one
    object, a list of names and regular expressions (for whole names) a group in its order. All
    raise EnvironmentLoadError for an unknown name."""

    model: mujoco.MjModel
    device: torch.device
    joint_positions: Tensor
    joint_velocities: Tensor
    _sensor_values: Tensor
    """The float32 copy of the MJCF's own sensors. Shape: (num_envs, nsensordata)."""
    _added_sensors: AddedSensors

    @property
    @abstractmethod
    def physics(self) -> Physics:
        """The simulator, made at the first access."""

    @property
    def _added_values(self) -> Tensor:
        """float32 copy of the sensors added for lookups. Shape: (num_envs, entries)."""
        _ = self.physics  # which makes them
        return self._added_sensors.values

    # cached, as a subclass may write `self.ctrl += …`
    @cached_property
    def qpos(self) -> Tensor:
        """The simulator's own positions, writable in `place`. Shape: (num_envs, nq)."""
        return self.physics.qpos

    @cached_property
    def qvel(self) -> Tensor:
        """The simulator's own velocities, writable in `place`. Shape: (num_envs, nv)."""
        return self.physics.qvel

    @cached_property
    def ctrl(self) -> Tensor:
        """Controls of the actuators, writable in `pre_physics_step`. Shape: (num_envs, nu)."""
        return self.physics.ctrl

    def joint(self, names: Names) -> Joint:
        """Joints by name; a group holds hinges and slides."""
        found = find(self.model, "joint", names)
        one = single = isinstance(names, str)
        kinds = {
            name: mujoco.mjtJoint(int(self.model.jnt_type[joint])) for name, joint in found.items()
        }
        for name, kind in kinds.items():
            if not single and _WIDTHS[kind] != (1, 1):
                raise EnvironmentLoadError(
                    f"{name!r} is a {_word(kind)} joint: a group is of hinges and slides",
                    f"look it up by itself: self.joint({name!r})",
                )
        ids = list(found.values())
        positions, velocities = _WIDTHS[next(iter(kinds.values()))]
        single = single and positions == 1
        return Joint(
            self,
            Columns(_columns(self.model.jnt_qposadr[ids], positions), self.device, single),
            Columns(_columns(self.model.jnt_dofadr[ids], velocities), self.device, single),
            self._limits(self.model.jnt_range[ids], self.model.jnt_limited[ids], one),
        )

    def free_joint(self, name: str) -> FreeJoint:
        """The free joint of a body."""
        joint = find(self.model, "joint", name)[name]
        kind = mujoco.mjtJoint(int(self.model.jnt_type[joint]))
        if kind != mujoco.mjtJoint.mjJNT_FREE:
            raise EnvironmentLoadError(
                f"{name!r} is a {_word(kind)} joint, expected a free one",
                f"use self.joint({name!r})",
            )
        position, velocity = self.model.jnt_qposadr[joint], self.model.jnt_dofadr[joint]
        return FreeJoint(self, int(position), int(velocity))

    def actuator(self, names: Names) -> Actuator:
        """Actuators by name, with readable and writable controls: one each, or as many as the
        actuator has inputs."""
        columns: list[int] = []
        for name, actuator in find(self.model, "actuator", names).items():
            controls = controls_of(self.model, actuator).values()
            if not controls:
                raise EnvironmentLoadError(
                    f"the actuator {name!r} has no control: it has no input",
                    "give it an input in the MJCF, or leave it out here",
                )
            columns += controls
        ranges, limited = self.model.actuator_ctrlrange, self.model.actuator_ctrllimited
        single = isinstance(names, str) and len(columns) == 1
        limits = self._limits(ranges[columns], limited[columns], single)
        return Actuator(self, Columns(columns, self.device, single), limits)

    def sensor(self, names: Names) -> Sensor:
        """Sensors of the MJCF by name."""
        ids = list(find(self.model, "sensor", names).values())
        columns = [
            column
            for sensor in ids
            for column in _columns(
                self.model.sensor_adr[[sensor]], int(self.model.sensor_dim[sensor])
            )
        ]
        single = isinstance(names, str) and len(columns) == 1
        return Sensor(self, Columns(columns, self.device, single))

    def body(self, names: Names) -> Frame:
        """Poses and velocities of bodies by name."""
        return self._frame("body", names)

    def site(self, names: Names) -> Frame:
        """Poses and velocities of sites by name."""
        return self._frame("site", names)

    def mocap(self, name: str) -> MocapBody:
        """A mocap body, which stands or moves as it is written."""
        body = find(self.model, "body", name)[name]
        number = int(self.model.body_mocapid[body])
        if number < 0:
            raise EnvironmentLoadError(
                f"{name!r} is no mocap body",
                f'write mocap="true" in its <body>, or use self.body({name!r})',
            )
        return MocapBody(self, number)

    def contact(self, names: Names, other: str | None = None) -> Contact:
        """Contacts of geoms or a body's geoms with `other` or anything; a group has one each."""
        if not isinstance(other, (str, type(None))):
            raise EnvironmentLoadError(
                f"contact({names!r}, {other!r}): expected one name to be touched",
                "only the first may be a list, which gives each of a group its own contact",
            )
        firsts = find_geoms(self.model, names)
        seconds = {} if other is None else find_geoms(self.model, other)
        for name, (_, geoms) in firsts.items():
            for second, (_, others) in seconds.items():
                if not can_touch(self.model, geoms, others):
                    raise EnvironmentLoadError(
                        f"{name!r} and {second!r} can have no contact: the MJCF's contype and"
                        " conaffinity or an <exclude> leave them out, or they are of one body or of"
                        " two that a joint connects",
                        "give one of them a contype that the other's conaffinity has, or name the"
                        " two geoms in a <contact><pair>",
                    )
        targets = [_contact_target(kind, name) for name, (kind, _) in firsts.items()]
        touched = [_contact_target(kind, name) for name, (kind, _) in seconds.items()]
        counterpart = touched[0] if touched else Target()
        first = self._added_sensors.add(contact_readings(targets, counterpart))
        return Contact(AddedValues(self, first, _group(names, len(targets)), 4))

    def _frame(self, kind: Kind, names: Names) -> Frame:
        targets = [Target(_OBJECTS[kind], name) for name in find(self.model, kind, names)]

        def values(name: str, entries: int) -> AddedValues:
            sensor = getattr(mujoco.mjtSensor, f"mjSENS_FRAME{name}")
            first = self._added_sensors.add(frame_readings(sensor, targets))
            return AddedValues(self, first, _group(names, len(targets)), entries)

        return Frame(values("POS", 3), values("QUAT", 4), values("LINVEL", 3), values("ANGVEL", 3))

    def _limits(
        self, ranges: NDArray[np.float64], limited: NDArray[np.bool_], single: bool
    ) -> tuple[Tensor, Tensor]:
        """Lower and upper limits in float32, or infinity. Shape of each: () or (n,)."""
        unlimited = np.array([-np.inf, np.inf])
        values = np.where(limited.astype(bool)[:, None], ranges, unlimited)
        if single:
            values = values[0]
        lower, upper = torch.from_numpy(values.T.copy()).float().to(self.device)
        return lower, upper


def _columns(first: NDArray[np.int32], width: int) -> list[int]:
    return [int(start) + offset for start in first for offset in range(width)]


def _group(names: Names, length: int) -> tuple[int, ...]:
    """Dimension of a group, which one object does not have."""
    return () if isinstance(names, str) else (length,)


def _word(kind: mujoco.mjtJoint) -> str:
    return kind.name.removeprefix("mjJNT_").lower()


def _contact_target(kind: Kind, name: str) -> Target:
    return Target(mujoco.mjtObj.mjOBJ_GEOM if kind == "geom" else mujoco.mjtObj.mjOBJ_BODY, name)
