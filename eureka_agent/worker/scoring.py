"""Values of rewards on stored episodes, each in a fork of the warm process, as a dry run."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from eureka_agent.array_files import failed, succeeded
from eureka_agent.boundary.bounds import EPISODES_PREFIX, Credits
from eureka_agent.boundary.commands import GiveCredit, ScoreTransitions
from eureka_agent.boundary.events import Credited, TransitionsScored
from eureka_agent.errors import RewardLoadError
from eureka_agent.records import Credit
from eureka_agent.rewards import RewardSpecification
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX, Variable
from eureka_agent.training.evaluation import Trajectory, load_trajectories
from eureka_agent.training.reward import RewardContractError, load_reward
from eureka_agent.worker.confinement import describe_exit, warm_up
from eureka_agent.worker.dry_run import run_in_child
from eureka_agent.worker.limits import adopt_orphans
from eureka_agent.worker.stored_credit import StoredCredit

_CREDITS: TypeAdapter[Credits] = TypeAdapter(Credits)


@dataclass(frozen=True)
class StoredSteps:
    values: dict[str, Tensor]
    """Arguments that every episode has. Shape of each: (steps, *variable.shape), float32."""
    episodes: tuple[tuple[tuple[str, int], ...], ...]
    """Name and length of every episode, by file."""
    credit: StoredCredit | None = None
    """None where it was not wanted, or an episode lacks fitness or observations."""

    def returns(self, totals: Tensor) -> tuple[dict[str, float | None], ...]:
        """Sums of the totals over episodes, by file. `totals`: shape (steps,)."""
        lengths = [length for file in self.episodes for _, length in file]
        ends = itertools.accumulate(lengths)
        parts = (totals[end - length : end] for end, length in zip(ends, lengths, strict=True))
        sums = iter([float(part.double().sum()) for part in parts])
        return tuple({name: next(sums) for name, _ in file} for file in self.episodes)


def stored_steps(
    files: Sequence[Mapping[str, Trajectory]], variables: Sequence[Variable], *, credit: bool
) -> StoredSteps:
    """All steps of these files' episodes, with `credit` also the fitness's."""
    every = [episode for file in files for episode in file.values()]
    values = {}
    for variable in variables:
        arrays = [episode.get(variable.name) for episode in every]
        fitting = (each for each in arrays if each is not None and each.shape[1:] == variable.shape)
        floats = (np.ascontiguousarray(each, dtype=np.float32) for each in fitting)
        parts = [torch.from_numpy(each) for each in floats]
        if parts and len(parts) == len(every):
            values[variable.name] = torch.cat(parts)
            # the start state before the first step is not recorded
            before = [torch.cat([part[:1], part[:-1]]) for part in parts]
            values[PREVIOUS_PREFIX + variable.name] = torch.cat(before)

    def longest(episode: Trajectory) -> int:
        return max((len(array) for array in episode.values()), default=0)

    lengths = tuple(tuple((name, longest(each)) for name, each in file.items()) for file in files)
    return StoredSteps(values, lengths, _credit(files) if credit else None)


def _credit(files: Sequence[Mapping[str, Trajectory]]) -> StoredCredit | None:
    episodes = [episode for file in files for episode in file.values()]
    if not episodes or any({"fitness", "observations"} - each.keys() for each in episodes):
        return None
    both = (np.concatenate([it[name] for it in episodes]) for name in ("fitness", "observations"))
    fitness, observations = (each.astype(np.float64) for each in both)
    if fitness.ndim != 1 or observations.ndim != 2 or len(fitness) != len(observations):
        return None
    if not (np.isfinite(fitness).all() and np.isfinite(observations).all()):
        return None
    lengths = [[len(each["fitness"]) for each in file.values()] for file in files]
    ended = [failed(each) or succeeded(each) for each in episodes]
    return StoredCredit(fitness, observations, lengths, ended)


class Scorer:
    """Runs rewards on stored episodes, which are read once."""

    def __init__(
        self, environment_class: type[VecTask], folder: Path, protocol_descriptors: Sequence[int]
    ) -> None:
        """`folder`: holds the commands' files. `protocol_descriptors`: closed in every child."""
        adopt_orphans()
        warm_up()
        self._environment_class = environment_class
        self._folder = folder
        self._protocol_descriptors = protocol_descriptors
        self._stored: dict[str, tuple[tuple[str, ...], StoredSteps]] = {}
        """Files of the latest command of each type, which take turns, and their steps."""

    def run(self, command: ScoreTransitions) -> TransitionsScored:
        """Run one reward in a fork on named episodes. Raises RunFolderError without episodes."""
        stored, job = self._steps(command), command.job

        def score() -> bytes:
            try:
                reward = load_reward(command.reward, self._environment_class)
                missing = [name for name in reward.arguments if name not in stored.values]
                if missing:
                    found = TransitionsScored(job=job, reason=f"{missing[0]!r} is not stored")
                else:
                    totals = reward(stored.values)[0]
                    found = TransitionsScored(job=job, returns=stored.returns(totals))
            except (RewardLoadError, RewardContractError) as error:
                found = TransitionsScored(job=job, reason=error.message)
            return found.model_dump_json().encode()

        end = run_in_child(score, command.timeout_s, self._protocol_descriptors)
        if end.timed_out:
            reason = f"it did not end within {command.timeout_s:g} s"
            return TransitionsScored(job=job, reason=reason)
        try:
            return TransitionsScored.model_validate_json(end.data).model_copy(update={"job": job})
        except ValidationError:
            return TransitionsScored(job=job, reason=describe_exit(end.status)[0])

    def credit(self, command: GiveCredit) -> Credited:
        """Credit of rewards on named episodes. Raises RunFolderError without episodes."""
        stored = self._steps(command)
        credits = self._credits(command.rewards, stored, command.timeout_s)
        return Credited(job=command.job, credits=credits)

    def _credits(
        self, rewards: Sequence[RewardSpecification], stored: StoredSteps, timeout_s: float
    ) -> Credits:
        """Credit of rewards in one fork; of each in its own if that comes to no end."""

        def measure() -> bytes:
            return _CREDITS.dump_json(tuple(self._credit(each, stored) for each in rewards))

        end = run_in_child(measure, timeout_s, self._protocol_descriptors)
        try:
            found = _CREDITS.validate_json(end.data)
        except ValidationError:
            found = ()
        if len(found) == len(rewards):
            return found
        if len(rewards) == 1:
            return (None,)
        return tuple(self._credits((each,), stored, timeout_s)[0] for each in rewards)

    def _credit(self, specification: RewardSpecification, stored: StoredSteps) -> Credit | None:
        torch.manual_seed(0)  # so that it does not depend on the rewards before it
        try:
            reward = load_reward(specification, self._environment_class)
            if stored.credit is None or not set(reward.arguments) <= stored.values.keys():
                return None
            totals, _ = reward({name: stored.values[name].clone() for name in reward.arguments})
        except (RewardLoadError, RewardContractError):
            return None
        return stored.credit.of(totals.double().numpy())

    def _steps(self, command: ScoreTransitions | GiveCredit) -> StoredSteps:
        """Steps of the command's files, read once; files without a reader are deleted."""
        names, stored = self._stored.get(command.type, ((), StoredSteps({}, ())))
        if names != command.transitions:
            files = [load_trajectories(self._folder / name) for name in command.transitions]
            variables = self._environment_class.all_variables()
            stored = stored_steps(files, variables, credit=isinstance(command, GiveCredit))
            self._stored[command.type] = command.transitions, stored
            named = set(itertools.chain(*(names for names, _ in self._stored.values())))
            for path in self._folder.glob(f"{EPISODES_PREFIX}*"):
                if path.name not in named:
                    path.unlink(missing_ok=True)
        return stored
