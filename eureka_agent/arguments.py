"""Arguments by name: the variables and constants that a reward or a fitness reads. No torch."""

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
    """Arguments of a function's call. A parameter in neither keeps its default."""

    variables: tuple[str, ...]
    """Parameters that get a tensor, in the function's order."""
    constants: dict[str, float]
    """Constants of the environment, by parameter."""


def variable_of(argument: str) -> str:
    """Variable that an argument reads: `previous_height` reads `height`."""
    return argument.removeprefix(PREVIOUS_PREFIX)


def bind_arguments(
    function: Callable[..., Any],
    variables: Sequence[Variable],
    allow_private: bool,
    error: type[EurekaError],
    constants: Sequence[Constant] = (),
) -> Binding:
    """Bind each parameter to a variable, `previous_<variable>`, a constant, or its numeric default.

    Raises `error` for any other parameter, for a private variable unless `allow_private`, and for
    `*args` and the like.
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
        fault = f"{name} reads {argument!r}, which is"
        variable = known.get(variable_of(argument))
        if argument in numbers:
            given[argument] = numbers[argument]
        elif variable is not None:
            if variable.private and not allow_private:
                hint = "build the reward from the environment's public variables"
                raise error(f"{fault} private: it is part of the fitness", hint)
            read.append(argument)
        elif not isinstance(parameter.default, (bool, int, float)):
            public = [item.name for item in variables if allow_private or not item.private]
            candidates = [*public, *numbers]
            if argument.startswith(PREVIOUS_PREFIX):
                candidates = [PREVIOUS_PREFIX + item for item in public]
            hint = did_you_mean(argument, candidates)
            raise error(f"{fault} no variable of the environment", hint)
    return Binding(tuple(read), given)
