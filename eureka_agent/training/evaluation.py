"""Scoring a policy: full episodes without noise, one in each row, and the worst and best of them as trajectories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError, RunFolderError
from eureka_agent.records import EpisodeSummary, Evaluation
from eureka_agent.simulation.vec_task import TIME_OUT, Transition, VecTask
from eureka_agent.task import PREVIOUS_PREFIX, Task
from eureka_agent.training.binding import FitnessFunction, variable_of
from eureka_agent.training.episodes import RunningFitness
from eureka_agent.training.policy import Policy

Trajectory = dict[str, NDArray[np.generic]]
"""By name: every variable, `observations` (what the policy saw), `actions` and `fitness`; the first dimension is the step."""


def evaluate_policy(
    environment: VecTask, task: Task, policy: Policy, episodes: int, record: bool, seed: int = 0
) -> tuple[Evaluation, dict[str, Trajectory] | None]:
    """Exactly `episodes` episodes of a policy; with `record` also the trajectories `"worst"` and `"best"`.

    The environment has one row an episode, and each row counts for its first episode only: taking the first ones to end would
    favour short episodes. `seed` sets the rows' start states. Raises EnvironmentLoadError for a policy of another environment.
    """
    if environment.num_envs != episodes:
        raise ValueError(f"{episodes} episodes need as many rows, found {environment.num_envs}")
    if (policy.num_observations, policy.num_actions) != (environment.num_observations, environment.num_actions):
        raise EnvironmentLoadError(
            f"the policy takes {policy.num_observations} observations and gives {policy.num_actions} actions, "
            f"the environment has {environment.num_observations} and {environment.num_actions}",
            "evaluate it on the environment that it was trained on",
        )
    fitness_function = FitnessFunction(task, environment.all_variables())
    rows = torch.arange(episodes, device=environment.device)
    environment.seed_rows(rows, torch.full_like(rows, seed))
    environment.reset()

    running = RunningFitness((episodes,), task.fitness_reduction, environment.device)
    finished = torch.zeros(episodes, dtype=torch.bool, device=environment.device)
    result = torch.zeros(episodes, device=environment.device)
    lengths = torch.zeros(episodes, device=environment.device)
    endings = [""] * episodes
    steps: list[dict[str, Tensor]] = []
    previous = _copy(environment.read_variables())
    while not bool(finished.all()):
        observations = environment.obs_buf.clone()
        transition = environment.advance(policy.act(observations))
        variables = _copy(transition.variables)
        values = {
            name: previous[variable_of(name)] if name.startswith(PREVIOUS_PREFIX) else variables[name]
            for name in fitness_function.arguments
        }
        fitness = fitness_function(values)
        running.add(fitness)
        if record:
            steps.append({**variables, "observations": observations, "fitness": fitness})
        ended = (transition.terminated | transition.truncated) & ~finished
        result = torch.where(ended, running.result(), result)
        lengths = torch.where(ended, running.length, lengths)
        for row in ended.nonzero().flatten().tolist():
            endings[row] = _cause(transition, row)
        finished |= ended
        previous = variables
        environment.reset_done()

    summaries = tuple(
        EpisodeSummary(fitness=value, length=round(length), ended_by=ending)
        for value, length, ending in zip(result.tolist(), lengths.tolist(), endings, strict=True)
    )
    trajectories = None
    if record:
        trajectories = {
            name: _trajectory(steps, row, summaries[row].length)
            for name, row in (("worst", int(result.argmin())), ("best", int(result.argmax())))
        }
    return Evaluation(episodes=summaries, seed=seed), trajectories


def save_trajectories(path: Path, trajectories: dict[str, Trajectory]) -> None:
    """Write trajectories as plain arrays, named `<episode>/<variable>`. Raises OSError."""
    arrays = {f"{episode}/{name}": array for episode, values in trajectories.items() for name, array in values.items()}
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def load_trajectories(path: Path) -> dict[str, Trajectory]:
    """Read what `save_trajectories` wrote; nothing is unpickled. Raises RunFolderError for another file."""
    trajectories: dict[str, Trajectory] = {}
    try:
        with np.load(path, allow_pickle=False) as arrays:
            for key in arrays.files:
                episode, _, name = key.partition("/")
                trajectories.setdefault(episode, {})[name] = arrays[key]
    except (OSError, ValueError) as error:
        raise RunFolderError(
            f"cannot read the trajectories {str(path)!r}: {error}", "name a trajectories.npz of a run"
        ) from None
    return trajectories


def _copy(variables: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in variables.items()}


def _cause(transition: Transition, row: int) -> str:
    if bool(transition.truncated[row]):
        return TIME_OUT
    return next(name for name, flags in transition.causes.items() if bool(flags[row]))


def _trajectory(steps: list[dict[str, Tensor]], row: int, length: int) -> Trajectory:
    return {name: np.stack([step[name][row].cpu().numpy() for step in steps[:length]]) for name in steps[0]}
