"""Sensors that a task adds to its MJCF, so that poses and contact forces come with the sensor data.

What is asked for by name becomes a sensor of the model before it is simulated: so the simulators of
a CPU and of a GPU calculate the same, for the rows that were stepped alone, and nothing that nobody
asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import torch

from eureka_agent.errors import EnvironmentLoadError

_NOTHING = mujoco.mjtObj.mjOBJ_UNKNOWN
_FOUND_AND_FORCE = (1 << int(mujoco.mjtConDataField.mjCONDATA_FOUND)) | (
    1 << int(mujoco.mjtConDataField.mjCONDATA_FORCE)
)
_NET_FORCE = 3
"""The reduction of a contact sensor to one force in the world's frame, as MuJoCo numbers it."""


@dataclass(frozen=True)
class Target:
    """An object of the model that a sensor is about."""

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
    """A pose's or velocity's part of each target, in the world's frame."""
    entries = 4 if sensor == mujoco.mjtSensor.mjSENS_FRAMEQUAT else 3
    return [Reading(sensor, entries, target) for target in targets]


def contact_readings(targets: Sequence[Target], other: Target) -> list[Reading]:
    """Number of contacts, then the net force by `other` on each target in the world's frame."""
    # the sensor gives the force by its first object on its second
    return [
        Reading(
            mujoco.mjtSensor.mjSENS_CONTACT, 4, other, target, (_FOUND_AND_FORCE, _NET_FORCE, 1)
        )
        for target in targets
    ]


class AddedSensors:
    """Sensors that are added until the model is simulated, and the columns of their values."""

    def __init__(self) -> None:
        self._readings: list[Reading] = []
        self._columns: dict[tuple[Reading, ...], int] = {}
        self.entries = 0
        """Columns of all values."""
        self.values = torch.empty(0, 0)
        """Their float32 copies, from when the model is simulated. Shape: (num_envs, entries)."""
        self._is_complete = False

    def add(self, readings: Sequence[Reading]) -> int:
        """First column of the values of `readings`, which lie side by side. Raises
        EnvironmentLoadError."""
        key = tuple(readings)
        if key not in self._columns:
            if self._is_complete:
                # of a contact the target is the other, which may be anything
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
        """Make room for their values: from here on none can be added."""
        self._is_complete = True
        self.values = torch.zeros(num_envs, self.entries, device=device)

    def added_to(self, model: mujoco.MjModel, path: Path) -> mujoco.MjModel:
        """The model with these sensors behind its own, from the MJCF at `path`; `model` itself
        where there are none. What was changed in `model` stays changed."""
        if not self._readings:
            return model
        spec = mujoco.MjSpec.from_file(str(path))
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
    """All numbers of a model but those of its sensors and names."""
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
