"""Lookups of a MujocoTask: joints, actuators, sensors, bodies, sites and contacts by name. Poses
and contact forces are sensors that a lookup adds to the MJCF before simulation. So CPU and GPU
calculate the same, for stepped rows alone, and nothing that is not looked up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.mujoco_names import Kind, Names, controls_of, find, find_geoms
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

_OBJECT = mujoco.mjtObj
_OBJECTS: dict[Kind, mujoco.mjtObj] = {"body": _OBJECT.mjOBJ_XBODY, "site": _OBJECT.mjOBJ_SITE}
_JOINT = mujoco.mjtJoint
_WIDTHS = {_JOINT.mjJNT_FREE: (7, 6), _JOINT.mjJNT_BALL: (4, 3)}
_WIDTHS |= dict.fromkeys((_JOINT.mjJNT_SLIDE, _JOINT.mjJNT_HINGE), (1, 1))
"""Entries of a joint in qpos and in qvel."""
_FRAME_SENSORS = {"FRAMEPOS": 3, "FRAMEQUAT": 4, "FRAMELINVEL": 3, "FRAMEANGVEL": 3}
"""Entries of the sensors of a frame."""
_DATA = mujoco.mjtConDataField
_FOUND_AND_FORCE = (1 << int(_DATA.mjCONDATA_FOUND)) | (1 << int(_DATA.mjCONDATA_FORCE))
_NET_FORCE = 3
"""MuJoCo's number of the reduction of a contact sensor to one force in the world's frame."""


@dataclass(frozen=True)
class Target:
    kind: mujoco.mjtObj = mujoco.mjtObj.mjOBJ_UNKNOWN
    name: str = ""


@dataclass(frozen=True)
class SensorReading:
    type: mujoco.mjtSensor
    entries: int
    target: Target
    reference: Target = Target()
    parameters: tuple[int, int, int] = (0, 0, 0)


class AddedSensors:
    """Sensors added before the model is simulated, and their values' columns."""

    def __init__(self) -> None:
        self._columns: dict[tuple[SensorReading, ...], int] = {}
        """First column of readings that are added together."""
        self.entries = 0
        self.values = torch.empty(0, 0)
        """float32 copies, once the model is simulated. Shape: (num_envs, entries)."""
        self._is_complete = False

    def add(self, *readings: SensorReading) -> int:
        """Add sensors; return their first column. Raises EnvironmentLoadError."""
        if readings not in self._columns:
            if self._is_complete:
                # a contact's target is the other object, which may be anything
                names = dict.fromkeys(each.reference.name or each.target.name for each in readings)
                raise EnvironmentLoadError(
                    f"{', '.join(map(repr, names))} was looked up after the simulation had been"
                    " made",
                    "look bodies, sites and contacts up in __init__, after super().__init__(…) and"
                    " before anything is read",
                )
            self._columns[readings] = self.entries
            self.entries += sum(reading.entries for reading in readings)
        return self._columns[readings]

    def complete(self, num_envs: int, device: torch.device) -> None:
        """Allocate their values; no further sensors can be added."""
        self._is_complete = True
        self.values = torch.zeros(num_envs, self.entries, device=device)

    def added_to(self, model: mujoco.MjModel, spec: mujoco.MjSpec) -> mujoco.MjModel:
        """`model` with these sensors after its own, from its MJCF; keeps the model's changes."""
        if not self._columns:
            return model
        for reading in (each for readings in self._columns for each in readings):
            target, beside = reading.target, reading.reference
            kinds = {"type": reading.type, "objtype": target.kind, "reftype": beside.kind}
            names = {"objname": target.name, "refname": beside.name}
            spec.add_sensor(**kinds, **names, intprm=reading.parameters)
        result = spec.compile()
        for name in dir(model):  # all numbers but those of sensors and names
            value = getattr(model, name)
            if isinstance(value, np.ndarray) and not name.startswith(("_", "sensor_", "name")):
                getattr(result, name)[...] = value
        for name in dir(model.opt):
            value = getattr(model.opt, name)
            if isinstance(value, np.ndarray):
                getattr(result.opt, name)[...] = value
            elif isinstance(value, (int, float)):
                setattr(result.opt, name, value)
        return result


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
        single = isinstance(names, str)
        for name, joint in found.items():
            if not single and _WIDTHS[self._joint_type(joint)] != (1, 1):
                raise EnvironmentLoadError(
                    f"{name!r} is a {self._joint_word(joint)} joint: a group is of hinges and"
                    " slides",
                    f"look it up by itself: self.joint({name!r})",
                )
        ids = list(found.values())
        positions, velocities = _WIDTHS[self._joint_type(ids[0])]
        alone = single and positions == 1
        return Joint(
            self,
            Columns(_columns(self.model.jnt_qposadr[ids], positions), self.device, alone),
            Columns(_columns(self.model.jnt_dofadr[ids], velocities), self.device, alone),
            self._limits(self.model.jnt_range[ids], self.model.jnt_limited[ids], single),
        )

    def free_joint(self, name: str) -> FreeJoint:
        joint = find(self.model, "joint", name)[name]
        if self._joint_type(joint) != mujoco.mjtJoint.mjJNT_FREE:
            what = f"{name!r} is a {self._joint_word(joint)} joint, expected a free one"
            raise EnvironmentLoadError(what, f"use self.joint({name!r})")
        position, velocity = self.model.jnt_qposadr[joint], self.model.jnt_dofadr[joint]
        return FreeJoint(self, int(position), int(velocity))

    def actuator(self, names: Names) -> Actuator:
        """Actuators with readable and writable controls, one for each input."""
        columns: list[int] = []
        for name, actuator in find(self.model, "actuator", names).items():
            controls = controls_of(self.model, actuator).values()
            if not controls:
                what = f"the actuator {name!r} has no control: it has no input"
                hint = "give it an input in the MJCF, or leave it out here"
                raise EnvironmentLoadError(what, hint)
            columns += controls
        ranges, limited = self.model.actuator_ctrlrange, self.model.actuator_ctrllimited
        single = isinstance(names, str) and len(columns) == 1
        limits = self._limits(ranges[columns], limited[columns], single)
        return Actuator(self, Columns(columns, self.device, single), limits)

    def sensor(self, names: Names) -> Sensor:
        first, count = self.model.sensor_adr, self.model.sensor_dim
        found = find(self.model, "sensor", names).values()
        columns = [int(first[each]) + entry for each in found for entry in range(int(count[each]))]
        single = isinstance(names, str) and len(columns) == 1
        return Sensor(self, Columns(columns, self.device, single))

    def body(self, names: Names) -> Frame:
        return self._frame("body", names)

    def site(self, names: Names) -> Frame:
        return self._frame("site", names)

    def mocap(self, name: str) -> MocapBody:
        """A mocap body, which stands or moves as it is written."""
        number = int(self.model.body_mocapid[find(self.model, "body", name)[name]])
        if number < 0:
            hint = f'write mocap="true" in its <body>, or use self.body({name!r})'
            raise EnvironmentLoadError(f"{name!r} is no mocap body", hint)
        return MocapBody(self, number)

    def contact(self, names: Names, other: str | None = None) -> Contact:
        """Contacts of geoms or a body's geoms with `other` or anything; a group has one each."""
        if not isinstance(other, (str, type(None))):
            what = f"contact({names!r}, {other!r}): expected one name to be touched"
            hint = "only the first may be a list, which gives each of a group its own contact"
            raise EnvironmentLoadError(what, hint)
        firsts = find_geoms(self.model, names)
        seconds = {} if other is None else find_geoms(self.model, other)
        targets, touched = (
            [
                Target(getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), name)
                for name, (kind, _) in found.items()
            ]
            for found in (firsts, seconds)
        )
        # the sensor gives the force of its first object on its second
        counterpart = (touched or [Target()])[0]
        facts = (_FOUND_AND_FORCE, _NET_FORCE, 1)
        kind = mujoco.mjtSensor.mjSENS_CONTACT
        readings = (SensorReading(kind, 4, counterpart, target, facts) for target in targets)
        first = self._added_sensors.add(*readings)
        return Contact(AddedValues(self, first, _group(names, len(targets)), 4))

    def _frame(self, kind: Kind, names: Names) -> Frame:
        targets = [Target(_OBJECTS[kind], name) for name in find(self.model, kind, names)]
        values = []
        for name, entries in _FRAME_SENSORS.items():
            sensor = getattr(mujoco.mjtSensor, f"mjSENS_{name}")
            readings = (SensorReading(sensor, entries, each) for each in targets)
            first = self._added_sensors.add(*readings)
            values.append(AddedValues(self, first, _group(names, len(targets)), entries))
        return Frame(*values)

    def _joint_type(self, joint: int) -> mujoco.mjtJoint:
        return mujoco.mjtJoint(int(self.model.jnt_type[joint]))

    def _joint_word(self, joint: int) -> str:
        return self._joint_type(joint).name.removeprefix("mjJNT_").lower()

    def _limits(
        self, ranges: NDArray[np.float64], limited: NDArray[np.bool_], single: bool
    ) -> tuple[Tensor, Tensor]:
        """Lower and upper limits in float32, or infinity. Shape of each: () or (n,)."""
        values = np.where(limited.astype(bool)[:, None], ranges, np.array([-np.inf, np.inf]))
        values = values[0] if single else values
        lower, upper = torch.from_numpy(values.T.copy()).float().to(self.device)
        return lower, upper


def _columns(first: NDArray[np.int32], width: int) -> list[int]:
    return [int(start) + offset for start in first for offset in range(width)]


def _group(names: Names, length: int) -> tuple[int, ...]:
    """Dimension of a group, which one object does not have."""
    return () if isinstance(names, str) else (length,)
