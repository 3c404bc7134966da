"""The words an environment folder is written in: `Variable`, `Constant`, `Channel`, `Task`,
`TrainingBudget`. No torch is imported here."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, get_args

from eureka_agent.errors import EnvironmentLoadError

if TYPE_CHECKING:
    from torch import Tensor

FitnessReduction = Literal["sum", "mean", "last", "max"]
QuaternionOrder = Literal["wxyz", "xyzw"]
"""Where a quaternion has its real part `w`."""

PREVIOUS_PREFIX = "previous_"
"""An argument `previous_<variable>` is the variable's value one step earlier."""


@dataclass(frozen=True)
class Variable:
    """A named quantity that a reward function may read as an argument."""

    name: str
    """Argument name, a Python identifier."""
    shape: tuple[int, ...]
    """Shape of one environment's value; the batch comes in front. `()` is a scalar: the tensor has
    shape `(batch,)`."""
    unit: str
    """SI unit, `"1"` for dimensionless."""
    frame: str
    """`"world"`, `"body"`, `"joint"`, … or `"-"` where no frame applies."""
    doc: str
    """One line: what it is and in which order its entries come."""
    range: tuple[float, float] | None = None
    """Smallest and largest value that the physics allows, where known (joint limits, action
    bounds)."""
    private: bool = False
    """True: for the fitness and the baselines only; hidden from the designer and refused in a
    proposed reward."""

    def __post_init__(self) -> None:
        _check_argument_name("variable", self.name)
        if self.range is not None:
            check_range(f"the range of variable {self.name!r}", self.range)


@dataclass(frozen=True)
class Constant:
    """A number of the environment that a reward function may name as an argument, such as the time
    step."""

    name: str
    """Argument name, a Python identifier, and no variable's."""
    value: float
    unit: str = "1"
    """SI unit, `"1"` for dimensionless."""
    doc: str = ""
    """One line."""

    def __post_init__(self) -> None:
        _check_argument_name("constant", self.name)
        if not is_finite(self.value):
            raise EnvironmentLoadError(
                f"the value of constant {self.name!r} is {self.value!r}, expected a finite number",
                "what is no single number is a Variable",
            )


@dataclass(frozen=True)
class Channel:
    """Neighbouring numbers of the observation or the action that belong together: told to whoever
    runs the policy elsewhere."""

    name: str
    """Name of the quantity; where it is a variable too, the variable's."""
    entries: tuple[str, ...] = ()
    """A name for each of its numbers, in their order (`("x", "y", "z")`, joints); `()` is one
    number."""
    unit: str = "1"
    """SI unit, `"1"` for dimensionless."""
    frame: str = "-"
    """As a Variable's."""
    doc: str = ""
    """One line."""
    scale: float = 1.0
    """The observation holds the quantity times this."""
    range: tuple[float, float] | None = None
    """Commands of an action at -1 and at 1; the values between are in proportion."""

    def __post_init__(self) -> None:
        if (
            not self.name
            or isinstance(self.entries, str)
            or not all(isinstance(each, str) for each in self.entries)
        ):
            raise EnvironmentLoadError(
                f"the channel {self.name!r} has the entries {self.entries!r}, expected a name and a"
                " tuple of names",
                "write () for a single number",
            )
        if not is_finite(self.scale) or self.scale == 0:
            raise EnvironmentLoadError(
                f"the scale of channel {self.name!r} is {self.scale!r}, expected a number other"
                " than 0",
                "1.0 is none",
            )
        if self.range is not None:
            check_range(f"the range of channel {self.name!r}", self.range)

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self.entries) or 1


def check_range(what: str, range: Any) -> None:
    """Raises EnvironmentLoadError where `range` is not two finite numbers, the smaller one
    first."""
    ends = range if isinstance(range, (tuple, list)) else ()
    if len(ends) != 2 or not all(map(is_finite, ends)):
        raise EnvironmentLoadError(
            f"{what} is {range!r}, expected two finite numbers",
            "leave the range out where the physics has no bound",
        )
    if ends[0] >= ends[1]:
        raise EnvironmentLoadError(
            f"{what} is {range!r}, expected the smallest value and then a larger one",
            (
                "swap the two ends"
                if ends[0] > ends[1]
                else "a value that never changes is a Constant; else widen the range"
            ),
        )


def is_finite(value: object) -> bool:
    """True for a number that is neither infinite nor NaN. A bool is none."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _check_argument_name(kind: str, name: str) -> None:
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith(PREVIOUS_PREFIX):
        raise EnvironmentLoadError(
            f"{kind} name {name!r} cannot be an argument of a reward function",
            f"use a Python identifier that does not start with {PREVIOUS_PREFIX!r}",
        )


@dataclass(frozen=True, kw_only=True)
class TrainingBudget:
    """How long one training takes on this task, and PPO's settings where the task needs others than
    the defaults."""

    env_steps: int = 200_000
    """Environment steps (control steps, summed over the environments) of one training."""
    num_envs: int = 16
    """Parallel environments of one training."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `eureka_agent.settings.TrainingSettings` that this task sets, by name."""

    def __post_init__(self) -> None:
        for name in ("env_steps", "num_envs"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise EnvironmentLoadError(
                    f"{name} of a TrainingBudget is {value!r}, expected a whole number from 1 on",
                    "write a number without a decimal point: 200_000",
                )


@dataclass(frozen=True, kw_only=True)
class Task:
    """An environment's task: the sentence, the metric that counts, and what to compare with."""

    sentence: str
    """The task in plain words; the default for a search that names none."""
    fitness: Callable[..., Tensor]
    """Per-step metric: takes variables by name, like a reward, and returns a tensor of shape
    `(batch,)`."""
    fitness_doc: str
    """The episode's fitness in words, as people and designers see it (`"metres travelled forward in
    an episode"`)."""
    fitness_unit: str = "1"
    """Unit of the episode's fitness."""
    fitness_reduction: FitnessReduction = "sum"
    """How the per-step values of an episode become its fitness."""
    success_fitness: float | None = None
    """Episode fitness from which an episode counts as solved."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the environment's constructor that make it this task (a start state, a
    goal range)."""
    human_reward: str = "rewards/human.py"
    """Reward written by an expert, a path within the environment's folder."""
    sparse_reward: str = "rewards/sparse.py"
    """Reward that is the fitness itself, a path within the environment's folder."""
    training: TrainingBudget = field(default_factory=TrainingBudget)

    def __post_init__(self) -> None:
        if not re.search(r"\w", self.sentence):
            raise EnvironmentLoadError(
                f"a task needs a sentence, found {self.sentence!r}", "say in words what is wanted"
            )
        if self.fitness_reduction not in get_args(FitnessReduction):
            raise EnvironmentLoadError(
                f"a task's fitness_reduction is {self.fitness_reduction!r}",
                f"expected one of {', '.join(map(repr, get_args(FitnessReduction)))}",
            )
        # infinite is a way to say that no episode counts as solved, as None is
        if self.success_fitness is not None and not (
            is_finite(self.success_fitness) or self.success_fitness == math.inf
        ):
            raise EnvironmentLoadError(
                f"a task's success_fitness is {self.success_fitness!r}, expected a number",
                "write None where no episode counts as solved",
            )
