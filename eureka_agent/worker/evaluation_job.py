"""Scoring policies, trained and untrained ones, in a process that never loads a reward."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import torch
from torch import Tensor

from eureka_agent.boundary.commands import Evaluate, PolicyFile
from eureka_agent.boundary.events import Evaluated, PolicyScore
from eureka_agent.errors import EurekaError
from eureka_agent.parameters import check_distribution
from eureka_agent.records import EpisodeSummary, Evaluation, Measurements, UntrainedScore
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.rollouts import measure_starts
from eureka_agent.simulation.vec_task import VecTask, padded
from eureka_agent.task import Task
from eureka_agent.training.distributions import distribution_of
from eureka_agent.training.evaluation import (
    PolicyRequest,
    evaluate_policies,
    every,
    rows_needed,
    trajectories_bytes,
    worst_and_best,
)
from eureka_agent.training.observation import DesignedObservation
from eureka_agent.training.policy import check_sizes, load_policy
from eureka_agent.worker.channel import File

MOST_EPISODES = 64
"""Episodes of an untrained policy."""
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
        self.observation: DesignedObservation | None = None
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
    zero, drawn = score_untrained(loaded, task)
    return starts.model_copy(update={"zero_actions": zero, "random_actions": drawn})


def score_untrained(loaded: LoadedEnvironment, task: Task) -> tuple[UntrainedScore, UntrainedScore]:
    """Score zero and random actions over equally many episodes. Raises EnvironmentFaultError."""
    environment_class = loaded.environment_class
    steps = _MOST_SINGLE_STEPS if environment_class.row_multiple == 1 else _MOST_STEPS
    episodes = steps // environment_class.max_episode_length
    episodes = max(_LEAST_EPISODES, min(MOST_EPISODES, episodes))
    policies = [UntrainedPolicy(environment_class, width) for width in (0.0, 1.0)]
    requests = [PolicyRequest(policy, _SEED, episodes) for policy in policies]
    environment = loaded.make(task, rows_needed(environment_class, requests))
    with closing(environment), torch.inference_mode():
        zero, drawn = evaluate_policies(environment, task, requests)

    return untrained_score(zero[0].episodes), untrained_score(drawn[0].episodes)


def untrained_score(episodes: Sequence[EpisodeSummary]) -> UntrainedScore:
    """Score of an untrained policy's episodes, at least two."""
    values = [episode.fitness for episode in episodes]
    mean, std = statistics.fmean(values), statistics.stdev(values)
    length = statistics.fmean(episode.length for episode in episodes)
    ends = Counter(episode.ended_by for episode in episodes)
    return UntrainedScore(mean=mean, std=std, length=length, episodes=len(values), ends=ends)


MOST_ROWS = 512
"""Rows of one pass: with more, cost grows with the rows and a larger pass gains nothing."""
PASS_SECONDS = 450.0
"""Timeout of one pass: shorter than the driver's, so that the worker can say where it hangs."""
MOST_RECORDED_BYTES = 256 << 20
"""Memory of one pass's trajectories, before each policy's best and worst are picked."""


@torch.inference_mode()
def evaluate(
    command: Evaluate, loaded: LoadedEnvironment, task: Task, device: str, folder: Path
) -> list[File | Evaluated]:
    """Score policies without noise, in few passes: trajectories, then scores or faults."""
    cls = loaded.environment_class
    requests: dict[int, PolicyRequest] = {}
    """Requests by their place in the command."""
    scores: dict[int, PolicyScore] = {}
    for place, file in enumerate(command.policies):
        try:
            requests[place] = _load(file, cls, folder)
        except EurekaError as error:
            scores[place] = PolicyScore(fault=error.message, hint=error.hint)
    recorded: list[File | Evaluated] = []
    for places in _passes(requests, cls):
        among = [requests[place] for place in places]
        with closing(loaded.make(task, rows_needed(cls, among), device=device)) as environment:
            results = evaluate_policies(environment, task, among, PASS_SECONDS)
        for place, (evaluation, trajectories) in zip(places, results, strict=True):
            scores[place] = _score(evaluation)
            wanted = command.policies[place].trajectories
            if wanted is not None and trajectories is not None:
                together = command.policies[place].recorded == "all"
                content = trajectories_bytes(trajectories, together=together)
                recorded.append(File(wanted, content))
    in_order = tuple(scores[place] for place in range(len(command.policies)))
    return [*recorded, Evaluated(job=command.job, scores=in_order)]


def _load(file: PolicyFile, environment_class: type[VecTask], folder: Path) -> PolicyRequest:
    policy = load_policy(folder / file.policy)
    check_sizes(policy, environment_class)
    check_distribution(file.parameters, environment_class.parameters)
    recorded = every if file.recorded == "all" else worst_and_best
    pick = None if file.trajectories is None else recorded
    return PolicyRequest(policy, file.seed, file.episodes, pick, file.parameters)


def _passes(
    requests: dict[int, PolicyRequest], environment_class: type[VecTask]
) -> Iterator[list[int]]:
    """Group the policies into passes, those with recorded trajectories first."""
    sizes = (math.prod(variable.shape) for variable in environment_class.all_variables())
    floats = environment_class.num_observations + sum(sizes)
    recorded_bytes = 4 * floats * environment_class.max_episode_length
    places: list[int] = []
    rows = recorded = 0
    for place in sorted(requests, key=lambda place: not requests[place].record):
        more = padded(requests[place].episodes, environment_class.row_multiple)
        kept = more * recorded_bytes if requests[place].record else 0
        if places and (rows + more > MOST_ROWS or (kept and recorded + kept > MOST_RECORDED_BYTES)):
            yield places
            places, rows, recorded = [], 0, 0
        places.append(place)
        rows, recorded = rows + more, recorded + kept
    if places:
        yield places


def _score(evaluation: Evaluation) -> PolicyScore:
    broken = sum(not math.isfinite(episode.fitness) for episode in evaluation.episodes)
    if not broken:
        return PolicyScore(evaluation=evaluation)
    return PolicyScore(
        fault=f"the task's fitness is NaN or infinite in {broken} of {len(evaluation.episodes)}"
        " evaluated episodes",
        hint="make the fitness finite for every state that the environment can reach",
    )
