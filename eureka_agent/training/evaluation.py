"""Evaluation of policies: full episodes without noise, one per row, with trajectories."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from eureka_agent.arguments import variable_of
from eureka_agent.array_files import ALL, NUMBER, check_arrays, read_episodes
from eureka_agent.errors import RunFolderError
from eureka_agent.parameters import Distribution
from eureka_agent.records import EpisodeSummary, Evaluation
from eureka_agent.simulation.vec_task import TIME_OUT, Transition, VecTask, padded
from eureka_agent.task import PREVIOUS_PREFIX, Task
from eureka_agent.training.environment_faults import (
    OBSERVATIONS,
    check_rows,
    environment_code,
    fitness_fault,
    is_unsound,
)
from eureka_agent.training.fitness import FitnessFunction, RunningFitness, WrittenFitnessFunction
from eureka_agent.training.policy import ActingPolicies, Actor, Policy

Trajectory = dict[str, NDArray[np.generic]]
"""Variables, `observations` (a policy's input), `actions`, `fitness`; first dimension: step."""


def trajectories_bytes(trajectories: dict[str, Trajectory], *, together: bool = False) -> bytes:
    """Trajectories as npz: plain arrays named `<episode>/<variable>`. `together`: one array a
    variable, for many episodes that are named by their numbers."""
    if together:
        lengths = [len(each["fitness"]) for each in trajectories.values()]
        numbers = np.repeat(np.array(list(map(int, trajectories)), dtype=np.int64), lengths)
        names = list(next(iter(trajectories.values())))
        whole = {it: np.concatenate([each[it] for each in trajectories.values()]) for it in names}
        trajectories = {ALL: {**whole, NUMBER: numbers}}
    named = ((each, *item) for each, values in trajectories.items() for item in values.items())
    arrays = {f"{episode}/{name}": array for episode, name, array in named}
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def load_trajectories(path: Path) -> dict[str, Trajectory]:
    """Read an npz of `trajectories_bytes` without unpickling. Raises RunFolderError."""
    try:
        check_arrays(path)
        return read_episodes(path)
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        what = f"cannot read the trajectories {str(path)!r}: {error}"
        raise RunFolderError(what, "name a trajectories.npz of a run") from None


Score = tuple[Evaluation, dict[str, Trajectory] | None]
Pick = Callable[[Tensor], Mapping[str, int]]
"""Chooses episodes by their fitness, shape (episodes,): numbers by name."""
Watch = Callable[[int], bool]
"""Called at an episode's start with 0 and after each step with its number, before any reset; False
ends the watching."""

_STEPS_AT_ONCE = 64
"""Steps whose fitness is calculated together, independently of the other policies."""


@dataclass(frozen=True)
class PolicyRequest:
    policy: Actor
    seed: int
    episodes: int
    record: Pick | None = None
    """Chooses the episodes whose trajectories are returned."""
    parameters: Distribution = field(default_factory=dict)
    """Distribution of the environment's parameters; empty: the defaults."""


def worst_and_best(fitness: Tensor) -> dict[str, int]:
    return {"worst": int(fitness.argmin()), "best": int(fitness.argmax())}


def every(fitness: Tensor) -> dict[str, int]:
    return {str(number): number for number in range(len(fitness))}


def evaluate_policies(
    environment: VecTask,
    task: Task,
    requests: Sequence[PolicyRequest],
    limit_s: float | None = None,
) -> list[Score]:
    """Evaluate policies together, each independent of the others to the bit, in an environment with
    a row per episode, padded to `row_multiple`. Requests with `record` should come first. Raises
    EnvironmentLoadError for a policy of another environment, EnvironmentFaultError where the
    environment or task fails, or takes longer than `limit_s` seconds."""
    scoring = _Pass(environment, task, _shares(environment, requests))
    with environment_code(type(environment), limit_s, "an evaluation in the environment"):
        return scoring.run()


def watch_policies(
    environment: VecTask,
    task: Task,
    requests: Sequence[PolicyRequest],
    watch: Watch,
    limit_s: float | None = None,
) -> None:
    """Play the episodes of `evaluate_policies` once more, for `watch`; errors are the same."""
    playing = _Pass(environment, task, _shares(environment, requests), watch)
    with environment_code(type(environment), limit_s, "the replay of episodes"):
        playing.play()


def rows_of(environment: type[VecTask], requests: Sequence[PolicyRequest]) -> list[slice]:
    """Rows of each request in a pass; the next begins at a multiple of `row_multiple`."""
    rows, first = [], 0
    for request in requests:
        rows.append(slice(first, first + request.episodes))
        first += padded(request.episodes, environment.row_multiple)
    return rows


def rows_needed(environment: type[VecTask], requests: Sequence[PolicyRequest]) -> int:
    return sum(padded(request.episodes, environment.row_multiple) for request in requests)


def _shares(environment: VecTask, requests: Sequence[PolicyRequest]) -> list[_Share]:
    needed = rows_needed(type(environment), requests)
    if environment.num_envs != needed:
        raise ValueError(f"these policies need {needed} rows, found {environment.num_envs}")
    return list(map(_Share, requests, rows_of(type(environment), requests)))


def evaluate_policy(
    environment: VecTask, task: Task, policy: Policy, episodes: int, record: bool, seed: int = 0
) -> Score:
    """Run exactly `episodes` episodes of a policy, the first of each row, as those to end first are
    short. `seed` sets the start states; `record` returns the worst and the best episode. Raises
    EnvironmentLoadError for an unfit policy."""
    if environment.num_envs != episodes:
        raise ValueError(f"{episodes} episodes need as many rows, found {environment.num_envs}")
    pick = worst_and_best if record else None
    share = _Share(PolicyRequest(policy, seed, episodes, pick), slice(0, episodes))
    return _Pass(environment, task, [share]).run()[0]


@dataclass
class _Share:
    request: PolicyRequest
    rows: slice
    steps: int | None = None
    """Length of its longest episode; None before that has ended."""


class _Pass:
    def __init__(
        self,
        environment: VecTask,
        task: Task,
        shares: Sequence[_Share],
        watch: Watch = lambda step: True,
    ) -> None:
        self._environment = environment
        self._shares = shares
        self._watch = watch
        count, device = environment.num_envs, environment.device
        self._under_way = np.zeros(count, dtype=bool)
        policies = [share.request.policy for share in shares]
        self._actors = ActingPolicies(policies, [share.rows for share in shares], environment)
        for share in shares:
            rows = torch.arange(count, device=device)[share.rows]
            environment.seed_rows(rows, torch.full_like(rows, share.request.seed))
            environment.set_parameters(rows, share.request.parameters)
            self._under_way[share.rows] = True
        self._lengths = np.zeros(count, dtype=np.int64)
        self._endings = [""] * count
        names = environment.all_variables(), environment.constants
        self._fitness_function = FitnessFunction(task, *names)
        self._read = {variable_of(name) for name in self._fitness_function.arguments}
        self._running = RunningFitness((count,), task.fitness_reduction, device)
        self._result = torch.zeros(count, device=device)
        recorded = (share.rows.stop for share in shares if share.request.record)
        self._recorded_rows = max(recorded, default=0)
        self._spoiled = torch.zeros(count, dtype=torch.bool, device=device)
        """Rows whose policy gave NaN actions: their states do not blame the environment."""
        self._task = task
        self._records: list[dict[str, Tensor]] = []
        self._recorded_fitness: list[Tensor] = []

    def run(self) -> list[Score]:
        self.play()
        return list(zip(map(self._evaluation, self._shares), self._trajectories(), strict=True))

    def play(self) -> None:
        """Play until every episode has ended, or the watch ends it."""
        self._environment.reset()
        self._skip_rows()
        try:
            self._play()
        finally:
            self._environment.skipped_rows = None

    def _play(self) -> None:
        environment = self._environment
        acting = list(range(len(self._shares)))
        states = [self._copies(environment.read_variables())]
        step = 0
        watching = self._watch(step)
        while acting and watching:
            observations = environment.obs_buf
            if self._recorded_rows:
                self._records.append({"observations": observations[: self._recorded_rows].clone()})
            actions = self._actors.act(observations, acting)
            self._spoiled |= actions.isnan().any(dim=-1)
            transition = environment.advance(actions)
            step += 1
            states.append(self._copies(transition.variables))
            self._check({**states[-1], OBSERVATIONS: transition.observations}, step)
            if self._recorded_rows:
                for name, value in transition.variables.items():
                    self._records[-1][name] = value[: self._recorded_rows].clone()
            if self._note_ends(transition, step):
                for share in (self._shares[number] for number in acting):
                    share.steps = None if self._under_way[share.rows].any() else step
                acting = [number for number in acting if self._shares[number].steps is None]
            watching = self._watch(step)
            environment.reset_done()
            if len(states) > _STEPS_AT_ONCE or not acting:
                self._add_fitness(states, step)
                states = states[-1:]

    def _check(self, values: Mapping[str, Tensor], step: int) -> None:
        """Raise EnvironmentFaultError for an unsound state, unless its policy gave NaN actions."""
        unsound = torch.stack([is_unsound(value) for value in values.values()]).any(dim=0)
        unsound &= ~self._spoiled
        if self._environment.skipped_rows is not None:
            unsound &= ~self._environment.skipped_rows
        if bool(unsound.any()):
            row = unsound.nonzero()[:1, 0]
            when = f"in step {step} of an episode (of an evaluation, without noise)"
            state = {name: value[row] for name, value in values.items()}
            actions = self._environment.actions[row]
            check_rows(type(self._environment), state, lambda _: when, actions)

    def _copies(self, variables: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: variables[name].clone() for name in self._read}

    def _note_ends(self, transition: Transition, step: int) -> bool:
        """Note length and cause of the episodes that have just ended; True if there are any."""
        over = (transition.terminated | transition.truncated).cpu().numpy()
        ended = np.flatnonzero(over & self._under_way)
        if len(ended):
            causes = {TIME_OUT: transition.truncated, **transition.causes}
            flags = {name: rows.cpu().numpy() for name, rows in causes.items()}
            for row in ended.tolist():
                self._endings[row] = next(name for name, rows in flags.items() if rows[row])
            self._lengths[ended] = step
            self._under_way[ended] = False
            self._skip_rows()
        return len(ended) > 0

    def _skip_rows(self) -> None:
        unused = torch.from_numpy(~self._under_way)
        self._environment.skipped_rows = unused.to(self._environment.device)

    def _add_fitness(self, states: list[dict[str, Tensor]], end: int) -> None:
        """Add fitness up to step `end`, in a call for each policy, for equal rounding."""
        steps = len(states) - 1
        stacked = {name: torch.stack([state[name] for state in states]) for name in self._read}
        fitness = torch.zeros(steps, self._environment.num_envs, device=self._environment.device)
        for share in self._shares:
            taken = steps if share.steps is None else share.steps - (end - steps)
            if taken <= 0:
                continue
            values = {}
            for name in self._fitness_function.arguments:
                first = 0 if name.startswith(PREVIOUS_PREFIX) else 1
                part = stacked[variable_of(name)][first : first + taken, share.rows]
                values[name] = part.flatten(0, 1)
            fitness[:taken, share.rows] = self._fitness_function(values).view(taken, -1)
            self._check_fitness(fitness[:taken, share.rows], share, end - steps)
        so_far = torch.empty_like(fitness)
        for step in range(steps):
            self._running.add(fitness[step])
            so_far[step] = self._running.result()
        rows = np.flatnonzero((self._lengths > end - steps) & ~self._under_way)
        last = torch.from_numpy(self._lengths[rows] - 1 - (end - steps))
        self._result[rows] = so_far[last, rows]
        if self._recorded_rows:
            self._recorded_fitness.append(fitness[:, : self._recorded_rows])

    def _check_fitness(self, fitness: Tensor, share: _Share, begin: int) -> None:
        """Raise EnvironmentFaultError for a fitness that is not finite on a sound state."""
        broken = ~fitness.isfinite() & ~self._spoiled[share.rows]
        if isinstance(self._task.fitness, WrittenFitnessFunction) or not bool(broken.any()):
            return
        known = np.where(self._under_way, np.iinfo(np.int64).max, self._lengths)
        lengths = torch.from_numpy(known[share.rows])
        steps = torch.arange(begin, begin + len(fitness)).unsqueeze(1)
        if bool((broken.cpu() & (steps < lengths)).any()):
            raise fitness_fault(self._task)

    def _evaluation(self, share: _Share) -> Evaluation:
        fitness, lengths = self._result[share.rows].tolist(), self._lengths[share.rows].tolist()
        triples = zip(fitness, lengths, self._endings[share.rows], strict=True)
        summaries = tuple(EpisodeSummary(fitness=f, length=n, ended_by=e) for f, n, e in triples)
        return Evaluation(episodes=summaries, seed=share.request.seed)

    def _trajectories(self) -> list[dict[str, Trajectory] | None]:
        """The picked episodes of each recorded share."""
        found: list[dict[str, Trajectory] | None] = []
        picked: list[tuple[Trajectory, int]] = []
        """Each picked episode's arrays, and its row."""
        for share in self._shares:
            if share.request.record is None:
                found.append(None)
                continue
            numbers = share.request.record(self._result[share.rows])
            trajectories: dict[str, Trajectory] = {name: {} for name in numbers}
            rows = [share.rows.start + number for number in numbers.values()]
            picked += zip(trajectories.values(), rows, strict=True)
            found.append(trajectories)
        for name in (*self._records[0], "fitness") if self._recorded_rows else ():
            # one name at a time, to halve the peak memory
            parts = [record[name] for record in self._records if name in record]
            values = torch.cat(self._recorded_fitness) if name == "fitness" else torch.stack(parts)
            array = values.cpu().numpy()
            for trajectory, row in picked:
                trajectory[name] = array[: self._lengths[row], row].copy()
        return found
