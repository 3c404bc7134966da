"""Policies that nobody trained, scored like trained ones: what an episode is worth before any
reward is written."""

from __future__ import annotations

import statistics

import torch
from torch import Tensor

from eureka_agent.records import Evaluation, Measurements, UntrainedScore
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.starts import measure_starts
from eureka_agent.simulation.vec_task import VecTask, padded
from eureka_agent.task import Task
from eureka_agent.training.distributions import distribution_of
from eureka_agent.training.evaluation import PolicyRequest, evaluate_policies

MOST_EPISODES = 64
_MOST_STEPS = 16_000
"""Steps of all episodes of a policy: of long episodes fewer are run."""
_MOST_SINGLE_STEPS = 8_000
"""Likewise where rows are simulated one after the other."""
_LEAST_EPISODES = 4
_SEED = 0
_NO_NOISE = 1e-6


class UntrainedPolicy:
    """Acts whatever it observes, from a stream of its own: every entry uniform in [-`width`,
    `width`], or every choice equally likely."""

    def __init__(self, environment: type[VecTask], width: float) -> None:
        """`width`: 0 for no action, which among choices is the first, 1 for the whole range."""
        self.num_observations = environment.num_observations
        self.distribution = distribution_of(environment)
        self.spread = torch.full((self.distribution.num_parameters,), _NO_NOISE)
        """So small that clipping leaves a mean as it is."""
        self._width = width
        self._generator = torch.Generator().manual_seed(_SEED)

    def outputs(self, observations: Tensor) -> Tensor:
        """Actions, or logits, which are as likely to be the largest. Shape: (batch,
        num_outputs)."""
        size = len(observations), self.distribution.num_outputs
        drawn = torch.rand(size, generator=self._generator)
        return (self._width * (2.0 * drawn - 1.0)).to(observations.device)


def measure(loaded: LoadedEnvironment, task: Task, *, scores: bool = True) -> Measurements:
    """All that is measured of a task's environment; without `scores` nothing that takes an episode.
    Raises EnvironmentLoadError."""
    starts = measure_starts(loaded, task)
    if not scores:
        return starts
    zero_actions, random_actions = score_untrained(loaded, task)
    return starts.model_copy(
        update={"zero_actions": zero_actions, "random_actions": random_actions}
    )


def score_untrained(loaded: LoadedEnvironment, task: Task) -> tuple[UntrainedScore, UntrainedScore]:
    """Zero actions and random actions over as many episodes, by the task's fitness. Raises
    EnvironmentFaultError for one that is not finite."""
    environment_class = loaded.environment_class
    steps = _MOST_SINGLE_STEPS if environment_class.row_multiple == 1 else _MOST_STEPS
    episodes = max(
        _LEAST_EPISODES, min(MOST_EPISODES, steps // environment_class.max_episode_length)
    )
    policies = [UntrainedPolicy(environment_class, width) for width in (0.0, 1.0)]
    requests = [PolicyRequest(policy, _SEED, episodes) for policy in policies]
    environment = loaded.make(
        task, len(requests) * padded(episodes, environment_class.row_multiple)
    )
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
