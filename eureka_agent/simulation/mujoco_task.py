"""MuJoCo environments: all rows in one simulator, `mujoco.batch.Batch` or `mujoco_warp`."""

from __future__ import annotations

import inspect
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

import mujoco
import numpy as np
import torch
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.parameters import Distribution, ParameterError
from eureka_agent.simulation import mujoco_names
from eureka_agent.simulation.mujoco_lookups import AddedSensors, MujocoLookups
from eureka_agent.simulation.mujoco_parameters import ModelScaling, Push, Pusher
from eureka_agent.simulation.physics import BatchPhysics, Physics
from eureka_agent.simulation.row_parameters import gaussian
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Channel

UNSTABLE_PHYSICS = "unstable_physics"
"""Termination cause of a row that MuJoCo reset because its state became NaN or huge."""
_UNSTABLE = f"a position, velocity or acceleration is NaN or beyond {mujoco.mjMAXVAL:g}"


class _Sensors(dict[str, Tensor]):
    def __init__(self, model: mujoco.MjModel) -> None:
        super().__init__()
        self._model = model

    def __missing__(self, name: str) -> Tensor:
        raise mujoco_names.unknown_name(
            self._model, "<sensor>", name, mujoco_names.ids_by_name(self._model, "sensor")
        )


class MujocoTask(MujocoLookups, VecTask):
    """Base of environments simulated by MuJoCo: on the CPU in one thread and float64, on a GPU in
    float32. A subclass sets `model_file`, `num_actions`, `num_observations` and `control_dt`, and
    writes `compute_observations`, `compute_variables` and `compute_failures`. Positions and
    velocities are of the state reached; forces, touch and contacts of the last physics step."""

    gpu_modules = ("mujoco_warp", "warp")
    model_file: str
    """MJCF, a path relative to the file that defines the class, or an absolute one. An instance
    whose options choose it sets its own before `super().__init__(…)`."""
    position_noise: ClassVar[float] = 0.0
    """Uniform noise of start positions around qpos0, ± per hinge or slide coordinate (rad or m)."""
    velocity_noise: ClassVar[float] = 0.0
    """Standard deviation of Gaussian start velocities (rad/s or m/s)."""
    camera: ClassVar[str] = ""
    """Camera of the MJCF for videos; default: its first, else one that follows the robot."""
    simulator: ClassVar[Literal["warp"] | None] = None
    """`"warp"` uses a GPU's simulator on the CPU too, where it is slower; for tests."""

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        """Load the MJCF. Raises EnvironmentLoadError where it is missing or does not fit."""
        self.model = load_model(self)
        super().__init__(num_envs, device, seed)
        self.termination_conditions = {UNSTABLE_PHYSICS: _UNSTABLE, **self.termination_conditions}
        self.masses_and_sizes = (*self.masses_and_sizes, *mujoco_names.masses_and_sizes(self.model))
        self.frame_skip = substeps(type(self), self.model)
        self.joint_positions = torch.zeros(num_envs, self.model.nq, device=self.device)
        self.joint_velocities = torch.zeros(num_envs, self.model.nv, device=self.device)
        self._sensor_values = torch.zeros(num_envs, self.model.nsensordata, device=self.device)
        self._added_sensors = AddedSensors()
        self.sensors: dict[str, Tensor] = _Sensors(self.model)
        """Views of the sensor values by name: (num_envs,) or (num_envs, entries)."""
        for index in range(self.model.nsensor):
            first, entries = int(self.model.sensor_adr[index]), int(self.model.sensor_dim[index])
            values = self._sensor_values[:, first : first + entries]
            self.sensors[self.model.sensor(index).name] = values[:, 0] if entries == 1 else values
        self.unstable = torch.zeros(num_envs, dtype=torch.bool, device=self.device)
        low, high = torch.from_numpy(self.model.actuator_ctrlrange.T.copy())
        limited = torch.from_numpy(self.model.actuator_ctrllimited.astype(bool))
        self._ctrl_middle = torch.where(limited, (low + high) / 2.0, 0.0).to(self.device)
        self._ctrl_scale = torch.where(limited, (high - low) / 2.0, 1.0).to(self.device)
        single = [int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)]
        columns = self.model.jnt_qposadr[np.isin(self.model.jnt_type, single)]
        self._noisy_columns = torch.from_numpy(columns.astype(np.int64)).to(self.device)
        """Columns of qpos of hinges and slides, to which noise can be added."""
        self._scaling = ModelScaling(self.model, self.parameters)
        pushes = (each for each in self.parameters if isinstance(each, Push))
        pushers = (Pusher(self.model, push, self.control_dt) for push in pushes)
        self._pusher = next(pushers, None)

    @classmethod
    def channels_of_action(cls) -> tuple[Channel, ...]:
        """`action_channels`, else controls of the MJCF. Raises EnvironmentLoadError."""
        if cls.action_channels:
            return cls.action_channels
        model = load_model(cls)
        channels = []
        doc = "control of this actuator of the MJCF"
        for actuator in range(model.nactuator):
            for name, column in mujoco_names.controls_of(model, actuator).items():
                low, high = map(float, model.actuator_ctrlrange[column])
                limits = (low, high) if model.actuator_ctrllimited[column] and low < high else None
                channels.append(Channel(name, unit="?", doc=doc, range=limits))
        return tuple(channels)

    @cached_property
    def physics(self) -> Physics:
        """The simulator, made at the first access: lookups in `__init__` add sensors to it."""
        self.model = self._added_sensors.added_to(self.model, read_mjcf(self))
        physics: Physics
        if self.device.type == "cpu" and self.simulator != "warp":
            physics = BatchPhysics(self.model, self.num_envs, self.frame_skip)
        else:
            # imported on demand, as a plain installation does not have it
            from eureka_agent.simulation.warp_physics import WarpPhysics

            name = Path(self.model_file).name
            physics = WarpPhysics(self.model, self.num_envs, self.frame_skip, self.device, name)
        self._added_sensors.complete(self.num_envs, self.device)
        return physics

    def change_mjcf(self, spec: mujoco.MjSpec) -> None:
        """Change the MJCF before it is compiled: sensors, memory, a file of somebody else."""

    def pre_physics_step(self, actions: Tensor) -> None:
        """Map [-1, 1] to each actuator's ctrlrange."""
        self.ctrl[:] = self._ctrl_middle + self._ctrl_scale * actions

    def set_parameters(self, env_ids: Tensor, distribution: Distribution) -> None:
        """Raises ParameterError for a parameter of the model, too, where all rows have one."""
        asked = [name for name in distribution if name in self._scaling.names]
        if asked and not self.physics.has_models_of_rows:
            raise ParameterError(
                f"on {str(self.device)!r} all episodes have one model:"
                f" {', '.join(map(repr, asked))} cannot differ there",
                "use --device cpu, or leave these parameters out",
            )
        super().set_parameters(env_ids, distribution)

    def parameters_changed(self, env_ids: Tensor) -> None:
        """Write the numbers of the model that depend on parameters."""
        if self._scaling.names and self.physics.has_models_of_rows:
            fields = self._scaling.fields(self.model, self.parameter_values, env_ids)
            self.physics.change_model(env_ids, fields)

    def simulate(self) -> None:
        rows = self._row_parameters
        if self._pusher is not None and rows.are_drawn:
            impulse = self.parameter_values[self._pusher.name]
            applied = self.physics.xfrc_applied
            self._pusher.write(applied, impulse, rows.chances, self.progress_buf)
        self.unstable = self.physics.step(self.active_rows, self.skipped_rows)
        self._refresh(slice(None))

    def _refresh(self, rows: Tensor | slice) -> None:
        """Copy the simulator's state, and sensors of `rows`: a loaded row keeps its old ones."""
        self.joint_positions.copy_(self.qpos)
        self.joint_velocities.copy_(self.qvel)
        sensors, own = self.physics.sensordata, self._sensor_values.shape[1]
        self._sensor_values[rows] = sensors[rows, :own].to(self._sensor_values)
        if self._added_sensors.entries:
            self._added_values[rows] = sensors[rows, own:].to(self._added_values)

    def row_tensors(self) -> dict[str, Tensor]:
        """The simulator's own state, which holds qpos, qvel and ctrl, and added sensors as well."""
        own = super().row_tensors()
        if self._added_sensors.entries:
            own["added_sensors"] = self._added_values
        for name in ("qpos", "qvel", "ctrl"):
            own.pop(name, None)
        return {**own, **{f"physics.{name}": value for name, value in self.physics.state().items()}}

    def compute_termination(self) -> dict[str, Tensor]:
        """`compute_failures`, and rows with unstable physics."""
        stable = ~self.unstable
        failures = {cause: rows & stable for cause, rows in self.compute_failures().items()}
        return {**failures, UNSTABLE_PHYSICS: self.unstable}

    def compute_failures(self) -> dict[str, Tensor]:
        """Rows whose episode ends, by cause. Shape of each: (num_envs,), bool."""
        return {}

    def reset_idx(self, env_ids: Tensor) -> None:
        """Put rows at qpos0 with noise; a subclass with other start states overrides `place`."""
        self.physics.restart(env_ids)
        self.place(env_ids)
        self.physics.forward(env_ids)
        self.unstable.index_fill_(0, env_ids, False)
        self._refresh(env_ids)

    def reset_masked(self, mask: Tensor) -> None:
        """Restore the simulator's sensors as well, which are not part of its state."""
        sensors = self.physics.sensordata
        before = sensors.clone()
        super().reset_masked(mask)
        sensors.copy_(torch.where(mask.unsqueeze(-1), sensors, before))

    def place(self, env_ids: Tensor) -> None:
        """Write the start state of `env_ids`, at rest at qpos0, into `qpos` and `qvel`."""
        velocities = self.model.nv if self.velocity_noise else 0
        positions = len(self._noisy_columns) if self.position_noise else 0
        # drawn at once: for few rows the number of operations counts
        numbers = self.random.uniform(env_ids, positions + velocities)
        if positions:
            noise = numbers[:, :positions].to(self.qpos).sub_(0.5).mul_(2.0 * self.position_noise)
            self.qpos[env_ids.unsqueeze(1), self._noisy_columns] += noise
        if velocities:
            noise = gaussian(numbers[:, positions:], self.velocity_noise)
            self.qvel.index_copy_(0, env_ids, noise.to(self.qvel))


