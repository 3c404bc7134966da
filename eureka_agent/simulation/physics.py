"""Interface of a MujocoTask's simulator, and that of the CPU: `mujoco.batch.Batch`."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import mujoco
import numpy as np
import torch
from mujoco.batch import Batch
from numpy.typing import NDArray
from torch import Tensor

STATE_FIELDS = (
    *("qpos", "qvel", "act", "ctrl", "qacc_warmstart", "time", "mocap_pos", "mocap_quat"),
    *("userdata", "eq_active", "qfrc_applied", "xfrc_applied", "plugin_state", "history"),
    "plastic",
)
"""Inputs of MuJoCo's next step (mjtState's integration state)."""
VIEWED = ("qpos", "qvel", "ctrl", "mocap_pos", "mocap_quat", "xfrc_applied", "sensordata")
"""Fields that are tensors of a `Physics`."""
_WARNING = mujoco.mjtWarning
_INSTABILITIES = slice(int(_WARNING.mjWARN_BADQPOS), int(_WARNING.mjWARN_BADQACC) + 1)
_MASSES = ("body_mass", "body_inertia")
"""Fields from which MuJoCo derives constants."""
_AFTER_STEP = mujoco.mjtStage.mjSTAGE_VEL
_NO_STAGE = mujoco.mjtStage.mjSTAGE_NONE


class Physics(ABC):
    """`num_envs` simulations of one model. Its tensors are live views of MuJoCo's shapes behind one
    by simulation."""

    qpos: Tensor
    qvel: Tensor
    ctrl: Tensor
    mocap_pos: Tensor
    mocap_quat: Tensor
    xfrc_applied: Tensor
    """Forces and torques on bodies, world. Shape: (num_envs, nbody, 6)."""
    has_models_of_rows: ClassVar[bool] = False
    """True where `change_model` can be used."""
    sensordata: Tensor
    """Shape: (num_envs, nsensordata). Position and velocity sensors are those of the state reached,
    others those of the last step before it."""

    @abstractmethod
    def step(self, rows: int, skipped: Tensor | None = None) -> Tensor:
        """Step the leading `rows`, with or without those `skipped` (bool); update `sensordata`.
        Returns rows that became NaN or huge and were reset, bool, shape (num_envs,)."""

    @abstractmethod
    def restart(self, env_ids: Tensor) -> None:
        """Put the rows `env_ids` (int64) at rest at qpos0, without applied forces."""

    @abstractmethod
    def forward(self, env_ids: Tensor) -> None:
        """Update all sensors of the rows `env_ids` after writes into qpos and qvel."""

    def change_model(self, env_ids: Tensor, fields: Mapping[str, Tensor]) -> None:
        """Write fields of the model, float64, for the rows `env_ids`; derived constants follow."""
        raise NotImplementedError("this simulator has one model for all rows")

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Live views of all inputs of the next step by MuJoCo's names, without empty ones."""


class BatchPhysics(Physics):
    """Simulations on the CPU, in one thread and in float64."""

    has_models_of_rows = True

    def __init__(self, model: mujoco.MjModel, num_envs: int, substeps: int) -> None:
        """`substeps`: physics steps in a control step."""
        # MuJoCo would print and write MUJOCO_LOG.TXT into the working folder; counters are read
        # instead
        mujoco.set_mju_user_warning(_ignore)
        self._num_envs = num_envs
        self._substeps = substeps
        self._batch = Batch(model, num_envs, nthread=1, persistent=True)
        self._start = self._batch.state[0].copy()
        # rows that only MuJoCo can reset: plugins may have a state, and counts of instabilities
        # last until then
        self._has_plugins = model.nplugin > 0
        self._needs_reset = np.full(num_envs, self._has_plugins)
        for name in VIEWED:
            setattr(self, name, self._view(name))

    def _view(self, name: str) -> Tensor:
        with warnings.catch_warnings():
            # torch warns of read-only arrays, which are only read here
            warnings.filterwarnings("ignore", message=".*not writable.*")
            return torch.from_numpy(self._batch.bind(name))

    def step(self, rows: int, skipped: Tensor | None = None) -> Tensor:
        ids = None if rows == self._num_envs else np.arange(rows)
        if skipped is not None:
            ids = np.flatnonzero(~skipped[:rows].numpy())
        self._batch.step(ids, nstep=self._substeps, stage=_AFTER_STEP)
        counts = self._batch.warning[:, _INSTABILITIES, 1]
        # column by column: numpy is slow on many rows of three
        unstable: NDArray[np.bool_] = (counts[:, 0] | counts[:, 1] | counts[:, 2]) != 0
        self._needs_reset |= unstable
        return torch.from_numpy(unstable)

    def restart(self, env_ids: Tensor) -> None:
        ids = env_ids.numpy()
        broken = ids[self._needs_reset[ids]]
        if len(broken):
            self._batch.reset(broken, stage=_NO_STAGE)
            self._needs_reset[broken] = self._has_plugins
        # equal to a reset, at a hundredth of its time
        self._batch.state[ids] = self._start

    def forward(self, env_ids: Tensor) -> None:
        self._batch.forward(env_ids.numpy())

    def change_model(self, env_ids: Tensor, fields: Mapping[str, Tensor]) -> None:
        ids = env_ids.numpy()
        has_other_masses = np.zeros(len(ids), dtype=bool)
        for name, value in fields.items():
            rows, numbers = self._batch.expand(name), value.numpy()
            if name in _MASSES:
                has_other_masses |= (rows[ids] != numbers).reshape(len(ids), -1).any(axis=1)
            rows[ids] = numbers
        if has_other_masses.any():  # it takes several times as long as a step
            self._batch.set_const(ids[has_other_masses])

    def state(self) -> dict[str, Tensor]:
        views = {name: self._view(name) for name in STATE_FIELDS}
        return {name: view for name, view in views.items() if view.numel()}


def _ignore(message: str) -> None:
    """Ignore MuJoCo's warning, which writes to the terminal and to a file."""
