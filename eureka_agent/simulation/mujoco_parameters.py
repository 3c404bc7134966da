"""Parameters of MuJoCo environments that a class lists: masses, frictions, forces, pushes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import mujoco
import torch
from torch import Tensor

from eureka_agent.simulation.mujoco_names import Names, find, find_geoms
from eureka_agent.simulation.row_parameters import ACTION_DELAY
from eureka_agent.task import Parameter

PUSH_PERIOD = 2.0
"""Seconds between two pushes."""
_TURN = 2.4
"""Radians between the directions of two pushes, the golden angle: they repeat late."""

_Ids = list[int]
_Find = Callable[[mujoco.MjModel, Names], _Ids]


@dataclass(frozen=True)
class ModelParameter(Parameter):
    """A factor on numbers of the MuJoCo model, whose default is 1."""

    of_model: ClassVar[bool] = True
    fields: tuple[str, ...] = ()
    """Fields of the model that it multiplies."""
    names: Names | None = None
    """Objects by name, as in lookups; None for all of them."""
    find: _Find | None = None
    """Gives the rows of the fields for `names`."""

    def rows(self, model: mujoco.MjModel) -> _Ids | slice:
        """Rows of the fields that it multiplies. Raises EnvironmentLoadError."""
        if self.names is None or self.find is None:
            return slice(None)
        return self.find(model, self.names)


@dataclass(frozen=True)
class Push(Parameter):
    """Horizontal pushes of a body, one in `PUSH_PERIOD` seconds, from a random time on."""

    body: str = ""
    axes: Literal["x", "xy"] = "xy"
    """Along x, forward or backward; or in any horizontal direction."""


def mass_of(
    bodies: Names | None, *, low: float, high: float, doc: str, name: str = "mass"
) -> ModelParameter:
    """Factor on mass and inertia of bodies; None for all of them."""
    fields = ("body_mass", "body_inertia")
    return ModelParameter(name, "1", 1.0, low, high, doc, fields, bodies, _bodies)


def friction_of(
    geoms: Names | None = None, *, low: float, high: float, doc: str, name: str = "friction"
) -> ModelParameter:
    """Factor on all friction coefficients of geoms, or of all geoms of bodies. The larger friction
    of two geoms counts in MuJoCo, so that the ground's belongs to it; None for all geoms."""
    return ModelParameter(name, "1", 1.0, low, high, doc, ("geom_friction",), geoms, _geoms)


def strength_of(
    actuators: Names | None = None,
    *,
    low: float,
    high: float,
    doc: str,
    name: str = "motor_strength",
) -> ModelParameter:
    """Factor on the force of actuators: its gains and its limits; None for all actuators."""
    fields = ("actuator_gainprm", "actuator_biasprm", "actuator_forcerange")
    return ModelParameter(name, "1", 1.0, low, high, doc, fields, actuators, _actuators)


def damping_of(
    joints: Names | None = None, *, low: float, high: float, doc: str, name: str = "damping"
) -> ModelParameter:
    """Factor on the damping of joints; None for all of them."""
    return ModelParameter(name, "1", 1.0, low, high, doc, ("dof_damping",), joints, _dofs)


def gravity(*, low: float, high: float, doc: str, name: str = "gravity") -> ModelParameter:
    """Factor on gravity."""
    return ModelParameter(name, "1", 1.0, low, high, doc, ("opt.gravity",))


def action_delay(*, high: float, doc: str) -> Parameter:
    """Control steps by which actions arrive late, rounded; up to `high`."""
    return Parameter(ACTION_DELAY, "control steps", 0.0, 0.0, high, doc)


def push_on(
    body: str, *, high: float, doc: str, axes: Literal["x", "xy"] = "xy", name: str = "push"
) -> Push:
    """Impulse of pushes on a body, N·s."""
    return Push(name, "N·s", 0.0, 0.0, high, doc, body, axes)


