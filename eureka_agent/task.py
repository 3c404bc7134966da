"""Vocabulary of an environment folder. No torch is imported here."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.reward_names import is_argument_name

if TYPE_CHECKING:
    from torch import Tensor

FitnessReduction = Literal["sum", "mean", "last", "max"]
QuaternionOrder = Literal["wxyz", "xyzw"]
"""Order of a quaternion's entries; `w` is the real part."""

HUMAN_REWARD, SPARSE_REWARD = "rewards/human.py", "rewards/sparse.py"
"""Paths of a task's rewards where it names no others."""
PREVIOUS_PREFIX = "previous_"
"""Prefix of an argument that is the variable's value one step earlier."""
MOST_WINDOW = 64
"""Longest window of a variable, in control steps."""
WINDOW_SUFFIX = "_window"
"""Suffix of the variable that holds another one's last values."""
RANGE_TOLERANCE = 0.1
"""Part of its declared range by which a variable may leave it."""
_LARGEST_FLOAT32 = 2.0**128 - 2.0**104


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
    window: int = 0
    """Number of last values that rewards may read as `<name>_window`; 0: none."""

    def __post_init__(self) -> None:
        _check_argument_name("variable", self.name)
        is_number = isinstance(self.window, int) and not isinstance(self.window, bool)
        if not is_number or self.window == 1 or not 0 <= self.window <= MOST_WINDOW:
            raise EnvironmentLoadError(
                f"the window of variable {self.name!r} is {self.window!r}, expected a whole number"
                f" from 2 to {MOST_WINDOW}",
                "leave it out for no window",
            )
        if self.range is not None:
            check_range(f"the range of variable {self.name!r}", self.range)


def window_of(variable: Variable) -> Variable:
    """The variable of another one's last `window` values."""
    doc = (
        f"the last {variable.window} values of {variable.name} along the first axis, one step"
        " apart, from the oldest to this step's; the start state's value stands before the start"
    )
    shape = (variable.window, *variable.shape)
    return replace(variable, name=variable.name + WINDOW_SUFFIX, shape=shape, doc=doc, window=0)


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
class Parameter:
    """A property of an environment that may differ between episodes: a mass, a friction, a
    delay."""

    name: str
    """A Python identifier that no variable or constant has."""
    unit: str
    """SI unit, `"1"` for a factor."""
    default: float
    """Value of an episode for which nothing else was asked."""
    low: float
    """Least value at which the simulation is sound and the task can be solved."""
    high: float
    """Largest such value."""
    doc: str
    """One line: its meaning, and the reason for the range."""
    of_model: ClassVar[bool] = False
    """True where it changes the simulator's model, which all rows share on a GPU."""

    def __post_init__(self) -> None:
        _check_argument_name("parameter", self.name)
        if not is_finite(self.default):
            raise EnvironmentLoadError(
                f"the default of parameter {self.name!r} is {self.default!r}, expected a number",
                "write the value of the unchanged environment",
            )
        check_range(f"the range of parameter {self.name!r}", (self.low, self.high))
        if not self.low <= self.default <= self.high:
            raise EnvironmentLoadError(
                f"the default of parameter {self.name!r} is {self.default!r}, outside of its range"
                f" {self.low!r} … {self.high!r}",
                "widen the range, or correct the default",
            )
        for end in ("low", "high", "default"):
            value = float(getattr(self, end))  # also of a Fraction
            if abs(value) > _LARGEST_FLOAT32:
                raise EnvironmentLoadError(
                    f"{end} of parameter {self.name!r} is {value!r}, expected a number that float32"
                    f" can hold, up to {_LARGEST_FLOAT32:.4g}",
                    "give the range in which the task can be solved",
                )
            object.__setattr__(self, end, value)


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


def is_inner_path(path: object) -> bool:
    """True for the text of a path that leads to a file within a folder."""
    parts = PurePosixPath(path).parts if isinstance(path, str) else ()
    return bool(parts) and parts[0] != "/" and ".." not in parts


def is_finite(value: object) -> bool:
    """True for a number, not a bool, that is neither infinite nor NaN."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def _check_argument_name(kind: str, name: str) -> None:
    if not is_argument_name(name) or name.startswith(PREVIOUS_PREFIX):
        raise EnvironmentLoadError(
            f"{kind} name {name!r} cannot be an argument of a reward function",
            f"use a Python identifier that does not start with {PREVIOUS_PREFIX!r}, and is no"
            " module or built-in function",
        )


@dataclass(frozen=True, kw_only=True)
class TrainingBudget:
    """Length of one training on this task, and the PPO settings that the task overrides."""

    env_steps: int = 200_000
    """Control steps of one training, summed over the environments."""
    num_envs: int = 16
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `eureka_agent.settings.TrainingSettings`, by name."""
    gpu: Mapping[str, Any] = field(default_factory=dict)
    """Likewise, in place of all others where trainings run on a GPU: `num_envs`, `env_steps`,
    `epochs`."""

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
    human_reward: str = HUMAN_REWARD
    """Path of an expert's reward within the environment's folder."""
    sparse_reward: str = SPARSE_REWARD
    """Path of the reward that is the fitness itself."""
    training: TrainingBudget = field(default_factory=TrainingBudget)

    @property
    def rewards(self) -> frozenset[str]:
        """Paths of its rewards."""
        return frozenset({self.human_reward, self.sparse_reward})

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
        for kind in ("human_reward", "sparse_reward"):
            path: object = getattr(self, kind)
            if not is_inner_path(path):
                raise EnvironmentLoadError(
                    f"a task's {kind} is {path!r}, expected a path within the environment's folder",
                    "copy the file into the folder, and name it from there, such as"
                    f" {HUMAN_REWARD!r}",
                )
        # infinite means, as None does, that no episode counts as solved
        if self.success_fitness is not None and not (
            is_finite(self.success_fitness) or self.success_fitness == math.inf
        ):
            raise EnvironmentLoadError(
                f"a task's success_fitness is {self.success_fitness!r}, expected a number",
                "write None where no episode counts as solved",
            )
