"""Checks of an environment class at loading: attributes and declarations that cannot work, and
misspelt names of a base class's methods and attributes."""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
from collections.abc import Iterator
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, ValidationError

from eureka_agent import syntax
from eureka_agent.errors import EnvironmentLoadError, did_you_mean
from eureka_agent.records import MOST_CHOICES
from eureka_agent.settings import validation_fault
from eureka_agent.simulation.row_parameters import ACTION_DELAY
from eureka_agent.simulation.user_modules import PACKAGE, place_of_function
from eureka_agent.simulation.vec_task import SUCCEEDED, VecTask
from eureka_agent.task import (
    PREVIOUS_PREFIX,
    Channel,
    Constant,
    Parameter,
    QuaternionOrder,
    Variable,
    window_of,
)

_Texts: TypeAlias = tuple[str, ...]
_Positive: TypeAlias = Annotated[int, Field(gt=0, strict=True)]


class _Declarations(BaseModel):
    """Types of an environment class's attributes."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    num_observations: _Positive
    num_actions: _Positive
    max_episode_length: _Positive
    control_dt: float = Field(gt=0, allow_inf_nan=False, strict=True)
    variables: tuple[InstanceOf[Variable], ...]
    constants: tuple[InstanceOf[Constant], ...]
    parameters: tuple[InstanceOf[Parameter], ...]
    observation_channels: tuple[InstanceOf[Channel], ...]
    action_channels: tuple[InstanceOf[Channel], ...]
    action_choices: tuple[_Positive, ...]
    termination_causes: Annotated[_Texts, Field(min_length=1)]
    success_causes: _Texts
    device_types: _Texts
    gpu_modules: _Texts
    masses_and_sizes: _Texts
    termination_conditions: dict[str, str]
    quaternion_order: QuaternionOrder
    caption_variables: _Texts


_CALLED_FROM_OUTSIDE = frozenset(
    (
        *("advance", "create", "all_variables", "read_variables", "reset", "reset_done"),
        *("reset_rows", "reset_masked", "step"),
    )
)
"""Methods of a base class that others call; the rest may be overridden."""
_SIMILAR = 0.84
"""Similarity (`difflib`) from which a name counts as a misspelling of another."""
_FOREIGN = (PACKAGE, "abc", "builtins")
"""Packages of base classes that are not the environment author's."""


def check_class(cls: type[VecTask]) -> None:
    """Raises EnvironmentLoadError for a class that cannot work."""
    if missing := sorted(getattr(cls, "__abstractmethods__", ())):
        meant = (each for each in misspelt(cls) if each[2] in missing)
        hints = (f"{at}is {name!r} meant for it? rename it to {to!r}" for at, name, to in meant)
        what = f"{cls.__name__} does not define {', '.join(missing)}"
        raise EnvironmentLoadError(what, next(hints, "see the docstrings of VecTask's methods"))
    try:
        values = {name: getattr(cls, name, None) for name in _Declarations.model_fields}
        _Declarations.model_validate(values)
    except ValidationError as error:
        what = f"in the class {cls.__name__} {validation_fault(error)}"
        hint = "correct it; several values, or one of several, are a tuple: `(…,)`"
        raise EnvironmentLoadError(what, hint) from None
    for fault, hint in _faults(cls):
        raise EnvironmentLoadError(fault, hint)


