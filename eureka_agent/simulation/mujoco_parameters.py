"""Parameters of MuJoCo environments that a class lists: masses, frictions, forces, pushes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import mujoco
import torch
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.mujoco_names import Kind, Names, find, find_geoms
from eureka_agent.simulation.row_parameters import ACTION_DELAY
from eureka_agent.task import Parameter

PUSH_PERIOD = 2.0
"""Seconds between two pushes."""
_TURN = 2.4
"""Radians between the directions of two pushes, the golden angle: they repeat late."""

_OTHER_GAINS = (int(mujoco.mjtGain.mjGAIN_MUSCLE), int(mujoco.mjtGain.mjGAIN_DCMOTOR))


@dataclass(frozen=True)
class ModelParameter(Parameter):
    """A factor on numbers of the MuJoCo model, whose default is 1."""

    of_model: ClassVar[bool] = True
    fields: tuple[str, ...] = ()
    """Fields of the model that it multiplies."""
    names: Names | None = None
    """Objects by name, as in lookups; None for all of them."""
    kind: Kind = "body"
    """Kind of these objects; `"geom"` also takes bodies, for all their geoms."""

    def powers(self, model: mujoco.MjModel, field: str) -> Tensor:
        """1 where the factor multiplies, else 0, float64. Raises EnvironmentLoadError."""
        powers = torch.zeros_like(field_of(model, field))
        powers[slice(None) if self.names is None else self._rows(model, field)] = 1.0
        for actuator in range(model.nactuator if field == "actuator_gainprm" else 0):
            if powers[actuator].any() and model.actuator_gaintype[actuator] in _OTHER_GAINS:
                raise EnvironmentLoadError(
                    f"the actuator {model.actuator(actuator).name!r} is a muscle or a DC motor,"
                    " whose strength is no factor on its gain",
                    f"name the other actuators in the parameter {self.name!r}",
                )
        return powers

    def _rows(self, model: mujoco.MjModel, field: str) -> list[int]:
        """Rows of the field that belong to the named objects."""
        assert self.names is not None
        if self.kind == "geom":
            found = find_geoms(model, self.names).values()
            rows = [geom for _, geoms in found for geom in geoms]
        else:
            rows = list(find(model, self.kind, self.names).values())
        if field == "pair_friction":
            pairs = zip(model.pair_geom1, model.pair_geom2, strict=True)
            return [pair for pair, geoms in enumerate(pairs) if {*rows} & {*geoms}]
        if self.kind == "joint":
            return [dof for dof, joint in enumerate(model.dof_jntid.tolist()) if joint in rows]
        return rows


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
    return ModelParameter(name, "1", 1.0, low, high, doc, fields, bodies, "body")


def friction_of(
    geoms: Names | None = None, *, low: float, high: float, doc: str, name: str = "friction"
) -> ModelParameter:
    """Factor on all friction coefficients of geoms, or of all geoms of bodies, and of every
    `<pair>` with one of them. The larger friction of two geoms counts in MuJoCo, so that the
    ground's belongs to it; None for all geoms."""
    fields = ("geom_friction", "pair_friction")
    return ModelParameter(name, "1", 1.0, low, high, doc, fields, geoms, "geom")


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
    return ModelParameter(name, "1", 1.0, low, high, doc, fields, actuators, "actuator")


def damping_of(
    joints: Names | None = None, *, low: float, high: float, doc: str, name: str = "damping"
) -> ModelParameter:
    """Factor on the damping of joints, all coefficients of it; None for all of them."""
    fields = ("dof_damping", "dof_dampingpoly")
    return ModelParameter(name, "1", 1.0, low, high, doc, fields, joints, "joint")


def gravity(*, low: float, high: float, doc: str, name: str = "gravity") -> ModelParameter:
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
        self._factors: dict[str, list[tuple[str, Tensor]]] = {}
        self._unscaled: dict[str, Tensor] = {}
        self.names: set[str] = set()
        """Parameters that change the model."""
        for parameter in parameters:
            if isinstance(parameter, ModelParameter):
                self.names.add(parameter.name)
                for field in parameter.fields:
                    powers = parameter.powers(model, field)
                    if powers.any():
                        self._factors.setdefault(field, []).append((parameter.name, powers))

    def fields(
        self, model: mujoco.MjModel, values: Mapping[str, Tensor], env_ids: Tensor
    ) -> dict[str, Tensor]:
        """Numbers of the rows `env_ids` by field, of the field's shape with the rows in front."""
        if not self._unscaled:  # at the first use, as an environment's __init__ may change them
            self._unscaled = {field: field_of(model, field) for field in self._factors}
        found = {}
        for field, factors in self._factors.items():
            beside = [1] * self._unscaled[field].dim()
            found[field] = result = self._unscaled[field].repeat(len(env_ids), *beside)
            for name, powers in factors:
                result *= values[name][env_ids].to(result).view(-1, *beside) ** powers
        return found


def field_of(model: mujoco.MjModel, field: str) -> Tensor:
    """A copy of a model's field, `opt.<name>` of its options; float64."""
    holder = model.opt if field.startswith("opt.") else model
    return torch.from_numpy(getattr(holder, field.removeprefix("opt.")).copy())


class Pusher:
    def __init__(self, model: mujoco.MjModel, push: Push, control_dt: float) -> None:
        """Raises EnvironmentLoadError for a body that the model does not have."""
        self.name = push.name
        """Name of its parameter."""
        self._axes = push.axes
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
        if self._axes == "x":
            applied[:, self._body, 0] = (force * along.sign()).to(applied)
        else:
            applied[:, self._body, 0] = (force * along).to(applied)
            applied[:, self._body, 1] = (force * torch.sin(angle)).to(applied)
