"""Scoring a policy, in a process that never loads a reward."""

from __future__ import annotations

import math
from pathlib import Path

from eureka_agent.errors import EurekaError
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.task import Task
from eureka_agent.training.evaluation import evaluate_policy, save_trajectories
from eureka_agent.training.policy import load_policy
from eureka_agent.worker.messages import Evaluate, Evaluated


def evaluate(command: Evaluate, loaded: LoadedEnvironment, task: Task, device: str, scratch: Path) -> Evaluated:
    """Run the policy without noise for the episodes asked for; keep the worst and the best as trajectories if asked to."""
    policy = load_policy(scratch / command.policy)
    environment = loaded.make(task, command.episodes, device=device)
    try:
        evaluation, trajectories = evaluate_policy(
            environment, task, policy, command.episodes, command.trajectories is not None, command.seed
        )
    finally:
        environment.close()
    broken = sum(not math.isfinite(episode.fitness) for episode in evaluation.episodes)
    if broken:
        raise EurekaError(
            f"the task's fitness is NaN or infinite in {broken} of {command.episodes} evaluated episodes",
            "make the fitness finite for every state that the environment can reach",
        )
    if command.trajectories is not None:
        if trajectories is None:
            raise EurekaError("the evaluation recorded no trajectory", "ask for at least one episode")
        save_trajectories(scratch / command.trajectories, trajectories)
    return Evaluated(job=command.job, evaluation=evaluation, trajectories=command.trajectories)