def _faults(cls: type[VecTask]) -> Iterator[tuple[str, str]]:
    """Faults of attributes that have the right form, each with a hint."""
    name, causes = cls.__name__, cls.termination_causes
    if (choices := sum(cls.action_choices)) > MOST_CHOICES:
        fault = f"{name}.action_choices has {choices:,} choices, expected at most {MOST_CHOICES:,}"
        yield fault, "a quantity with many values is better a continuous action, rounded"
    if len(cls.action_choices) not in (0, cls.num_actions):
        found, size = cls.action_choices, cls.num_actions
        fault = f"{name}.action_choices is {found!r}, expected {size} numbers"
        yield fault, "() where actions are continuous; (3,) is one choice of three"
    for attribute in ("success_causes", "termination_conditions"):
        for cause in getattr(cls, attribute):
            if cause not in causes:
                of = "which is none of its termination_causes"
                fault = f"{name}.{attribute} has {cause!r}, {of} {causes!r}"
                yield fault, f"name it in both; {did_you_mean(str(cause), causes)}"
    seen = {"actions", "terminated", *([SUCCEEDED] if cls.success_causes else [])}
    for variable in cls.variables:
        shape = variable.shape
        sizes = shape if isinstance(shape, tuple) else (0,)
        if not all(isinstance(size, int) and size > 0 for size in sizes):
            fault = f"the shape of variable {variable.name!r} is {shape!r}, expected a tuple of"
            yield f"{fault} sizes without the batch", "() is a scalar, (3,) a vector of three"
    named = [("variable", each.name) for each in cls.variables]
    named += [("window", window_of(each).name) for each in cls.variables if each.window]
    named += [("constant", each.name) for each in cls.constants]
    named += [("parameter", each.name) for each in cls.parameters]
    for kind, each_name in named:
        if each_name in seen:
            fault = f"the {kind} {each_name!r} of {name} has another variable's, constant's or"
            hint = "rename one; `actions` and `terminated` are always there, `succeeded` may be"
            yield f"{fault} parameter's name", hint
        seen.add(each_name)
    known = [each.name for each in cls.all_variables()]
    for each_name in cls.caption_variables:
        if each_name.removeprefix(PREVIOUS_PREFIX) not in known:
            fault = f"{name}.caption_variables has {each_name!r}, which is none of its variables"
            yield fault, did_you_mean(each_name, known)
    for each in cls.parameters:
        longest = cls.max_episode_length
        if each.name == ACTION_DELAY and not 0 <= each.low < each.high <= longest:
            where = f"of {name} goes from {each.low:g} to {each.high:g} control steps, expected a"
            fault = f"the parameter {each.name!r} {where} range within 0 … {longest}"
            yield f"{fault}, an episode's steps", "correct the range"
    for attribute, size in (
        ("observation_channels", cls.num_observations),
        ("action_channels", cls.num_actions),
    ):
        channels = getattr(cls, attribute)
        declared = sum(channel.size for channel in channels)
        if channels and declared != size:
            fault = f"{name}.{attribute} names {declared} numbers, expected {size}"
            yield fault, "name all of them in their order, or leave it out"


# ── misspelt names ────────────────────────────────────────────────────────────────────────────────


def own_classes(cls: type[VecTask]) -> list[type]:
    """The class and its bases outside this package, the class first."""
    return [each for each in cls.__mro__ if each.__module__.partition(".")[0] not in _FOREIGN]


def misspelt(cls: type[VecTask]) -> Iterator[tuple[str, str, str]]:
    """Find attributes without a reader that resemble a base class's: place, name, intended name."""
    own = own_classes(cls)
    bases = [base for base in cls.__mro__ if issubclass(base, VecTask) and base not in own]
    items = (item for each in reversed(own) for item in vars(each).items())
    written = {name: value for name, value in items if name[0] != "_"}
    nodes = (node for each in own for node in ast.walk(_tree(each)))
    found = (node for node in nodes if isinstance(node, ast.Attribute))
    read = {node.attr for node in found if isinstance(node.ctx, ast.Load)}
    for is_method in (True, False):
        known = {name for base in bases for name in _to_be_written(base, is_method)}
        for name, value in written.items():
            if inspect.isfunction(value) != is_method or name in known | read:
                continue
            close = difflib.get_close_matches(name, known - set(written), n=1, cutoff=_SIMILAR)
            if close:
                yield place_of_function(value) if is_method else "", name, close[0]


def remarks_on(cls: type[VecTask]) -> tuple[str, ...]:
    """Likely mistakes in a class that can be used: its misspelt names, and its own remarks."""
    what = f"{cls.__name__} has {{!r}}, which overrides nothing and which nothing reads"
    found = (
        f"{at}{what.format(name)}; the base class calls {to!r}" for at, name, to in misspelt(cls)
    )
    return (*found, *cls._remarks)


def _to_be_written(base: type, is_method: bool) -> set[str]:
    """Names of a base class's overridable methods, or of its class attributes."""
    found = {name for name, value in vars(base).items() if inspect.isfunction(value) == is_method}
    found |= set() if is_method else set(inspect.get_annotations(base))
    return {name for name in found if name[0] != "_"} - _CALLED_FROM_OUTSIDE


def _tree(cls: type) -> ast.AST:
    try:
        return syntax.parsed(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return ast.Module(body=[], type_ignores=[])
