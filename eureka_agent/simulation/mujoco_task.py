"""MuJoCo environments: one MJCF, all rows in one `mujoco.batch.Batch`."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import ClassVar

import mujoco
import numpy as np
import torch
from mujoco.batch import Batch
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.random import gaussian
from eureka_agent.simulation.vec_task import VecTask

UNSTABLE_PHYSICS = "unstable_physics"
"""Termination cause of a row whose state MuJoCo found to be NaN or huge, and therefore reset by itself."""

_INSTABILITIES = slice(int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADQACC) + 1)
_STATE_FIELDS = (
    *("qpos", "qvel", "act", "ctrl", "qacc_warmstart", "time", "mocap_pos", "mocap_quat"),
    *("userdata", "eq_active", "qfrc_applied", "xfrc_applied", "plugin_state", "history"),
)
"""What MuJoCo's next step depends on (mjtState's integration state)."""
_AFTER_STEP = mujoco.mjtStage.mjSTAGE_VEL
_NO_STAGE = mujoco.mjtStage.mjSTAGE_NONE


class MujocoTask(VecTask):
    """Base of environments simulated by MuJoCo on the CPU, in one thread.

    A subclass names `model_file`, `num_actions`, `num_observations` and `control_dt`, and writes `compute_observations`,
    `compute_variables` and `compute_failures`; there it reads the float32 copies `joint_positions` (qpos), `joint_velocities`
    (qvel) and `sensors`, which are current after every step and reset. Everything that it wants to read beside qpos and qvel
    should be a `<sensor>` of the MJCF. Position and velocity sensors describe the state reached; force and touch sensors
    the last physics step towards it.
    """

    model_file: ClassVar[str]
    """MJCF, a path relative to the file that defines the class."""
    position_noise: ClassVar[float] = 0.0
    """Episodes start at qpos0 plus uniform noise of up to this, per hinge or slide coordinate (rad or m)."""
    velocity_noise: ClassVar[float] = 0.0
    """Episodes start with Gaussian velocities of this standard deviation (rad/s or m/s)."""

    def __init__(self, num_envs: int, device: torch.device | str = "cpu", seed: int = 0) -> None:
        """Load the MJCF. Raises EnvironmentLoadError when it is missing, broken or does not match the class."""
        self.model = load_model(type(self))
        super().__init__(num_envs, device, seed)
        if self.device.type != "cpu":
            raise EnvironmentLoadError(
                f"{type(self).__name__} was asked for on {str(self.device)!r}, but it simulates on the CPU",
                "use --device cpu",
            )
        self.frame_skip = substeps(type(self), self.model)
        # MuJoCo would print a line and write MUJOCO_LOG.TXT into the working folder; the counters are read instead
        mujoco.set_mju_user_warning(_ignore)
        self.batch = Batch(self.model, num_envs, nthread=1, persistent=True)
        self.qpos = self._view("qpos")
        self.qvel = self._view("qvel")
        self.ctrl = self._view("ctrl")
        self._sensordata = self._view("sensordata")
        self.joint_positions = torch.zeros(num_envs, self.model.nq)
        self.joint_velocities = torch.zeros(num_envs, self.model.nv)
        self._sensor_values = torch.zeros(num_envs, self.model.nsensordata)
        self.sensors = self._name_sensors()
        self.unstable = torch.zeros(num_envs, dtype=torch.bool)
        low, high = torch.from_numpy(self.model.actuator_ctrlrange.T.copy())
        limited = torch.from_numpy(self.model.actuator_ctrllimited.astype(bool))
        self._ctrl_middle = torch.where(limited, (low + high) / 2.0, 0.0)
        self._ctrl_scale = torch.where(limited, (high - low) / 2.0, 1.0)
        self._noisy_positions = _single_coordinates(self.model)

    def _view(self, name: str) -> Tensor:
        """Live float64 tensor over a field of all simulations. Shape: (num_envs, ...)."""
        with warnings.catch_warnings():
            # outputs are read-only arrays, of which torch warns; they are only read here
            warnings.filterwarnings("ignore", message=".*not writable.*")
            return torch.from_numpy(self.batch.bind(name))

    def _name_sensors(self) -> dict[str, Tensor]:
        """Live views of the float32 sensor values by sensor name: (num_envs,) for a scalar, else (num_envs, entries)."""
        views = {}
        for index in range(self.model.nsensor):
            start, entries = int(self.model.sensor_adr[index]), int(self.model.sensor_dim[index])
            values = self._sensor_values[:, start : start + entries]
            views[self.model.sensor(index).name] = values[:, 0] if entries == 1 else values
        return views

    def pre_physics_step(self, actions: Tensor) -> None:
        """Map [-1, 1] onto each actuator's ctrlrange."""
        self.ctrl[:] = self._ctrl_middle + self._ctrl_scale * actions

    def simulate(self) -> None:
        rows = None if self.active_rows == self.num_envs else np.arange(self.active_rows)
        self.batch.step(rows, nstep=self.frame_skip, stage=_AFTER_STEP)
        self.unstable = torch.from_numpy(self.batch.warning[:, _INSTABILITIES, 1].any(axis=1))
        self._refresh()

    def _refresh(self) -> None:
        self.joint_positions.copy_(self.qpos)
        self.joint_velocities.copy_(self.qvel)
        self._sensor_values.copy_(self._sensordata)

    def row_tensors(self) -> dict[str, Tensor]:
        """With MuJoCo's own state in place of views of its outputs, which the next step computes from it."""
        own = super().row_tensors()
        del own["_sensordata"]
        return {**own, **{f"physics.{name}": self._view(name) for name in _STATE_FIELDS}}

    def compute_termination(self) -> dict[str, Tensor]:
        """`compute_failures`, and rows whose physics broke."""
        stable = ~self.unstable
        failures = {cause: rows & stable for cause, rows in self.compute_failures().items()}
        return {**failures, UNSTABLE_PHYSICS: self.unstable}

    def compute_failures(self) -> dict[str, Tensor]:
        """Rows whose episode ends here, by cause. Shape of each: (num_envs,), bool."""
        return {}

    def reset_idx(self, env_ids: Tensor) -> None:
        """Put rows at qpos0 with noise; a subclass with other start states overrides `place`."""
        ids = env_ids.numpy()
        self.batch.reset(ids, stage=_NO_STAGE)
        self.place(env_ids)
        self.batch.forward(ids)
        self.unstable[env_ids] = False
        self._refresh()

    def place(self, env_ids: Tensor) -> None:
        """Write the start state of the rows `env_ids`, which are at qpos0 and at rest, into `qpos` and `qvel`."""
        columns, velocities = self._noisy_positions, self.model.nv if self.velocity_noise else 0
        positions = len(columns) if self.position_noise else 0
        # drawn at once: the rows are few, and what counts is the number of operations
        numbers = self.random.uniform(env_ids, positions + 2 * velocities)
        if positions:
            noise = -self.position_noise + 2.0 * self.position_noise * numbers[:, :positions]
            self.qpos[env_ids.unsqueeze(-1), columns] += noise.double()
        if velocities:
            self.qvel.index_copy_(0, env_ids, gaussian(numbers[:, positions:], self.velocity_noise).double())


