"""Checks of an environment class at loading: attributes and declarations that cannot work."""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from eureka_agent.errors import EnvironmentLoadError, did_you_mean
from eureka_agent.records import MOST_CHOICES
from eureka_agent.simulation.row_parameters import ACTION_DELAY
from eureka_agent.simulation.user_modules import place_of_function
from eureka_agent.simulation.vec_task import SUCCEEDED, VecTask
from eureka_agent.task import (
    Channel,
    Constant,
    Parameter,
    QuaternionOrder,
    Variable,
    window_of,
)

_INTEGERS = ("num_observations", "num_actions", "max_episode_length")
_DECLARATIONS = {
    "variables": Variable,
    "constants": Constant,
    "parameters": Parameter,
    "observation_channels": Channel,
    "action_channels": Channel,
}
_NAMES = ("termination_causes", "success_causes", "device_types", "gpu_modules")


def check_class(cls: type[VecTask]) -> None:
    """Raises EnvironmentLoadError for a class that cannot work."""
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        raise EnvironmentLoadError(
            f"{cls.__name__} does not define {', '.join(missing)}",
            _misspelt(cls, missing) or "see the docstrings of VecTask's methods",
        )
    for name in (*_INTEGERS, "control_dt"):
        kind = int if name in _INTEGERS else float
        value: Any = getattr(cls, name, None)
        is_number = isinstance(value, int | kind) and not isinstance(value, bool)
        if not (is_number and 0 < value < math.inf):
            expected = f"expected a positive {kind.__name__}"
            raise _wrong(cls, name, value, expected, f"set it in the class: `{name} = …`")
    for name, declared in _DECLARATIONS.items():
        value = getattr(cls, name)
        if not isinstance(value, (tuple, list)):
            expected = f"expected a tuple of {declared.__name__}(…)"
            raise _wrong(cls, name, value, expected, f"with one too: `{name} = (…,)`")
    _check_choices(cls)
    _check_causes(cls)
    _check_names(cls)
    _check_channels(cls, "observation_channels", cls.num_observations)
    _check_channels(cls, "action_channels", cls.num_actions)
    _check_texts(cls)
    if cls.quaternion_order not in get_args(QuaternionOrder):
        hint = "'xyzw', Isaac Gym's, has the real part last"
        expected = "expected 'wxyz' or 'xyzw'"
        raise _wrong(cls, "quaternion_order", cls.quaternion_order, expected, hint)


def _wrong(
    cls: type[VecTask], name: str, value: object, expected: str, hint: str
) -> EnvironmentLoadError:
    return EnvironmentLoadError(f"{cls.__name__}.{name} is {value!r}, {expected}", hint)


def _misspelt(cls: type[VecTask], missing: Sequence[str]) -> str:
    """Hint on a method with almost the name of a missing one; empty without any."""
    own = {
        name: value
        for each in cls.__mro__
        for name, value in vars(each).items()
        if inspect.isfunction(value)
    }
    others = [name for name in own if not hasattr(VecTask, name)]
    for name in missing:
        for close in difflib.get_close_matches(name, others, n=1, cutoff=0.75):
            place = place_of_function(own[close])
            return f"{place}is {close!r} meant for it? rename it to {name!r}"
    return ""


def _check_choices(cls: type[VecTask]) -> None:
    choices = cls.action_choices
    is_numbers = isinstance(choices, tuple) and all(
        isinstance(count, int) and not isinstance(count, bool) and count > 0 for count in choices
    )
    if not is_numbers or (choices and len(choices) != cls.num_actions):
        expected = f"expected a tuple of {cls.num_actions} numbers of choices, as num_actions says"
        hint = "() where actions are continuous; (3,) is one choice of three"
        raise _wrong(cls, "action_choices", choices, expected, hint)
    if sum(choices) > MOST_CHOICES:
        raise EnvironmentLoadError(
            f"{cls.__name__}.action_choices has {sum(choices):,} choices, expected at most"
            f" {MOST_CHOICES:,}",
            "a quantity with many values is better a continuous action, rounded",
        )


def _check_causes(cls: type[VecTask]) -> None:
    for name in _NAMES:
        value = getattr(cls, name)
        if not _is_texts(value, (tuple, list)):
            hint = f"with one name too: `{name} = (…,)`"
            raise _wrong(cls, name, value, "expected a tuple of names", hint)
    if not cls.termination_causes:
        raise EnvironmentLoadError(
            f"{cls.__name__}.termination_causes is empty, expected one name at least",
            "leave it out where nothing ends an episode early",
        )
    for cause in cls.success_causes:
        if cause not in cls.termination_causes:
            raise EnvironmentLoadError(
                f"{cls.__name__}.success_causes has {cause!r}, which is none of its"
                f" termination_causes {cls.termination_causes!r}",
                f"name it in both; {did_you_mean(cause, cls.termination_causes)}",
            )


