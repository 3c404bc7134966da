"""Values of rewards on stored episodes, each in a fork of the warm process, as a dry run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from eureka_agent.array_files import failed, succeeded
from eureka_agent.boundary.bounds import EPISODES_PREFIX, MOST_ASKED_STEPS, Credits
from eureka_agent.boundary.commands import AskSteps, GiveCredit, ScoreTransitions
from eureka_agent.boundary.events import Credited, StepsAsked, TransitionsScored
from eureka_agent.errors import RewardLoadError
from eureka_agent.records import MOST_RANKED_STEPS, Credit
from eureka_agent.rewards import RewardSpecification
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX, Variable
from eureka_agent.training.evaluation import Trajectory, load_trajectories
from eureka_agent.training.reward import Result, RewardContractError, load_reward
from eureka_agent.worker.confinement import describe_exit, warm_up
from eureka_agent.worker.dry_run import MOST_RESULT_BYTES, run_in_child
from eureka_agent.worker.limits import adopt_orphans

_CREDITS: TypeAdapter[Credits] = TypeAdapter(Credits)
Floats = NDArray[np.float64]
Answer = TypeVar("Answer", TransitionsScored, StepsAsked)

DISCOUNT = 0.99
"""Discount of the returns, as that of a training by default."""
MOST_STEPS = 3000
"""Most steps that are compared with the fitness, evenly spread."""
MOST_FEATURES = 256
"""Most columns of the observations that say what is usual in a state."""
_BYTES_A_STEP = 64
"""Size of an answer with two values of each step."""
_RIDGE = 1e-2
_CLIPPED = 5.0
_RANK_DIGITS = 4
_EQUAL = 1e-12
_ROUNDING = 1e-9
"""Part of the largest value by which sums of equal values may differ."""


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


def _finite(values: Tensor) -> tuple[float | None, ...]:
    # to the digits that float32 has
    return tuple(float(f"{each:.7g}") if math.isfinite(each) else None for each in values.tolist())


class Scorer:
    """Runs rewards on stored episodes, which are read once."""

    def __init__(
        self,
        environment_class: type[VecTask],
        folder: Path,
        protocol_descriptors: Sequence[int],
        recorded: Mapping[str, Tensor],
    ) -> None:
        """`folder`: holds the commands' files. `protocol_descriptors`: closed in every child.
        `recorded`: steps of random actions, for commands without files."""
        adopt_orphans()
        warm_up()
        self._environment_class = environment_class
        self._folder = folder
        self._protocol_descriptors = protocol_descriptors
        self._recorded = StoredSteps(dict(recorded), ())
        self._stored: dict[str, tuple[tuple[str, ...], StoredSteps]] = {}
        """Files of the latest command of each type, which take turns, and their steps."""

    def run(self, command: ScoreTransitions) -> TransitionsScored:
        """Run one reward in a fork on named episodes. Raises RunFolderError without episodes."""

        def score(result: Result, stored: StoredSteps) -> TransitionsScored:
            return TransitionsScored(job=command.job, returns=stored.returns(result[0]))

        return self._run(command, TransitionsScored, score)

    def ask(self, command: AskSteps) -> StepsAsked:
        """A reward's values in each step. Raises RunFolderError without episodes."""

        def values(result: Result, _: StoredSteps) -> StepsAsked:
            total, terms = result
            if len(total) > MOST_ASKED_STEPS:
                most = f"{len(total)} steps are stored, expected at most {MOST_ASKED_STEPS}"
                return StepsAsked(job=command.job, reason=most)
            listed = {name: _finite(each) for name, each in terms.items()}
            return StepsAsked(job=command.job, total=_finite(total), terms=listed)

        return self._run(command, StepsAsked, values)

    def _run(
        self,
        command: ScoreTransitions | AskSteps,
        kind: type[Answer],
        work: Callable[[Result, StoredSteps], Answer],
    ) -> Answer:
        """Have `work` answer from a reward's result in a fork. Where that fails, the answer of this
        `kind` has a reason."""
        stored, job = self._steps(command), command.job

        def run() -> bytes:
            try:
                reward = load_reward(command.reward, self._environment_class)
                missing = [name for name in reward.arguments if name not in stored.values]
                if missing:
                    found = kind(job=job, reason=f"{missing[0]!r} is not stored")
                else:
                    found = work(reward(stored.values), stored)
            except (RewardLoadError, RewardContractError) as error:
                found = kind(job=job, reason=error.message)
            return found.model_dump_json().encode()

        most = MOST_RESULT_BYTES + _BYTES_A_STEP * len(next(iter(stored.values.values()), ()))
        end = run_in_child(run, command.timeout_s, self._protocol_descriptors, most)
        if end.timed_out:
            return kind(job=job, reason=f"it did not end within {command.timeout_s:g} s")
        try:
            return kind.model_validate_json(end.data).model_copy(update={"job": job})
        except ValidationError:
            return kind(job=job, reason=describe_exit(end.status)[0])

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

    def _steps(self, command: ScoreTransitions | GiveCredit | AskSteps) -> StoredSteps:
        """Steps of the command's files, read once; files without a reader are deleted."""
        if not command.transitions:
            return self._recorded
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


# ── credit ────────────────────────────────────────────────────────────────────────────────────────


