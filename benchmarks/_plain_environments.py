"""Our hopper and ant as plain Gymnasium environments: the same MJCF stepped by `mujoco.mj_step`, in
numpy, one robot each.

Same observation, termination, start states and human reward as in `envs/` (tests/benchmarks holds
them against each other), without torch and without a look at MuJoCo's warnings, so there is nothing
that would slow them down.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

ENVIRONMENTS = Path(__file__).resolve().parents[1] / "envs"

Array = NDArray[np.float64]


class PlainEnvironment(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """One robot. A subclass defines observation, failure and reward."""

    name: str
    observations: int
    frame_skip = 2
    max_episode_length = 500
    position_noise: float
    velocity_noise: float

    def __init__(self) -> None:
        self.model = mujoco.MjModel.from_xml_path(
            str(ENVIRONMENTS / self.name / f"{self.name}.xml")
        )
        self.data = mujoco.MjData(self.model)
        self.observation_space = Box(-np.inf, np.inf, (self.observations,), np.float32)
        self.action_space = Box(-1.0, 1.0, (self.model.nu,), np.float32)
        hinge, slide = int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)
        self._noisy = self.model.jnt_qposadr[np.isin(self.model.jnt_type, (hinge, slide))]
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Stand at the start, with noise."""
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        noise = self.np_random.uniform(-self.position_noise, self.position_noise, len(self._noisy))
        self.data.qpos[self._noisy] += noise
        self.data.qvel[:] = self.velocity_noise * self.np_random.standard_normal(self.model.nv)
        mujoco.mj_forward(self.model, self.data)
        self._steps = 0
        return self.observe(np.zeros(self.model.nu)), {}

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """One control step; actions in [-1, 1]."""
        self.data.ctrl[:] = action
        mujoco.mj_step(self.model, self.data, nstep=self.frame_skip)
        self._steps += 1
        terminated = self.failed()
        truncated = self._steps >= self.max_episode_length and not terminated
        return self.observe(action), self.pay(action, terminated), terminated, truncated, {}

    def observe(self, action: NDArray[Any]) -> NDArray[np.float32]:
        """Observation of the state reached."""
        raise NotImplementedError

    def failed(self) -> bool:
        """True if the episode ends by failure."""
        raise NotImplementedError

    def pay(self, action: NDArray[Any], terminated: bool) -> float:
        """The human reward of the step."""
        raise NotImplementedError


class PlainHopper(PlainEnvironment):
    """See `envs/hopper/env.py`."""

    name = "hopper"
    observations = 12
    position_noise = 0.01
    velocity_noise = 0.01

    def observe(self, action: NDArray[Any]) -> NDArray[np.float32]:
        """See `PlainEnvironment`."""
        observation = np.empty(12, np.float32)
        observation[0:5] = self.data.qpos[1:6]
        observation[5:11] = np.clip(self.data.qvel, -10.0, 10.0)
        observation[11] = self.data.sensordata[0] > 0.0
        return observation

    def failed(self) -> bool:
        """See `PlainEnvironment`."""
        return bool(self.data.qpos[1] < 0.7 or abs(self.data.qpos[2]) > 0.6)

    def pay(self, action: NDArray[Any], terminated: bool) -> float:
        """See `PlainEnvironment`."""
        return float(self.data.qvel[0] + (1.0 - terminated) - 1e-3 * np.dot(action, action))


class PlainAnt(PlainEnvironment):
    """See `envs/ant/env.py`."""

    name = "ant"
    observations = 36
    position_noise = 0.1
    velocity_noise = 0.1

    def __init__(self) -> None:
        super().__init__()
        lower, upper = self.model.jnt_range[1:].T
        self._middle, self._half_range = (lower + upper) / 2.0, (upper - lower) / 2.0
        self._rotation = np.empty(9)

    def _axes(self) -> Array:
        """The torso's axes in the world, as columns, of the state reached (`xmat` is a substep
        old)."""
        mujoco.mju_quat2Mat(self._rotation, self.data.qpos[3:7])
        return self._rotation.reshape(3, 3)

    def _scaled(self) -> Array:
        return (self.data.qpos[7:15] - self._middle) / self._half_range

    def observe(self, action: NDArray[Any]) -> NDArray[np.float32]:
        """See `PlainEnvironment`."""
        position, velocity, axes = self.data.qpos, self.data.qvel, self._axes()
        observation = np.empty(36, np.float32)
        observation[0] = position[2]
        observation[1:4] = axes[:, 2]
        observation[4:6] = axes[0:2, 0]
        observation[6:9] = velocity[0:3] @ axes
        observation[9:12] = velocity[3:6]
        observation[12:20] = self._scaled()
        observation[20:28] = 0.1 * velocity[6:14]
        observation[28:36] = action
        return observation

    def failed(self) -> bool:
        """See `PlainEnvironment`."""
        return bool(self.data.qpos[2] < 0.3 or self._axes()[2, 2] < 0.0)

    def pay(self, action: NDArray[Any], terminated: bool) -> float:
        """See `PlainEnvironment`."""
        if terminated:
            return -2.0
        axes, velocity = self._axes(), self.data.qvel
        heading = axes[0, 0] / max(float(np.hypot(axes[0, 0], axes[1, 0])), 1e-12)
        at_limit = np.count_nonzero(np.abs(self._scaled()) > 0.99)
        return float(
            velocity[0]
            + 0.5 * min(heading / 0.8, 1.0)
            + 0.1 * (axes[2, 2] > 0.93)
            + 0.5
            - 0.005 * np.dot(action, action)
            - 0.05 * np.abs(action * 0.1 * velocity[6:14]).sum()
            - 0.1 * at_limit
        )


PLAIN = {"hopper": PlainHopper, "ant": PlainAnt}
