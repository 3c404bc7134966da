"""Train one candidate as Eureka-like tools do: in its own process, with a Gymnasium vector
environment and Stable-Baselines3's PPO.

    python benchmarks/_candidate.py gymnasium|plain hopper|ant ENV_STEPS SEED SETTINGS_AS_JSON

Prints one line of JSON: wall seconds of `learn`, and of all before it since the interpreter began
to read this file.
"""

from __future__ import annotations

import time

BEGAN = time.perf_counter()

import json  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from _vec_env import OneForAll  # noqa: E402
from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from stable_baselines3 import PPO  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize  # noqa: E402

GYMNASIUM = {"hopper": "Hopper-v5", "ant": "Ant-v5"}


class FromGymnasium(OneForAll):
    """A Gymnasium `SyncVectorEnv` as Stable-Baselines3's PPO wants it."""

    def __init__(self, environments: SyncVectorEnv) -> None:
        self._environments = environments
        self._actions: Any = None
        super().__init__(
            environments.num_envs,
            environments.single_observation_space,
            environments.single_action_space,
        )

    def reset(self) -> NDArray[np.float32]:
        return self._environments.reset(seed=self._seeds)[0]

    def step_async(self, actions: NDArray[np.float32]) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        observations, rewards, terminated, truncated, info = self._environments.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        ended = terminated | truncated
        for row in ended.nonzero()[0]:
            infos[row] = {
                "TimeLimit.truncated": bool(truncated[row] and not terminated[row]),
                "terminal_observation": info["final_obs"][row],
            }
        return observations.copy(), rewards, ended, infos

    def close(self) -> None:
        self._environments.close()


def maker(kind: str, robot: str) -> Callable[[], gymnasium.Env[Any, Any]]:
    """A function that makes one environment: Gymnasium's own robot, or ours without our
    simulator."""
    if kind == "plain":
        from _plain_environments import PLAIN

        return PLAIN[robot]
    return lambda: gymnasium.make(GYMNASIUM[robot])


def main() -> None:
    """Train and print."""
    kind, robot, env_steps, seed, text = sys.argv[1:]
    settings = json.loads(text)
    torch.set_num_threads(1)
    makers = [maker(kind, robot)] * settings["num_envs"]
    if settings["vector"] == "sync":
        rows: VecEnv = FromGymnasium(
            SyncVectorEnv(makers, copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
        )
    else:
        rows = DummyVecEnv(makers)
    sizes, batch = (
        settings["hidden_sizes"],
        settings["horizon"] * settings["num_envs"] // settings["minibatches"],
    )
    activation = torch.nn.ELU if settings["activation"] == "elu" else torch.nn.Tanh
    model = PPO(
        "MlpPolicy",
        VecNormalize(rows, norm_reward=False),
        n_steps=settings["horizon"],
        batch_size=batch,
        n_epochs=settings["epochs"],
        learning_rate=3e-4,
        seed=int(seed),
        device="cpu",
        policy_kwargs={"net_arch": {"pi": sizes, "vf": sizes}, "activation_fn": activation},
    )
    ready = time.perf_counter()
    model.learn(int(env_steps))
    learned = time.perf_counter() - ready
    print(
        json.dumps({"learn_s": learned, "setup_s": ready - BEGAN, "env_steps": model.num_timesteps})
    )


if __name__ == "__main__":
    main()
