"""A task's fitness, its own or a written one: called by step, and summed up by episode."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from eureka_agent.arguments import bind_arguments
from eureka_agent.errors import EnvironmentLoadError, EurekaError, RewardLoadError
from eureka_agent.records import WrittenFitness
from eureka_agent.rewards import RewardSpecification
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.user_modules import TimeLimitError, time_limit
from eureka_agent.task import Constant, FitnessReduction, Task, Variable
from eureka_agent.training.reward import Reward, RewardContractError, RewardFunction, device_of

LOADING_SECONDS = 5.0
"""Timeout of a written fitness's top level."""
CALL_SECONDS = 10.0
Loader = Callable[..., Reward]
"""Loads a reward like `load_here`, in any process. Raises RewardLoadError and TimeLimitError."""


class FitnessFunction:
    """A task's per-step fitness, bound to variables and constants by argument name."""

    def __init__(
        self, task: Task, variables: Sequence[Variable], constants: Sequence[Constant] = ()
    ) -> None:
        """Raises EnvironmentLoadError where the fitness reads what the environment lacks."""
        self._function = task.fitness
        binding = bind_arguments(task.fitness, variables, True, EnvironmentLoadError, constants)
        self.arguments = binding.variables
        self._constants = binding.constants

    def __call__(self, values: Mapping[str, Tensor]) -> Tensor:
        """Fitness of every step, shape (batch,). Shape of each value: (batch, *variable.shape)."""
        arguments = {name: values[name] for name in self.arguments}
        with device_of(values):
            fitness = self._function(**arguments, **self._constants)
        batch = values[self.arguments[0]].shape[0] if self.arguments else None
        is_tensor = isinstance(fitness, Tensor)
        if not is_tensor or fitness.dim() != 1 or (batch is not None and len(fitness) != batch):
            found = tuple(fitness.shape) if is_tensor else type(fitness).__name__
            raise EnvironmentLoadError(
                f"the task's fitness gave {found}, expected a tensor of shape ({batch},)",
                "return one number per environment, such as `variable[:, 0]`"
                if is_tensor
                else "return a torch tensor: compute with torch's functions in place of numpy's,"
                " such as torch.exp for np.exp",
            )
        return fitness.detach().to(torch.float32)


# ── a fitness that a language model wrote ─────────────────────────────────────────────────────────


class WrittenFitnessError(EurekaError):
    """A written fitness that raised, timed out or broke the contract on new states."""


def load_here(
    reward: RewardSpecification, variables: Sequence[Variable], **vocabulary: Any
) -> RewardFunction:
    """Load a reward that may run in this process; a `Loader`."""
    with time_limit(LOADING_SECONDS):
        return RewardFunction.from_source(reward.source, variables, reward.trusted, **vocabulary)


class WrittenFitnessFunction:
    """The total of a reward, called like a task's own fitness."""

    def __init__(
        self, reward: RewardSpecification, variables: Sequence[Variable], load: Loader = load_here
    ) -> None:
        """Raises WrittenFitnessError where the reward does not load."""
        try:
            self._reward = load(reward, variables)
        except (EurekaError, TimeLimitError) as error:
            raise _failed("cannot be loaded: ", "it", error) from None
        self.__name__ = "the written fitness"
        by_name = inspect.Parameter.KEYWORD_ONLY
        names = self._reward.arguments
        self.__signature__ = inspect.Signature([inspect.Parameter(each, by_name) for each in names])

    def __call__(self, **values: Tensor) -> Tensor:
        """Fitness of every step, shape (batch,), float32. Raises WrittenFitnessError."""
        try:
            return self._reward.begin(values, CALL_SECONDS)()[0]
        except (RewardContractError, RewardLoadError, TimeLimitError) as error:
            raise _failed("fails: ", "one call", error) from None


def _failed(what: str, subject: str, error: EurekaError | TimeLimitError) -> WrittenFitnessError:
    if isinstance(error, TimeLimitError):
        return WrittenFitnessError(f"the written fitness {what}{subject} {error}")
    return WrittenFitnessError(f"the written fitness {what}{error.message}", error.hint)


def with_written_fitness(
    loaded: LoadedEnvironment,
    task_name: str | None,
    fitness: WrittenFitness,
    load: Loader = load_here,
) -> LoadedEnvironment:
    """The environment with a task measured by a written fitness; `load` runs the source."""
    name, task = loaded.task(task_name)
    found = loaded.environment_class
    load = partial(load, constants=found.constants, quaternion_order=found.quaternion_order)
    function = WrittenFitnessFunction(fitness.reward, found.all_variables(), load)
    words: dict[str, Any] = {
        f"fitness_{each}": getattr(fitness, each) for each in ("doc", "unit", "reduction")
    }
    words |= {"sentence": fitness.sentence, "success_fitness": fitness.success_fitness}
    written = replace(task, fitness=function, **words)
    fingerprint = f"{loaded.fingerprint}+{fitness.fingerprint}"
    return replace(loaded, tasks={name: written}, fingerprint=fingerprint, written=fitness)