class ModelScaling:
    """Numbers of the model for rows whose parameters differ."""

    def __init__(self, model: mujoco.MjModel, parameters: Sequence[Parameter]) -> None:
        """Raises EnvironmentLoadError for a name that the model does not have."""
        self._factors: dict[str, list[tuple[str, _Ids | slice]]] = {}
        self._unscaled: dict[str, Tensor] = {}
        self.names: set[str] = set()
        """Parameters that change the model."""
        for parameter in parameters:
            if isinstance(parameter, ModelParameter):
                self.names.add(parameter.name)
                rows = parameter.rows(model)
                for field in parameter.fields:
                    self._factors.setdefault(field, []).append((parameter.name, rows))

    def fields(
        self, model: mujoco.MjModel, values: Mapping[str, Tensor], env_ids: Tensor
    ) -> dict[str, Tensor]:
        """Numbers of the rows `env_ids` by field, of the field's shape with the rows in front."""
        if not self._unscaled:  # at the first use, as an environment's __init__ may change them
            self._unscaled = {field: field_of(model, field) for field in self._factors}
        return {
            field: self._scaled(self._unscaled[field], factors, values, env_ids)
            for field, factors in self._factors.items()
        }

    @staticmethod
    def _scaled(
        unscaled: Tensor,
        factors: Sequence[tuple[str, _Ids | slice]],
        values: Mapping[str, Tensor],
        env_ids: Tensor,
    ) -> Tensor:
        result = unscaled.repeat(len(env_ids), *([1] * unscaled.dim()))
        for name, rows in factors:
            factor = values[name][env_ids].to(result)
            result[:, rows] *= factor.view(-1, *([1] * unscaled.dim()))
        return result


def field_of(model: mujoco.MjModel, field: str) -> Tensor:
    """A copy of a model's field, `opt.<name>` of its options; float64."""
    holder = model.opt if field.startswith("opt.") else model
    return torch.from_numpy(getattr(holder, field.removeprefix("opt.")).copy())


class Pusher:
    """Pushes of all rows by one parameter."""

    def __init__(self, model: mujoco.MjModel, push: Push, control_dt: float) -> None:
        """Raises EnvironmentLoadError for a body that the model does not have."""
        self._push = push
        self._body = find(model, "body", push.body)[push.body]
        self._control_dt = control_dt
        self._period = max(1, round(PUSH_PERIOD / control_dt))

    def write(self, applied: Tensor, impulse: Tensor, chances: Tensor, progress: Tensor) -> None:
        """Write the forces of this control step into `applied` (MuJoCo's xfrc_applied). `impulse`
        and `progress`: shape (num_envs,); `chances`: (2, num_envs), uniform."""
        steps = progress + (chances[0] * self._period).to(torch.int64)
        number = torch.div(steps, self._period, rounding_mode="floor")
        force = torch.where(steps % self._period == 0, impulse / self._control_dt, 0.0)
        angle = math.tau * chances[1] + _TURN * number
        along = torch.cos(angle)
        if self._push.axes == "x":
            applied[:, self._body, 0] = (force * along.sign()).to(applied)
        else:
            applied[:, self._body, 0] = (force * along).to(applied)
            applied[:, self._body, 1] = (force * torch.sin(angle)).to(applied)

    @property
    def name(self) -> str:
        """Name of its parameter."""
        return self._push.name


def pusher(
    model: mujoco.MjModel, parameters: Sequence[Parameter], control_dt: float
) -> Pusher | None:
    """Pusher of the first `Push` among the parameters; None without one."""
    pushes = (each for each in parameters if isinstance(each, Push))
    return next((Pusher(model, push, control_dt) for push in pushes), None)


def _bodies(model: mujoco.MjModel, names: Names) -> _Ids:
    return list(find(model, "body", names).values())


def _geoms(model: mujoco.MjModel, names: Names) -> _Ids:
    return [geom for _, geoms in find_geoms(model, names).values() for geom in geoms]


def _actuators(model: mujoco.MjModel, names: Names) -> _Ids:
    return list(find(model, "actuator", names).values())


def _dofs(model: mujoco.MjModel, names: Names) -> _Ids:
    joints = set(find(model, "joint", names).values())
    return [dof for dof, joint in enumerate(model.dof_jntid.tolist()) if joint in joints]