def _check_names(cls: type[VecTask]) -> None:
    """Variables, constants and parameters with unique names, and variables with a valid shape."""
    seen = {"actions", "terminated", *([SUCCEEDED] if cls.success_causes else [])}
    for variable in cls.variables:
        _check_type(cls, "variables", variable, Variable)
        if variable.name in seen:
            raise EnvironmentLoadError(
                f"{cls.__name__} has two variables named {variable.name!r}",
                "rename one; `actions` and `terminated` always exist, and `succeeded` with"
                " success_causes",
            )
        if not isinstance(variable.shape, tuple) or not all(
            isinstance(size, int) and size > 0 for size in variable.shape
        ):
            raise EnvironmentLoadError(
                f"the shape of variable {variable.name!r} is {variable.shape!r}, expected a tuple"
                " of sizes without the batch",
                "() is a scalar, (3,) a vector of three",
            )
        seen.add(variable.name)
    for variable in (window_of(each) for each in cls.variables if each.window):
        if variable.name in seen:
            raise EnvironmentLoadError(
                f"{cls.__name__} has a variable {variable.name!r}, which is the name of another"
                " one's window",
                "rename it",
            )
        seen.add(variable.name)
    for constant in cls.constants:
        _check_type(cls, "constants", constant, Constant)
        if constant.name in seen:
            raise EnvironmentLoadError(
                f"the constant {constant.name!r} of {cls.__name__} has the name of another constant"
                " or a variable",
                "rename it",
            )
        seen.add(constant.name)
    for parameter in cls.parameters:
        _check_type(cls, "parameters", parameter, Parameter)
        if parameter.name in seen:
            raise EnvironmentLoadError(
                f"the parameter {parameter.name!r} of {cls.__name__} has the name of another"
                " parameter, a constant or a variable",
                "rename it",
            )
        longest = cls.max_episode_length
        if parameter.name == ACTION_DELAY and not 0 <= parameter.low < parameter.high <= longest:
            raise EnvironmentLoadError(
                f"the parameter {parameter.name!r} of {cls.__name__} goes from {parameter.low:g} to"
                f" {parameter.high:g} control steps, expected a range within 0 … {longest}, an"
                " episode's steps",
                "correct the range",
            )
        seen.add(parameter.name)


def _check_type(cls: type[VecTask], name: str, value: object, expected: type) -> None:
    if not isinstance(value, expected):
        raise EnvironmentLoadError(
            f"{cls.__name__}.{name} holds {value!r}, expected {expected.__name__}(…)",
            f"see eureka_agent.task.{expected.__name__}",
        )


def _check_channels(cls: type[VecTask], name: str, size: int) -> None:
    channels = getattr(cls, name)
    for channel in channels:
        _check_type(cls, name, channel, Channel)
    declared = sum(channel.size for channel in channels)
    if channels and declared != size:
        raise EnvironmentLoadError(
            f"{cls.__name__}.{name} names {declared} numbers, expected {size}",
            "name all of them in their order, or leave it out",
        )


def _check_texts(cls: type[VecTask]) -> None:
    """Termination conditions, masses and sizes, which designers get as texts."""
    conditions, sizes = cls.termination_conditions, cls.masses_and_sizes
    if not isinstance(conditions, Mapping) or not _is_texts(list(conditions.values()), list):
        hint = 'such as {"fell": "torso_height below 0.3 m"}'
        expected = "expected a dictionary of texts by cause"
        raise _wrong(cls, "termination_conditions", conditions, expected, hint)
    for cause in conditions:
        if cause not in cls.termination_causes:
            raise EnvironmentLoadError(
                f"{cls.__name__}.termination_conditions has {cause!r}, which is none of its"
                " termination_causes",
                did_you_mean(str(cause), cls.termination_causes),
            )
    if not _is_texts(sizes, tuple):
        hint = 'such as ("pole 0.1 kg, 1 m long",)'
        raise _wrong(cls, "masses_and_sizes", sizes, "expected a tuple of texts", hint)


def _is_texts(values: Any, kinds: type | tuple[type, ...]) -> bool:
    is_collection: bool = isinstance(values, kinds)
    return is_collection and all(isinstance(each, str) for each in values)
