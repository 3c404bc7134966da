"""A fitness that a language model wrote, in the place of a task's own: the same source form, checks
and limits as a reward's."""

from __future__ import annotations

import hashlib
import inspect
import json
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
from eureka_agent.task import Variable
from eureka_agent.training.binding import FitnessFunction
from eureka_agent.training.reward import Reward, RewardContractError, RewardFunction
from eureka_agent.training.reward_loading import load_reward
from eureka_agent.training.time_limit import TimeLimitError, time_limit

LOADING_SECONDS = 5.0
"""What its top level may take."""
CALL_SECONDS = 10.0
"""What one call may take."""


Loader = Callable[..., Reward]
"""A reward from its specification and variables, and `constants` and `quaternion_order` by keyword.
Raises RewardLoadError and TimeLimitError."""


def load_here(
    reward: RewardSpecification, variables: Sequence[Variable], **vocabulary: Any
) -> RewardFunction:
    """A `Loader` for rewards that may run in this process."""
    with time_limit(LOADING_SECONDS):
        return load_reward(reward, variables, **vocabulary)


class WrittenFitnessError(EurekaError):
    """A written fitness that raised, took too long or returned what the contract forbids, on states
    that it was not tried on."""


class WrittenFitnessFunction:
    """The total of a reward, called like a task's own fitness: with variables by name, one
    value a step."""

    def __init__(
        self,
        reward: RewardSpecification,
        variables: Sequence[Variable],
        load: Loader = load_here,
    ) -> None:
        """Raises WrittenFitnessError where the reward does not load, or reads what is no public
        variable."""
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
        """Fitness of every step. Shape: (batch,), float32. Raises WrittenFitnessError; whether it
        is finite is not looked at."""
        try:
            return self._reward.begin(values, CALL_SECONDS)()[0]
        except (RewardContractError, RewardLoadError) as error:
            raise WrittenFitnessError(
                f"the written fitness fails: {error.message}", error.hint
            ) from None
        except TimeLimitError as error:
            raise WrittenFitnessError(f"the written fitness fails: one call {error}") from None


def with_written_fitness(
    loaded: LoadedEnvironment,
    task_name: str | None,
    fitness: WrittenFitness,
    load: Loader = load_here,
) -> LoadedEnvironment:
    """The environment with one of its tasks alone, whose metric is the written one. Its set-up and
    training budget stay.

    `load`: has the source run where it may. Raises EnvironmentLoadError for a task that is not
    there, WrittenFitnessError for a fitness that cannot be loaded.
    """
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
    fingerprint = f"{loaded.fingerprint}+{_fingerprint(fitness)}"
    return replace(loaded, tasks={name: written}, fingerprint=fingerprint, written=fitness)


def _fingerprint(fitness: WrittenFitness) -> str:
    """SHA-256 over all that a score depends on."""
    content = [fitness.source, fitness.reduction, fitness.success_fitness]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def fitness_in_parts(
    function: FitnessFunction, values: Mapping[str, Tensor], parts: int, members: int
) -> tuple[Tensor, dict[int, str]]:
    """Fitness of the steps of several members, calculated in so many equal parts, and why it failed
    on those of some, by member.

    A written fitness that fails on the states of one member must not take its neighbours with it:
    it is then called for each by itself. A task's own that fails is an error of the environment,
    which is raised.
    """
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
