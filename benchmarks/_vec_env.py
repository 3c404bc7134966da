"""A Stable-Baselines3 vector environment without what its PPO never asks for."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.vec_env import VecEnv


class OneForAll(VecEnv):
    """Environments that are stepped together, so that none has attributes or methods to reach."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(
        self, method_name: str, *arguments: Any, indices: Any = None, **keywords: Any
    ) -> list[Any]:
        raise NotImplementedError
