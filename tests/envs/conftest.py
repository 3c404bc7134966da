"""Built-in environments by name, loaded as the command line loads them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from eureka_agent.simulation.loading import load_environment
from eureka_agent.simulation.vec_task import VecTask

Make = Callable[..., VecTask]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def make() -> Make:
    """`make("cartpole", num_envs, task="swingup", seed=3)`, freshly reset."""

    def made(name: str, num_envs: int, task: str | None = None, seed: int = 0) -> VecTask:
        loaded = load_environment(name)
        return loaded.make(loaded.task(task)[1], num_envs, seed=seed)

    return made
