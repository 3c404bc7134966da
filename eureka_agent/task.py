"""Vocabulary of an environment folder. No torch is imported here."""

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
"""Order of a quaternion's entries; `w` is the real part."""

PREVIOUS_PREFIX = "previous_"
"""Prefix of an argument that is the variable's value one step earlier."""


@dataclass(frozen=True)
class Variable:
    """A named quantity that a reward function may read as an argument."""

    name: str
    shape: tuple[int, ...]
    """Shape of one environment's value; the tensor has the batch in front: `(batch,)` for `()`."""
    unit: str
    """SI unit, `"1"` for dimensionless."""
    frame: str
    """`"world"`, `"body"`, `"joint"`, … or `"-"` where no frame applies."""
    doc: str
    """One line: its meaning and the order of its entries."""
    range: tuple[float, float] | None = None
    """Physical limits, where known: joint limits, action bounds."""
    private: bool = False
    """True: only fitness and baselines read it; the designer does not see it, and the critic
    rejects a reward that reads it."""

    def __post_init__(self) -> None:
        _check_argument_name("variable", self.name)
        if self.range is not None:
            check_range(f"the range of variable {self.name!r}", self.range)


@dataclass(frozen=True)
class Constant:
    """A number of the environment that a reward may take as an argument, such as a time step."""

    name: str
    """Argument name: a Python identifier that no variable has."""
    value: float
    unit: str = "1"
    doc: str = ""

    def __post_init__(self) -> None:
        _check_argument_name("constant", self.name)
        if not is_finite(self.value):
            raise EnvironmentLoadError(
                f"the value of constant {self.name!r} is {self.value!r}, expected a finite number",
                "declare anything but a single number as a Variable",
            )


@dataclass(frozen=True)
class Channel:
    """A quantity of several neighbouring numbers in the observation or the action, for use of the
    policy elsewhere."""

    name: str
    """Name of the quantity; the variable's, where it is one."""
    entries: tuple[str, ...] = ()
    """Names of its numbers in order: `("x", "y", "z")`, joints; `()` is one number."""
    unit: str = "1"
    frame: str = "-"
    doc: str = ""
    scale: float = 1.0
    """Factor from the quantity to the observation's value."""
    range: tuple[float, float] | None = None
    """Commands of an action at -1 and at 1; linear in between."""

    def __post_init__(self) -> None:
        are_names = all(isinstance(each, str) for each in self.entries)
        if not self.name or isinstance(self.entries, str) or not are_names:
            raise EnvironmentLoadError(
                f"the channel {self.name!r} has the entries {self.entries!r}, expected a name and a"
                " tuple of names",
                "write () for a single number",
            )
        if not is_finite(self.scale) or self.scale == 0:
            raise EnvironmentLoadError(
                f"the scale of channel {self.name!r} is {self.scale!r}, expected a number but 0",
                "write 1.0 for no scale",
            )
        if self.range is not None:
            check_range(f"the range of channel {self.name!r}", self.range)

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self.entries) or 1


def check_range(what: str, range: Any) -> None:
    """Raises EnvironmentLoadError where `range` is not two finite numbers in ascending order."""
    ends = range if isinstance(range, (tuple, list)) else ()
    if len(ends) != 2 or not all(map(is_finite, ends)):
        raise EnvironmentLoadError(
            f"{what} is {range!r}, expected two finite numbers",
            "leave the range out where the physics has no bound",
        )
    if ends[0] >= ends[1]:
        hint = "a value that never changes is a Constant; else widen the range"
        raise EnvironmentLoadError(
            f"{what} is {range!r}, expected the smallest value and then a larger one",
            "swap the two ends" if ends[0] > ends[1] else hint,
        )


def is_finite(value: object) -> bool:
    """True for a number, not a bool, that is neither infinite nor NaN."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _check_argument_name(kind: str, name: str) -> None:
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith(PREVIOUS_PREFIX):
        raise EnvironmentLoadError(
            f"{kind} name {name!r} cannot be an argument of a reward function",
            f"use a Python identifier that does not start with {PREVIOUS_PREFIX!r}",
        )


@dataclass(frozen=True, kw_only=True)
class TrainingBudget:
    """Length of one training on this task, and the PPO settings that the task overrides."""

    env_steps: int = 200_000
    """Control steps of one training, summed over the environments."""
    num_envs: int = 16
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `eureka_agent.settings.TrainingSettings`, by name."""

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
    """An environment's task: the sentence, the metric and the baselines."""

    sentence: str
    """The task in plain words; the default of a search."""
    fitness: Callable[..., Tensor]
    """Per-step metric: takes variables by name, like a reward. Returns shape `(batch,)`."""
    fitness_doc: str
    """An episode's fitness in words: `"metres travelled forward in an episode"`."""
    fitness_unit: str = "1"
    fitness_reduction: FitnessReduction = "sum"
    """Reduction of the per-step values of an episode to its fitness."""
    success_fitness: float | None = None
    """Least fitness of a solved episode."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the environment's constructor for this task: a start state, a goal."""
    human_reward: str = "rewards/human.py"
    """Path of an expert's reward within the environment's folder."""
    sparse_reward: str = "rewards/sparse.py"
    """Path of the reward that is the fitness itself."""
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
        # infinite means, as None does, that no episode counts as solved
        if self.success_fitness is not None and not (
            is_finite(self.success_fitness) or self.success_fitness == math.inf
        ):
            raise EnvironmentLoadError(
                f"a task's success_fitness is {self.success_fitness!r}, expected a number",
                "write None where no episode counts as solved",
            )
