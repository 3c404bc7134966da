"""Scoring policies, in a process that never loads a reward."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import torch

from eureka_agent.errors import EurekaError
from eureka_agent.parameters import check_distribution
from eureka_agent.protocol.commands import Evaluate, PolicyFile
from eureka_agent.protocol.events import Evaluated, PolicyScore
from eureka_agent.records import Evaluation
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.vec_task import VecTask, padded
from eureka_agent.task import Task
from eureka_agent.training.evaluation import (
    PolicyRequest,
    evaluate_policies,
    rows_needed,
    trajectories_bytes,
    worst_and_best,
)
from eureka_agent.training.policy import check_sizes, load_policy
from eureka_agent.worker.channel import File

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
    """Score policies without noise, in few passes: trajectories, then scores or faults. After an
    unforeseen error, which is raised, the driver sends the policies one by one."""
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
                recorded.append(File(wanted, trajectories_bytes(trajectories)))
    in_order = tuple(scores[place] for place in range(len(command.policies)))
    return [*recorded, Evaluated(job=command.job, scores=in_order)]


def _load(file: PolicyFile, environment_class: type[VecTask], folder: Path) -> PolicyRequest:
    policy = load_policy(folder / file.policy)
    check_sizes(policy, environment_class)
    check_distribution(file.parameters, environment_class.parameters)
    pick = None if file.trajectories is None else worst_and_best
    return PolicyRequest(policy, file.seed, file.episodes, pick, file.parameters)


def _passes(
    requests: dict[int, PolicyRequest], environment_class: type[VecTask]
) -> Iterator[list[int]]:
    """Group the policies into passes, those with recorded trajectories first."""
    floats = environment_class.num_observations + sum(
        math.prod(variable.shape) for variable in environment_class.all_variables()
    )
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