def load_model(task: MujocoTask | type[MujocoTask]) -> mujoco.MjModel:
    """Compile the MJCF of a task or of its class. Raises EnvironmentLoadError."""
    path = model_path(task)
    try:
        model = read_mjcf(task).compile()
    except ValueError as error:
        what = f"MuJoCo cannot load {str(path)!r}: {error}"
        raise EnvironmentLoadError(what, "correct the MJCF") from None
    cls = _class_of(task)
    # a class's own mapping may take other actions
    is_mapped = cls.pre_physics_step is MujocoTask.pre_physics_step
    if is_mapped and model.nu != task.num_actions:
        raise EnvironmentLoadError(
            f"{cls.__name__}.num_actions is {task.num_actions!r}, but {path.name} has {model.nu}"
            " controls of actuators",
            f"set num_actions = {model.nu}, or map actions to controls in a pre_physics_step",
        )
    return model


def read_mjcf(task: MujocoTask | type[MujocoTask]) -> mujoco.MjSpec:
    """The MJCF before compilation, with an instance's changes. Raises EnvironmentLoadError."""
    spec = mujoco.MjSpec.from_file(str(model_path(task)))
    if isinstance(task, MujocoTask):
        task.change_mjcf(spec)
    return spec


def model_path(task: MujocoTask | type[MujocoTask]) -> Path:
    """Path of the MJCF of a task or of its class. Raises EnvironmentLoadError."""
    cls = _class_of(task)
    if not hasattr(task, "model_file"):
        hint = 'write `model_file = "<name>.xml"` in the class'
        raise EnvironmentLoadError(f"{cls.__name__} names no model_file", hint)
    owner = next((each for each in cls.__mro__ if "model_file" in vars(each)), cls)
    path = Path(inspect.getfile(owner)).parent / task.model_file
    if not path.is_file():
        what = f"{cls.__name__}.model_file is {task.model_file!r}, but there is no {str(path)!r}"
        raise EnvironmentLoadError(what, "put the MJCF there")
    return path


def _class_of(task: MujocoTask | type[MujocoTask]) -> type[MujocoTask]:
    return type(task) if isinstance(task, MujocoTask) else task


def substeps(task: type[MujocoTask], model: mujoco.MjModel) -> int:
    """Physics steps per control step. Raises EnvironmentLoadError unless it is an integer."""
    timestep = float(model.opt.timestep)
    count = round(task.control_dt / timestep)
    if count < 1 or abs(count * timestep - task.control_dt) > 1e-9:
        raise EnvironmentLoadError(
            f"{task.__name__}.control_dt is {task.control_dt!r} s, which is no multiple of the"
            f" MJCF's timestep {timestep!r} s",
            f"set control_dt = {max(count, 1) * timestep:.10g}, or change <option timestep>",
        )
    return count