class StoredCredit:
    """Credit that a reward gives to stored steps, beside the fitness's, before any training. A
    policy gradient follows advantages, so a reward is as good a teacher as it orders steps like the
    fitness: by their value, by the discounted return that follows, and by that return beyond what
    is usual in the state. Steps of one policy's episodes are compared with each other and never
    with another's, as an update compares what one policy does. Comparing rewards so, without a
    training, is the idea of EPIC (Gleave et al. 2021), DARD (Wulfe et al. 2022) and STARC (Skalse
    et al. 2024); what it tells is in benchmarks/LOG.md."""

    def __init__(
        self,
        fitness: Floats,
        observations: Floats,
        lengths: Sequence[Sequence[int]],
        ended: Sequence[bool],
    ) -> None:
        """`fitness`: per step, shape (steps,), policy after policy, episode after episode of these
        lengths. `observations`: a policy's inputs, shape (steps, num_observations). `ended`: by
        episode, whether it ended by itself and not by its time limit."""
        self._lengths = [length for policy in lengths for length in policy]
        # returns of a fitness that is paid at a time limit tell the steps left, and by their number
        # a reward's returns to that limit tell its sign
        last = np.cumsum(self._lengths) - 1
        at_limits = fitness[last[np.invert(ended)]]
        is_paid_there = at_limits.any() and not np.delete(fitness, last).any()
        self._going_on = going_on(self._lengths, ended) if is_paid_there else 1.0
        self._taken = _spread(len(fitness), MOST_STEPS)
        ends = np.cumsum([sum(policy) for policy in lengths])
        self._policies = np.searchsorted(self._taken, ends[:-1])
        """Places in `_taken` at which the next policy's steps begin."""
        self._usual = [_Usual(each) for each in self._by_policy(observations[self._taken])]
        self._fitness = self._parts(fitness)

    def of(self, totals: Floats) -> Credit | None:
        """The credit of a reward with these totals, shape (steps,), by the ranks of at most
        `MOST_RANKED_STEPS` steps; None where one is not finite. A correlation is 0 where the
        reward, or the fitness, is the same in all steps."""
        if not np.isfinite(totals).all():
            return None
        parts = self._parts(totals)
        pairs = zip(parts, self._fitness, strict=True)
        step, to_go, advantage = (_correlation(ours, theirs) for ours, theirs in pairs)
        shown = _spread(len(self._taken), MOST_RANKED_STEPS)
        ranks = np.concatenate([part[shown] for part in parts]).round(_RANK_DIGITS)
        return Credit(step=step, to_go=to_go, advantage=advantage, ranks=tuple(ranks.tolist()))

    def _parts(self, values: Floats) -> list[Floats]:
        """Ranks within their policy of values, returns to go, and these beyond the usual."""
        step = self._by_policy(values[self._taken])
        returns = discounted(values, self._lengths) * self._going_on
        to_go = self._by_policy(returns[self._taken])
        pairs = zip(self._usual, to_go, strict=True)
        advantage = [usual.residual(each) for usual, each in pairs]
        parts = step, to_go, advantage
        return [np.concatenate([_ranks(each) for each in part]) for part in parts]

    def _by_policy(self, values: Floats) -> list[Floats]:
        return [each for each in np.split(values, self._policies) if len(each)]


class _Usual:
    """A least-squares fit of returns to observations, their squares and a constant."""

    def __init__(self, observations: Floats) -> None:
        columns = observations[:, observations.std(axis=0) > _EQUAL]
        columns = columns[:, _spread(columns.shape[1], MOST_FEATURES)]
        scaled = (columns - columns.mean(axis=0)) / columns.std(axis=0)
        scaled = scaled.clip(-_CLIPPED, _CLIPPED)
        self._features = np.column_stack([np.ones(len(scaled)), scaled, scaled**2])
        size = self._features.shape[1]
        ridge = _RIDGE * len(scaled) * np.eye(size)
        self._inverse = np.linalg.inv(self._features.T @ self._features + ridge)

    def residual(self, returns: Floats) -> Floats:
        """Residual of returns, which are scaled to deviation 1 first; 0 where they are equal."""
        deviation = returns.std()
        if deviation <= _ROUNDING * np.abs(returns).max():
            return np.zeros_like(returns)
        scaled = (returns - returns.mean()) / deviation
        weights = self._inverse @ (self._features.T @ scaled)
        residual: Floats = scaled - self._features @ weights
        return residual


def discounted(values: Floats, lengths: Sequence[int]) -> Floats:
    """Discounted sum of each step's value and those after it in its episode."""
    sums = values.astype(np.float64)
    for episode in np.split(sums, np.cumsum(lengths)[:-1]):
        reach = 1  # number of steps that each sum holds so far
        while reach < len(episode):
            episode[:-reach] += DISCOUNT**reach * episode[reach:]
            reach *= 2
    return sums


def going_on(lengths: Sequence[int], ended: Sequence[bool]) -> Floats:
    """By step, the factor that makes the discounted sum to the end of its episode the one without
    that end, as if the episode went on like the rest of it; 1 where it ended by itself. So a time
    limit cuts no return off, as in a training (Pardo et al. 2018)."""
    factors = [
        np.ones(length) if is_whole else 1.0 / (1.0 - DISCOUNT ** np.arange(length, 0, -1))
        for length, is_whole in zip(lengths, ended, strict=True)
    ]
    return np.concatenate(factors)


def _spread(count: int, most: int) -> NDArray[np.intp]:
    """At most so many of `count` places, evenly spread."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(int)


def _correlation(ours: Floats, theirs: Floats) -> float:
    """Correlation of ranks of mean 0; 0 where one side is constant."""
    lengths = float(np.linalg.norm(ours) * np.linalg.norm(theirs))
    return float(np.clip(ours @ theirs / lengths, -1.0, 1.0)) if lengths > _EQUAL else 0.0


def _ranks(values: Floats) -> Floats:
    """Ranks from -0.5 to 0.5, of equal values their mean."""
    unit = _ROUNDING * max(np.abs(values).max(), _EQUAL)
    _, places, counts = np.unique(np.rint(values / unit), return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return (ranks - (len(values) + 1) / 2) / len(values)
