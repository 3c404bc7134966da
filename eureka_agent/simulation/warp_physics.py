"""MuJoCo on a GPU by `mujoco_warp`, from the same MJCF as on the CPU, without waits for the device.
For tests it also runs on warp's CPU device, several times slower than `mujoco.batch.Batch`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.invocation import INSTALL_GPU
from eureka_agent.simulation.physics import STATE_FIELDS, VIEWED, Physics

_LARGEST = float(mujoco.mjMAXVAL)
"""Magnitude from which a state is broken, as in MuJoCo."""
_MOST_CONTACTS = 256
_MOST_CONSTRAINTS = 1024
_GEOM = mujoco.mjtGeom
_CONTACTS = {
    tuple(int(getattr(_GEOM, f"mjGEOM_{kind}")) for kind in kinds): count
    for *kinds, count in (
        ("PLANE", "SPHERE", 1),
        ("PLANE", "CAPSULE", 2),
        ("PLANE", "ELLIPSOID", 1),
        ("SPHERE", "SPHERE", 1),
        ("SPHERE", "CAPSULE", 1),
        ("SPHERE", "CYLINDER", 1),
        ("SPHERE", "BOX", 1),
        ("CAPSULE", "CAPSULE", 2),
        ("CAPSULE", "BOX", 2),
    )
}
"""Most contacts between two geoms by their types; 8 for all others, as between two boxes."""


class WarpPhysics(Physics):
    """Simulations in float32; all rows advance at once. Each has room for its model's contacts and
    constraints up to a limit; beyond it some are dropped, and the row counts as unstable."""

    def __init__(
        self, model: mujoco.MjModel, num_envs: int, substeps: int, device: torch.device, name: str
    ) -> None:
        """`name`: of the model. Raises EnvironmentLoadError for one that cannot be simulated."""
        self._warp, self._library = _libraries(name, device)
        # by name: a torch device "cuda" has no index
        self._device = self._warp.device_from_torch(str(device))
        self._substeps = substeps
        self._replays = self._device.is_cpu or self._warp.is_mempool_enabled(self._device)
        with self._warp.ScopedDevice(self._device):
            self._model = self._put_model(model, name)
            contacts, constraints = room(model, self._model.nxn_geom_pair_filtered.numpy())
            data = mujoco.MjData(model)
            size = {"nconmax": contacts, "njmax": constraints}
            self._data = self._library.put_data(model, data, num_envs, **size)
        for name in VIEWED:
            setattr(self, name, self._view(name))
        self._overflow = self._view("overflow")
        views = {name: self._view(name) for name in STATE_FIELDS if hasattr(self._data, name)}
        self._state = {name: view for name, view in views.items() if view.numel()}
        self._start = {name: value[:1].clone() for name, value in self._state.items()}
        overflows = self._library.OverflowType
        # the solver's iteration limits are reached normally
        self._losses = int(overflows.ALL & ~(overflows.ITERATIONS | overflows.LS_ITERATIONS))
        self._step = self._recording(self._launch_step)
        self._look = self._recording(self._launch_look)
        self._forward = self._recording(lambda: self._library.forward(self._model, self._data))
        self._compile(num_envs)

    def _compile(self, num_envs: int) -> None:
        """Launch every kernel once, so that none is compiled during a training."""
        self.step(num_envs)
        self._forward()
        for name, value in self._state.items():
            value.copy_(self._start[name].expand_as(value))
        self.sensordata.zero_()

    def _put_model(self, model: mujoco.MjModel, name: str) -> Any:
        if model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_SLEEP:
            what = f"{name} lets bodies sleep, which the simulation on a GPU does not know here"
            raise EnvironmentLoadError(what, "take the flag out, or use --device cpu")
        try:
            result = self._library.put_model(model)
        except (NotImplementedError, ValueError) as error:
            hint = "change the MJCF, or use --device cpu"
            if model.opt.solver == mujoco.mjtSolver.mjSOL_PGS:
                hint = 'write <option solver="Newton"/>, or use --device cpu'
            what = f"mujoco_warp cannot simulate {name}: {error}"
            raise EnvironmentLoadError(what, hint) from None
        contacts = importlib.import_module("eureka_agent.simulation.warp_contacts")
        result.callback.contactfilter = contacts.align_with_capsules
        # kernels would print to the terminal; flags are read instead
        result.opt.warn_overflow = 0
        # deterministic mode is off: on a GPU it took 1.7 to 6.8 times as long, and equal runs still
        # differed (benchmarks/LOG.md). The solver ends with the last row that converges; only a
        # graph can do that without asking the device
        conditional = self._replays and self._warp.is_conditional_graph_supported()
        result.opt.graph_conditional = self._device.is_cpu or conditional
        return result

    def _view(self, name: str) -> Tensor:
        view: Tensor = self._warp.to_torch(getattr(self._data, name))
        return view

    def _recording(self, launch: Callable[[], None]) -> _Recording:
        return _Recording(self._warp, self._device, launch, self._replays)

    def step(self, rows: int, skipped: Tensor | None = None) -> Tensor:
        self._step()
        numbers = torch.cat((self.qpos, self.qvel, self._state["qacc_warmstart"]), dim=1)
        # NaN fails every comparison
        unstable = ~(numbers.abs() <= _LARGEST).all(dim=1) | ((self._overflow & self._losses) != 0)
        self._overflow.zero_()
        for name, value in self._state.items():
            torch.where(_beside(unstable, value), self._start[name], value, out=value)
        self.sensordata.masked_fill_(unstable.unsqueeze(-1), 0.0)
        self._look()
        return unstable

    def _launch_step(self) -> None:
        for _ in range(self._substeps):
            self._library.step(self._model, self._data)

    def _launch_look(self) -> None:
        """Update positions, velocities and their sensors for the state reached."""
        self._library.fwd_position(self._model, self._data, factorize=False)
        self._library.sensor_pos(self._model, self._data)
        self._library.fwd_velocity(self._model, self._data)
        self._library.sensor_vel(self._model, self._data)

    def restart(self, env_ids: Tensor) -> None:
        for name, value in self._state.items():
            value[env_ids] = self._start[name]

    def forward(self, env_ids: Tensor) -> None:
        """Compute all rows; those not in `env_ids` keep the sensors of their last step."""
        before = self.sensordata.clone()
        self._forward()
        before[env_ids] = self.sensordata[env_ids]
        self.sensordata.copy_(before)

    def state(self) -> dict[str, Tensor]:
        return dict(self._state)


@dataclass
class _Recording:
    """Launches, compiled and made one by one at the first call, then replayed as a graph."""

    _warp: ModuleType
    _device: Any
    _launch: Callable[[], None]
    _replays: bool
    """False: every call launches one by one."""
    _compiled: bool = False
    _graph: Any = None

    def __call__(self) -> None:
        with self._warp.ScopedDevice(self._device):
            if not (self._replays and self._compiled):
                self._launch()
                self._compiled = True
                return
            if self._graph is None:
                with self._warp.ScopedCapture() as capture:
                    self._launch()
                self._graph = capture.graph
            self._warp.capture_launch(self._graph)


def room(model: mujoco.MjModel, pairs: NDArray[np.int32]) -> tuple[int | None, int | None]:
    """Most contacts and constraint rows (None: mujoco_warp chooses). `pairs`: shape (pairs, 2)."""
    if model.nflex or model.nhfield or (model.geom_type == _GEOM.mjGEOM_SDF).any():
        return None, None
    kinds = np.sort(model.geom_type[pairs], axis=1).tolist()
    most = sum(_CONTACTS.get((first, second), 8) for first, second in kinds)
    contacts = min(max(most, 1), _MOST_CONTACTS)
    dimension = int(max([1, *model.geom_condim.tolist(), *model.pair_dim.tolist()]))
    pyramidal = model.opt.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL
    rows_per_contact = 2 * (dimension - 1) if pyramidal and dimension > 1 else dimension
    rows = contacts * rows_per_contact
    rows += 2 * int(model.jnt_limited.sum() + model.tendon_limited.sum())  # either side of a limit
    rows += int((model.dof_frictionloss > 0).sum() + (model.tendon_frictionloss > 0).sum())
    rows += 6 * model.neq  # a weld has the most
    return contacts, min(max(rows, 1), _MOST_CONSTRAINTS)


def _beside(rows: Tensor, value: Tensor) -> Tensor:
    """Mask of rows with as many dimensions as `value`."""
    return rows.view(-1, *([1] * (value.dim() - 1)))


def _libraries(name: str, device: torch.device) -> tuple[ModuleType, ModuleType]:
    """`warp` and `mujoco_warp`, without their output at start and compilation."""
    try:
        warp = importlib.import_module("warp")
        warp.config.log_level = warp.LOG_ERROR
        library = importlib.import_module("mujoco_warp")
    except ImportError as error:
        raise EnvironmentLoadError(
            f"{name} on {str(device)!r} is simulated by mujoco_warp, which cannot be imported:"
            f" {error}",
            f"install it: {INSTALL_GPU}; or use --device cpu",
        ) from None
    warp.init()
    return warp, library
