"""Base for task classes of IsaacGymEnvs, whose code stays unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar

import torch
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.vec_task import Transition, VecTask
from eureka_agent.task import Variable

NATIVE_REWARD = Variable(
    "native_reward",
    (),
    "1",
    "-",
    "the task's own rew_buf of this step; 0 right after a reset",
    private=True,
)

_CONFIGURED = {
    "num_observations": "numObservations",
    "num_actions": "numActions",
    "max_episode_length": "episodeLength",
}
"""Class attributes, and the keys of their values in the configuration's section `env`."""


class IsaacGymTask(VecTask):
    """Replaces IsaacGymEnvs' `VecTask` as base of a task class, whose body stays unchanged.

    The task keeps its constructor (`cfg, rl_device, sim_device, graphics_device_id, headless, …`),
    `pre_physics_step`, `post_physics_step`, `reset_idx`, `compute_observations` and
    `compute_reward`. It needs in addition: `config` (the content of its YAML file), `variables`
    with `compute_variables`, `simulate` unless Isaac Gym's own simulator is used, and as class
    attributes those of `num_observations`, `num_actions` and `max_episode_length` that it sets in
    its constructor.

    `advance` clears `reset_buf` before the step, so that the task resets no row by itself and the
    last state of an episode can be read. A row flagged in its last step (`progress_buf >=
    max_episode_length - 1`) counts as truncated, any other as terminated. The task draws from
    torch's global generator, which is seeded from a row's own stream while that row is reset, one
    row after the other; numbers drawn elsewhere are not reproducible per row. The task's own reward
    is the private variable `native_reward`.
    """

    quaternion_order = "xyzw"
    restorable = False  # a task whose state is all in torch tensors may set True
    config: ClassVar[Mapping[str, Any]]
    """Settings with the sections `env` and `sim`; a `Task`'s options override those of `env`."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Take missing class attributes from `config`."""
        super().__init_subclass__(**arguments)
        if "config" in vars(cls):
            section = cls.config["env"]
            for attribute, key in _CONFIGURED.items():
                if attribute not in vars(cls) and key in section:
                    setattr(cls, attribute, section[key])
            if "control_dt" not in vars(cls):
                cls.control_dt = cls.config["sim"]["dt"] * section.get("controlFrequencyInv", 1)

    def __init__(
        self,
        config: dict[str, Any],
        rl_device: str = "cpu",
        sim_device: str = "cpu",
        graphics_device_id: int = -1,
        headless: bool = True,
        *unused: Any,
        **unused_by_name: Any,
    ) -> None:
        """IsaacGymEnvs' constructor; further arguments of a task are ignored."""
        self.cfg = config
        section = config["env"]
        self.num_observations = self.num_obs = section["numObservations"]
        self.num_actions = section["numActions"]
        # a task may set this before it calls this constructor
        if "max_episode_length" not in vars(self):
            self.max_episode_length = type(self).max_episode_length
        super().__init__(section["numEnvs"], sim_device, config.get("seed", 0))
        self.resets_by_mask = False  # rows are reset one by one
        self.rl_device = rl_device
        self.graphics_device_id = graphics_device_id
        self.headless = headless
        self.viewer = None
        self.dt = config["sim"]["dt"]
        self.reset_buf = torch.ones(self.num_envs, dtype=torch.long, device=self.device)
        self.timeout_buf = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)

    @classmethod
    def create(
        cls, num_envs: int, device: torch.device | str, seed: int, options: Mapping[str, Any]
    ) -> VecTask:
        """Make the task from its configuration. Raises EnvironmentLoadError."""
        config = deepcopy(dict(cls.config))
        config["env"] = {**config["env"], **options, "numEnvs": num_envs}
        config["seed"] = seed
        environment = cls(config, str(device), str(device), -1, True, False, False)
        for attribute in _CONFIGURED:
            declared, actual = getattr(cls, attribute), getattr(environment, attribute)
            if declared != actual:
                raise EnvironmentLoadError(
                    f"{cls.__name__} sets {attribute} to {actual!r} when it is made, but its class"
                    f" says {declared!r}",
                    f"write `{attribute} = {actual!r}` in the class",
                )
        return environment

    @classmethod
    def all_variables(cls) -> tuple[Variable, ...]:
        return (*super().all_variables(), NATIVE_REWARD)

    def post_physics_step(self) -> None:
        """After the physics: count `progress_buf`, fill `obs_buf`, `rew_buf` and `reset_buf`."""
        raise NotImplementedError(f"{type(self).__name__} defines no post_physics_step")

    def advance(self, actions: Tensor) -> Transition:
        self.reset_buf.zero_()
        self.terminated_buf.zero_()
        self.actions = self.applied(actions)
        self.pre_physics_step(self.actions)
        self.simulate()
        self.post_physics_step()
        self._move_windows()
        done = self.reset_buf.bool()
        truncated = done & (self.progress_buf >= self.max_episode_length - 1)
        self.terminated_buf = done & ~truncated
        self.timeout_buf = truncated.long()
        causes = {self.termination_causes[0]: self.terminated_buf}
        return Transition(
            self.obs_buf, self.read_variables(), self.terminated_buf, truncated, causes
        )

    def read_variables(self) -> Mapping[str, Tensor]:
        return {**super().read_variables(), NATIVE_REWARD.name: self.rew_buf}

    def reset_rows(self, env_ids: Tensor) -> None:
        """Reset row by row, each with the global generator seeded from the row's own stream."""
        self.actions[env_ids] = 0.0
        self.terminated_buf[env_ids] = False
        self.rew_buf[env_ids] = 0.0
        seeds = (self.random.uniform(env_ids, 1)[:, 0].double() * 2**24).long().tolist()
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            for row, seed in enumerate(seeds):
                torch.manual_seed(seed)
                self.reset_idx(env_ids[row : row + 1])
        self.progress_buf[env_ids] = 0
        self.reset_buf[env_ids] = 0
        self.compute_observations()
        self._fill_windows(env_ids)