def load_model(task: type[MujocoTask]) -> mujoco.MjModel:
    """The class's MJCF, compiled. Raises EnvironmentLoadError."""
    owner = next((cls for cls in task.__mro__ if "model_file" in vars(cls)), None)
    if owner is None:
        raise EnvironmentLoadError(
            f"{task.__name__} names no model_file", 'write `model_file = "<name>.xml"` in the class'
        )
    path = Path(inspect.getfile(owner)).parent / task.model_file
    if not path.is_file():
        raise EnvironmentLoadError(
            f"{task.__name__}.model_file is {task.model_file!r}, but there is no {str(path)!r}", "put the MJCF there"
        )
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        raise EnvironmentLoadError(f"MuJoCo cannot load {str(path)!r}: {error}", "correct the MJCF") from None
    if model.nu != task.num_actions:
        raise EnvironmentLoadError(
            f"{task.__name__}.num_actions is {task.num_actions!r}, but {path.name} has {model.nu} actuators",
            f"set num_actions = {model.nu}",
        )
    return model


def substeps(task: type[MujocoTask], model: mujoco.MjModel) -> int:
    """Physics steps in one control step. Raises EnvironmentLoadError when `control_dt` is no multiple of the MJCF's timestep."""
    timestep = float(model.opt.timestep)
    count = round(task.control_dt / timestep)
    if count < 1 or abs(count * timestep - task.control_dt) > 1e-9:
        raise EnvironmentLoadError(
            f"{task.__name__}.control_dt is {task.control_dt!r} s, which is no multiple of the MJCF's timestep {timestep!r} s",
            f"set control_dt = {max(count, 1) * timestep!r}, or change <option timestep>",
        )
    return count


def _single_coordinates(model: mujoco.MjModel) -> Tensor:
    """Columns of qpos that belong to hinge and slide joints, to which noise can be added."""
    single = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    addresses = [
        int(address) for address, kind in zip(model.jnt_qposadr, model.jnt_type, strict=True) if int(kind) in single
    ]
    return torch.tensor(addresses, dtype=torch.int64)


def _ignore(message: str) -> None:
    """In place of MuJoCo's own warning, which writes to the terminal and to a file."""
