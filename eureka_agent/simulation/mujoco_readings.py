"""Sensors that a lookup adds to the MJCF before simulation, for poses and contact forces. So CPU
and GPU calculate the same, for stepped rows alone, and nothing that is not looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
import torch

from eureka_agent.errors import EnvironmentLoadError

_NOTHING = mujoco.mjtObj.mjOBJ_UNKNOWN
_FOUND_AND_FORCE = (1 << int(mujoco.mjtConDataField.mjCONDATA_FOUND)) | (
    1 << int(mujoco.mjtConDataField.mjCONDATA_FORCE)
)
_NET_FORCE = 3
"""MuJoCo's number of the reduction of a contact sensor to one force in the world's frame."""


@dataclass(frozen=True)
class Target:
    """Object of the model that a sensor measures."""

    kind: mujoco.mjtObj = _NOTHING
    name: str = ""


@dataclass(frozen=True)
class Reading:
    """One sensor to add."""

    type: mujoco.mjtSensor
    entries: int
    target: Target
    reference: Target = Target()
    parameters: tuple[int, int, int] = (0, 0, 0)


def frame_readings(sensor: mujoco.mjtSensor, targets: Sequence[Target]) -> list[Reading]:
    """Sensors of one part of each target's pose or velocity, in the world's frame."""
    entries = 4 if sensor == mujoco.mjtSensor.mjSENS_FRAMEQUAT else 3
    return [Reading(sensor, entries, target) for target in targets]


def contact_readings(targets: Sequence[Target], other: Target) -> list[Reading]:
    """Sensors of each target's contacts: count and net force by `other` in the world's frame."""
    # the sensor gives the force of its first object on its second
    parameters = (_FOUND_AND_FORCE, _NET_FORCE, 1)
    contact = mujoco.mjtSensor.mjSENS_CONTACT
    return [Reading(contact, 4, other, target, parameters) for target in targets]


class AddedSensors:
    """Sensors added before the model is simulated, and their values' columns."""

    def __init__(self) -> None:
        self._readings: list[Reading] = []
        self._columns: dict[tuple[Reading, ...], int] = {}
        self.entries = 0
        self.values = torch.empty(0, 0)
        """float32 copies, once the model is simulated. Shape: (num_envs, entries)."""
        self._is_complete = False

    def add(self, readings: Sequence[Reading]) -> int:
        """Add sensors; return their first column. Raises EnvironmentLoadError."""
        key = tuple(readings)
        if key not in self._columns:
            if self._is_complete:
                # a contact's target is the other object, which may be anything
                names = dict.fromkeys(each.reference.name or each.target.name for each in key)
                raise EnvironmentLoadError(
                    f"{', '.join(map(repr, names))} was looked up after the simulation had been"
                    " made",
                    "look bodies, sites and contacts up in __init__, after super().__init__(…) and"
                    " before anything is read",
                )
            self._columns[key] = self.entries
            self._readings.extend(key)
            self.entries += sum(reading.entries for reading in key)
        return self._columns[key]

    def complete(self, num_envs: int, device: torch.device) -> None:
        """Allocate their values; no further sensors can be added."""
        self._is_complete = True
        self.values = torch.zeros(num_envs, self.entries, device=device)

    def added_to(self, model: mujoco.MjModel, spec: mujoco.MjSpec) -> mujoco.MjModel:
        """`model` with these sensors after its own, from its MJCF; keeps the model's changes."""
        if not self._readings:
            return model
        for reading in self._readings:
            spec.add_sensor(
                type=reading.type,
                objtype=reading.target.kind,
                objname=reading.target.name,
                reftype=reading.reference.kind,
                refname=reading.reference.name,
                intprm=reading.parameters,
            )
        result = spec.compile()
        _copy_fields(model, result)
        return result


def _copy_fields(source: mujoco.MjModel, target: mujoco.MjModel) -> None:
    """Copy all numbers of a model but those of sensors and names."""
    for name in dir(source):
        value = getattr(source, name)
        if isinstance(value, np.ndarray) and not name.startswith(("_", "sensor_", "name")):
            getattr(target, name)[...] = value
    for name in dir(source.opt):
        value = getattr(source.opt, name)
        if isinstance(value, np.ndarray):
            getattr(target.opt, name)[...] = value
        elif isinstance(value, (int, float)):
            setattr(target.opt, name, value)
