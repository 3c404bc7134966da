"""Untrained policies, scored like trained ones: what an episode is worth without training."""

from __future__ import annotations

import statistics

import torch
from torch import Tensor

from eureka_agent.records import Evaluation, Measurements, UntrainedScore
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.rollouts import measure_starts
from eureka_agent.simulation.vec_task import VecTask, padded
from eureka_agent.task import Task
from eureka_agent.training.distributions import distribution_of
from eureka_agent.training.evaluation import PolicyRequest, evaluate_policies

MOST_EPISODES = 64
_MOST_STEPS = 16_000
"""Most steps of all episodes of a policy: fewer episodes are run if they are long."""
_MOST_SINGLE_STEPS = 8_000
"""The same where rows are simulated one after the other."""
_LEAST_EPISODES = 4
_SEED = 0
_NO_NOISE = 1e-6


class UntrainedPolicy:
    """Ignores its observations: uniform in [-`width`, `width`], or equally likely choices."""

    def __init__(self, environment: type[VecTask], width: float) -> None:
        """`width`: 0 for zero actions (the first of choices), 1 for the whole range."""
        self.num_observations = environment.num_observations
        self.distribution = distribution_of(environment)
        self.spread = torch.full((self.distribution.num_parameters,), _NO_NOISE)
        """Too small for clipping to change a mean."""
        self._width = width
        self._generator = torch.Generator().manual_seed(_SEED)

    def outputs(self, observations: Tensor) -> Tensor:
        """Actions, or equally distributed logits. Shape: (batch, num_outputs)."""
        size = len(observations), self.distribution.num_outputs
        drawn = torch.rand(size, generator=self._generator)
        return (self._width * (2.0 * drawn - 1.0)).to(observations.device)


def measure(loaded: LoadedEnvironment, task: Task, *, scores: bool = True) -> Measurements:
    """Measure a task's environment; without `scores` no episode. Raises EnvironmentLoadError."""
    starts = measure_starts(loaded, task)
    if not scores:
        return starts
    zero_actions, random_actions = score_untrained(loaded, task)
    return starts.model_copy(
        update={"zero_actions": zero_actions, "random_actions": random_actions}
    )


def score_untrained(loaded: LoadedEnvironment, task: Task) -> tuple[UntrainedScore, UntrainedScore]:
    """Score zero and random actions over equally many episodes. Raises EnvironmentFaultError."""
    environment_class = loaded.environment_class
    steps = _MOST_SINGLE_STEPS if environment_class.row_multiple == 1 else _MOST_STEPS
    episodes = steps // environment_class.max_episode_length
    episodes = max(_LEAST_EPISODES, min(MOST_EPISODES, episodes))
    policies = [UntrainedPolicy(environment_class, width) for width in (0.0, 1.0)]
    requests = [PolicyRequest(policy, _SEED, episodes) for policy in policies]
    rows = len(requests) * padded(episodes, environment_class.row_multiple)
    environment = loaded.make(task, rows)
    try:
        with torch.inference_mode():
            zero, drawn = evaluate_policies(environment, task, requests)
    finally:
        environment.close()
    return _score(zero[0]), _score(drawn[0])


def _score(evaluation: Evaluation) -> UntrainedScore:
    values = [episode.fitness for episode in evaluation.episodes]
    return UntrainedScore(
        mean=statistics.fmean(values),
        std=statistics.stdev(values),
        length=statistics.fmean(episode.length for episode in evaluation.episodes),
        episodes=len(values),
    )
