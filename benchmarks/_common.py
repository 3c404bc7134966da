"""Shared parts of the training benchmarks: environments with their rewards, timed trainings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import LoadedEnvironment, load_environment
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Task
from eureka_agent.training.evaluation import evaluate_policy
from eureka_agent.training.policy import Policy
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import MemberFinished, Trainer
from eureka_agent.worker.limits import keep_freed_memory

EVALUATION_EPISODES = 64
EVALUATION_SEED = 12345


@dataclass(frozen=True)
class Subject:
    """A built-in task to measure on."""

    name: str
    loaded: LoadedEnvironment
    task: Task

    def make(self, num_envs: int, seed: int = 0) -> VecTask:
        return self.loaded.make(self.task, num_envs, seed=seed)

    def reward(self, kind: Literal["human", "sparse"] = "human") -> RewardFunction:
        """A fresh copy of a baseline reward."""
        source = self.loaded.reward_source(self.task, kind)
        if source is None:
            raise SystemExit(f"{self.name} has no {kind} reward")
        return RewardFunction.from_source(
            source, self.loaded.environment_class.all_variables(), allow_private=True
        )

    def settings(self, **changes: Any) -> TrainingSettings:
        """The task's settings with some changed."""
        budget = self.task.training
        values = {
            "env_steps": budget.env_steps,
            "num_envs": budget.num_envs,
            **budget.overrides,
            **changes,
        }
        return TrainingSettings.model_validate(values)

    def score(self, policy: Policy) -> float:
        """Mean fitness of fresh episodes without noise."""
        environment = self.make(EVALUATION_EPISODES)
        try:
            evaluation, _ = evaluate_policy(
                environment,
                self.task,
                policy,
                EVALUATION_EPISODES,
                record=False,
                seed=EVALUATION_SEED,
            )
        finally:
            environment.close()
        return evaluation.fitness_mean()


def subject(reference: str) -> Subject:
    """A task from `env` or `env/task`; `env` may be a folder with a slash in its path."""
    environment, _, task_name = reference.rpartition("/")
    if not environment:
        environment, task_name = reference, ""
    loaded = load_environment(environment)
    name, task = loaded.task(task_name or None)
    return Subject(f"{environment}/{name}", loaded, task)


def start() -> None:
    """Set one thread and the allocator's options, as in a training worker."""
    torch.set_num_threads(1)
    keep_freed_memory()


def filled_trainer(subject: Subject, settings: TrainingSettings, seeds: Sequence[int]) -> Trainer:
    """A trainer with one human-reward member for every seed."""
    trainer = Trainer(subject.make, subject.task, settings, len(seeds))
    for seed in seeds:
        trainer.submit(str(seed), subject.reward(), seed)
    return trainer


def train(subject: Subject, settings: TrainingSettings, seeds: Sequence[int]) -> list[Policy]:
    """The policies of trainings with the human reward, in the order of the seeds."""
    trainer = filled_trainer(subject, settings, seeds)
    policies = {}
    while trainer.busy:
        for event in trainer.iterate():
            if isinstance(event, MemberFinished):
                policies[event.job] = Policy(
                    event.policy, settings.activation, trainer.policy_metadata
                )
    return [policies[str(seed)] for seed in seeds]
