"""Arguments by name: which variables and constants of an environment a reward or a fitness reads.
No torch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eureka_agent.errors import EurekaError, did_you_mean
from eureka_agent.task import PREVIOUS_PREFIX, Constant, Variable

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class Binding:
    """Arguments of a function's call. A parameter in neither has a number as its default, which it
    keeps."""

    variables: tuple[str, ...]
    """Parameters that get a tensor, variables and `previous_<variable>`, in the function's
    order."""
    constants: dict[str, float]
    """Parameters that get a constant of the environment, with its value."""


def variable_of(argument: str) -> str:
    """The variable that an argument reads: `previous_height` reads `height`."""
    return argument.removeprefix(PREVIOUS_PREFIX)


def bind_arguments(
    function: Callable[..., Any],
    variables: Sequence[Variable],
    allow_private: bool,
    error: type[EurekaError],
    constants: Sequence[Constant] = (),
) -> Binding:
    """Find what each of a function's parameters gets: a variable, `previous_<variable>`, a
    constant, or else its own default where that is a number.

    Raises `error` for a parameter that is none of these, for a private variable unless
    `allow_private`, and for `*args` and the like.
    """
    known = {variable.name: variable for variable in variables}
    numbers = {constant.name: float(constant.value) for constant in constants}
    name = getattr(function, "__name__", repr(function))
    read, given = [], {}
    for parameter in inspect.signature(function).parameters.values():
        argument = parameter.name
        if parameter.kind not in _BY_NAME:
            raise error(
                f"{name} takes {str(parameter)!r}, expected variables by name",
                "name every argument after a variable",
            )
        variable = known.get(variable_of(argument))
        if argument in numbers:
            given[argument] = numbers[argument]
        elif variable is not None:
            if variable.private and not allow_private:
                raise error(
                    f"{name} reads {argument!r}, which is private: it is part of the fitness",
                    "build the reward from the environment's public variables",
                )
            read.append(argument)
        elif not isinstance(parameter.default, (bool, int, float)):
            public = [item.name for item in variables if allow_private or not item.private]
            previous = argument.startswith(PREVIOUS_PREFIX)
            candidates = (
                [PREVIOUS_PREFIX + item for item in public] if previous else [*public, *numbers]
            )
            raise error(
                f"{name} reads {argument!r}, which is no variable of the environment",
                did_you_mean(argument, candidates),
            )
    return Binding(tuple(read), given)
