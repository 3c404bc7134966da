"""Fixtures of the training tests: one thread, a small task, a trainer of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from training_environments import CENTRE_REWARD, PointMass, near_the_middle

from eureka_agent.settings import TrainingSettings
from eureka_agent.task import Task
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import Trainer


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def point_task() -> Task:
    return Task(
        sentence="stay near the middle",
        fitness=near_the_middle,
        fitness_doc="minus the mean squared distance",
        fitness_reduction="mean",
    )


@pytest.fixture
def small_settings() -> TrainingSettings:
    return TrainingSettings(
        env_steps=4 * 128,
        num_envs=16,
        horizon=8,
        hidden_sizes=(16, 16),
        epochs=2,
        minibatches=2,
        checkpoints=2,
    )


@pytest.fixture
def make_trainer(point_task: Task, small_settings: TrainingSettings) -> Callable[..., Trainer]:
    def make(slots: int, **settings: object) -> Trainer:
        changed = TrainingSettings.model_validate({**small_settings.model_dump(), **settings})
        return Trainer(PointMass, point_task, changed, slots, reward_timeout=0.5)

    return make


@pytest.fixture
def point_reward() -> Callable[..., RewardFunction]:
    def load(source: str = CENTRE_REWARD) -> RewardFunction:
        return RewardFunction.from_source(source, PointMass.all_variables())

    return load