def fitness_in_parts(
    function: FitnessFunction, values: Mapping[str, Tensor], parts: int, members: int
) -> tuple[Tensor, dict[int, str]]:
    """Fitness of several members' steps, in `parts` calls, and failures by member. After a failure
    each member gets a call of its own. A task's own fitness that fails is an environment fault."""
    try:
        return torch.cat([function(part) for part in _split(values, parts)]), {}
    except WrittenFitnessError:
        pass
    fitness, reasons = [], {}
    for member, part in enumerate(_split(values, members)):
        try:
            fitness.append(function(part))
        except WrittenFitnessError as error:
            reasons[member] = error.message
            first = next(iter(part.values()))
            fitness.append(torch.zeros(len(first), device=first.device))
    return torch.cat(fitness), reasons


def _split(values: Mapping[str, Tensor], parts: int) -> Iterator[dict[str, Tensor]]:
    for part in zip(*(value.chunk(parts) for value in values.values()), strict=True):
        yield dict(zip(values, part, strict=True))


# ── episodes ──────────────────────────────────────────────────────────────────────────────────────


@dataclass
class EndedEpisodes:
    counted: Tensor
    """Steps at which they ended. Shape: (members, steps, num_envs), bool."""
    count: Tensor
    """Shape: (members,), as the next two."""
    fitness_sum: Tensor
    length_sum: Tensor
    fitness: Tensor
    """Fitness of the episode up to each step. Shape: (members, steps, num_envs), as the next."""
    gained: Tensor
    """Each step's addition to it; for a mean, the step's own fitness."""


class RunningFitness:
    def __init__(
        self, shape: tuple[int, ...], reduction: FitnessReduction, device: torch.device | str
    ) -> None:
        self.reduction: FitnessReduction = reduction
        self.length = torch.zeros(shape, device=device)
        self.value = torch.zeros(shape, device=device)

    def select(self, members: int) -> RunningFitness:
        part = RunningFitness((0,), self.reduction, "cpu")
        part.length, part.value = self.length[:members], self.value[:members]
        return part

    def add(self, fitness: Tensor) -> None:
        if self.reduction == "last":
            self.value.copy_(fitness)
        elif self.reduction == "max":
            # the first step of an episode has no maximum before it
            larger = torch.maximum(self.value, fitness)
            self.value.copy_(torch.where(self.length > 0, larger, fitness))
        else:
            self.value += fitness
        self.length += 1.0

    def result(self) -> Tensor:
        """Fitness of every episode so far; the next `add` may change it in place."""
        return self.value / self.length.clamp(min=1.0) if self.reduction == "mean" else self.value

    def restart(self, ended: Tensor) -> None:
        going_on = ~ended
        self.value *= going_on
        self.length *= going_on


class EpisodeTracker:
    """Episodes of K members. A member's environments start at random points of an episode, so that
    not all are truncated at once; this first, shortened episode does not count."""

    def __init__(
        self, members: int, num_envs: int, reduction: FitnessReduction, device: torch.device | str
    ) -> None:
        self._running = RunningFitness((members, num_envs), reduction, device)
        self._full = torch.zeros(members, num_envs, dtype=torch.bool, device=device)

    def reset(self, member: int) -> None:
        """Start a new training, whose first episodes are shortened."""
        mask = torch.zeros_like(self._full)
        mask[member] = True
        self._running.restart(mask)
        self._full[member] = False

    def member_tensors(self) -> dict[str, Tensor]:
        """State tensors, one row per member, not copied."""
        return {"full": self._full, "length": self._running.length, "value": self._running.value}

    def update(self, fitness: Tensor, ended: Tensor) -> EndedEpisodes:
        """Add an iteration of the leading members. Shape of both: (members, steps, num_envs)."""
        members = len(fitness)
        running, full = self._running.select(members), self._full[:members]
        values, lengths = torch.empty_like(fitness), torch.empty_like(fitness)
        counted, first = torch.empty_like(ended), running.value.unsqueeze(1).clone()
        for step in range(fitness.shape[1]):
            running.add(fitness[:, step])
            values[:, step] = running.result()
            lengths[:, step] = running.length
            torch.logical_and(ended[:, step], full, out=counted[:, step])
            full |= ended[:, step]
            running.restart(ended[:, step])
        weights = counted.float()
        parts = (torch.ones_like(values), values, lengths)
        count, fitnesses, total = ((part * weights).flatten(1).sum(dim=1) for part in parts)
        before = torch.cat([first, values[:, :-1] * ~ended[:, :-1]], dim=1)
        gained = fitness if running.reduction == "mean" else values - before
        return EndedEpisodes(counted, count, fitnesses, total, values, gained)
