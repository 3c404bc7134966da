"""A fitness that a language model wrote, in place of a task's own; its source is a reward's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from eureka_agent.errors import EurekaError, RewardLoadError
from eureka_agent.records import WrittenFitness
from eureka_agent.rewards import RewardSpecification
from eureka_agent.simulation.loading import LoadedEnvironment
from eureka_agent.simulation.time_limit import TimeLimitError, time_limit
from eureka_agent.task import Variable
from eureka_agent.training.binding import FitnessFunction
from eureka_agent.training.reward import Reward, RewardContractError, RewardFunction
from eureka_agent.training.reward_loading import load_reward

LOADING_SECONDS = 5.0
"""Timeout of its top level."""
CALL_SECONDS = 10.0


Loader = Callable[..., Reward]
"""Function like `load_reward`. Raises RewardLoadError and TimeLimitError."""


def load_here(
    reward: RewardSpecification, variables: Sequence[Variable], **vocabulary: Any
) -> RewardFunction:
    """Load a reward that may run in this process; a `Loader`."""
    with time_limit(LOADING_SECONDS):
        return load_reward(reward, variables, **vocabulary)


class WrittenFitnessError(EurekaError):
    """A written fitness that raised, timed out or broke the contract on new states."""


class WrittenFitnessFunction:
    """The total of a reward, called like a task's own fitness."""

    def __init__(
        self,
        reward: RewardSpecification,
        variables: Sequence[Variable],
        load: Loader = load_here,
    ) -> None:
        """Raises WrittenFitnessError where the reward does not load."""
        try:
            self._reward = load(reward, variables)
        except EurekaError as error:
            raise WrittenFitnessError(
                f"the written fitness cannot be loaded: {error.message}", error.hint
            ) from None
        except TimeLimitError as error:
            raise WrittenFitnessError(f"the written fitness cannot be loaded: it {error}") from None
        self.__name__ = "the written fitness"
        by_name = inspect.Parameter.KEYWORD_ONLY
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(name, by_name) for name in self._reward.arguments]
        )

    def __call__(self, **values: Tensor) -> Tensor:
        """Fitness of every step, shape (batch,), float32. Raises WrittenFitnessError."""
        try:
            return self._reward.begin(values, CALL_SECONDS)()[0]
        except (RewardContractError, RewardLoadError) as error:
            what = f"the written fitness fails: {error.message}"
            raise WrittenFitnessError(what, error.hint) from None
        except TimeLimitError as error:
            raise WrittenFitnessError(f"the written fitness fails: one call {error}") from None


def with_written_fitness(
    loaded: LoadedEnvironment,
    task_name: str | None,
    fitness: WrittenFitness,
    load: Loader = load_here,
) -> LoadedEnvironment:
    """The environment with one task, whose metric is the written fitness. `load` runs the source.
    Raises EnvironmentLoadError for a missing task, WrittenFitnessError."""
    name, task = loaded.task(task_name)
    found = loaded.environment_class
    load = partial(load, constants=found.constants, quaternion_order=found.quaternion_order)
    written = replace(
        task,
        sentence=fitness.sentence,
        fitness=WrittenFitnessFunction(fitness.reward, found.all_variables(), load),
        fitness_doc=fitness.doc,
        fitness_unit=fitness.unit,
        fitness_reduction=fitness.reduction,
        success_fitness=fitness.success_fitness,
    )
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
    """The values' first dimension in equal parts."""
    for part in zip(*(value.chunk(parts) for value in values.values()), strict=True):
        yield dict(zip(values, part, strict=True))
