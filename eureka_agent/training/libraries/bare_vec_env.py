"""The interface that Stable-Baselines3 requires of a vector environment beside resets and steps."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.vec_env import VecEnv


class BareVecEnv(VecEnv):
    """No attributes, methods and wrappers of single environments: the library's PPO needs none."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(
        self, method_name: str, *arguments: Any, indices: Any = None, **keywords: Any
    ) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs
