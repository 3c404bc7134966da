"""Checked calls of a Gymnasium environment's `reset` and `step`; errors name the author's line."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
import numpy
from numpy.typing import NDArray

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.gymnasium_spaces import flatten, number_name
from eureka_agent.simulation.user_modules import (
    LIBRARIES,
    PACKAGE,
    describe_error,
    module_of,
    place_of_function,
    top_module,
)

Method = Literal["step", "reset"]
_RETURNS: dict[Method, tuple[str, ...]] = {"reset": ("observation", "info")}
_RETURNS["step"] = ("observation", "reward", "terminated", "truncated", "info")
_TAKES = {"step": "self, action", "reset": "self, *, seed=None, options=None"}
_GYMNASIUM = "gymnasium"
_NO_PERSONS = (_GYMNASIUM, PACKAGE)
_SHOWN_ACTIONS = 12


@dataclass
class Result:
    observation: Any
    reward: float
    """0 for a reset."""
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]
    vector: NDArray[numpy.float32]
    """The observation's numbers for the policy."""
    numbers: Mapping[str, float]
    """The numbers of the info that were asked for."""


def call(
    environment: gymnasium.Env,
    size: int,
    steps: int = 0,
    *,
    seed: int = 0,
    action: Any = None,
    keys: Sequence[str] = (),
    acted: Callable[[], Sequence[float]] | None = None,
) -> Result:
    """Reset with `seed`, or make step number `steps` of an episode with `action`. `size`: numbers
    of the observation; `keys`: numbers of the info; `acted`: gives the policy's action for
    an error. Raises EnvironmentLoadError for an invalid result, and the environment's errors."""
    method: Method = "step" if steps else "reset"
    with _blamed(environment, method):
        given = environment.step(action) if steps else environment.reset(seed=seed)
    names = _RETURNS[method]
    if not isinstance(given, tuple | list) or len(given) != len(names):
        count = f"{len(given)} values" if isinstance(given, tuple) else _kind(given)
        what = f"returned {count}, expected {len(names)} values: {', '.join(names)}"
        raise _wrong(environment, method, what)
    observation, *outcome, info = given
    if not isinstance(info, Mapping):
        raise _wrong(environment, method, f"gave {_kind(info)} as info, expected a dictionary")
    numbers = list[float]()
    for name, value in zip(names[1:], outcome, strict=False):
        if (number := _number(value)) is None:
            raise _wrong(environment, method, f"gave {_kind(value)} as {name}, expected a number")
        numbers.append(number)
    vector = _vector(environment, method, observation, size)
    told = dict[str, float]()
    for key in keys:
        if (number := _number(info.get(key, 0.0))) is not None:  # 0 where it is missing
            told[key] = number
        else:
            what = f"gave {_kind(info[key])} as info[{key!r}], expected a number, as it was in the"
            hint = "give a number always, or leave the entry out"
            raise _wrong(environment, method, f"{what} first step", hint)
    reward, terminated, truncated = numbers or (0.0, 0.0, 0.0)
    ends = bool(terminated), bool(truncated)
    result = Result(observation, reward, *ends, info, vector, told)
    if not (numpy.isfinite(vector).all() and all(map(math.isfinite, (reward, *told.values())))):
        raise _unsound(environment, result, steps, [] if acted is None else acted())
    return result


def _number(value: Any) -> float | None:
    """A number, also in an array or tensor of one; None for another value."""
    try:
        if not isinstance(value, int | float | str):
            value = numpy.asarray(value).item()
        return None if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # a tensor has the last
        return None


def _vector(
    environment: gymnasium.Env, method: Method, observation: Any, size: int
) -> NDArray[numpy.float32]:
    """Flatten an observation, shape (size,). Raises EnvironmentLoadError for a wrong one."""
    space = environment.observation_space
    try:
        flat = flatten(space, observation)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, AssertionError) as error:
        what = f"it cannot be flattened: {describe_error(error)}"
    else:
        if len(flat) == size:
            return flat
        what = f"it has {len(flat)} numbers, and the space {size}"
    raise _wrong(
        environment,
        method,
        f"gave an observation that is not in its observation_space: {what}",
        "return what observation_space declares, or correct that;"
        " `gymnasium.utils.env_checker.check_env` finds more of this kind",
    )


def _unsound(
    environment: gymnasium.Env, result: Result, steps: int, action: Sequence[float]
) -> EnvironmentLoadError:
    """The error for a number that is not finite. `steps`: 0 after a reset."""
    indices = numpy.flatnonzero(~numpy.isfinite(result.vector))[:1].tolist()
    space = environment.observation_space
    broken = [
        *(
            (f"observation, {number_name(space, index)}", float(result.vector[index]))
            for index in indices
        ),
        ("reward", result.reward),
        *((f"number info[{key!r}]", value) for key, value in result.numbers.items()),
    ]
    what, value = next(each for each in broken if not math.isfinite(each[1]))
    method: Method = "step" if steps else "reset"
    layer = _layers_of_persons(environment)[-1]
    shown = [round(each, 3) for each in action[:_SHOWN_ACTIONS]]
    under = f" under the action {shown!r}" if shown else ""
    when = f"in step {steps} of an episode{under}" if steps else "right after a reset"
    return EnvironmentLoadError(
        f"{_place(layer, method)}the {what} is {value:.4g} {when}, given by"
        f" {type(layer).__name__}.{method}",
        "guard divisions, roots and logarithms, and limit what the physics can reach: no reward,"
        " no fitness and no policy can use such a state",
    )


# ── who wrote the code ────────────────────────────────────────────────────────────────────────────


def layers(environment: gymnasium.Env) -> Iterator[gymnasium.Env]:
    """An environment's wrappers from the outermost on, then the environment."""
    while isinstance(environment, gymnasium.Wrapper):
        yield environment
        environment = environment.env
    yield environment


def _layers_of_persons(environment: gymnasium.Env) -> Sequence[gymnasium.Env]:
    """Layers that are not Gymnasium's; for an environment of Gymnasium's, that one."""
    found = list(layers(environment))
    return [each for each in found if top_module(type(each)) not in _NO_PERSONS] or found[-1:]


def place_of_class(environment: gymnasium.Env) -> str:
    """`"<file>, line <n>: "` of the outermost class that is the author's."""
    return place_of_function(type(_layers_of_persons(environment)[0]))


def _place(layer: gymnasium.Env, method: Method) -> str:
    """`"<file>, line <n>: "` of a layer's method, of a wrapper's counterpart, or of its class."""
    for name in (method, "observation", "reward", "action"):
        owner = next((each for each in type(layer).__mro__ if name in vars(each)), None)
        if owner is not None and callable(vars(owner)[name]) and top_module(owner) != _GYMNASIUM:
            return place_of_function(vars(owner)[name])
    return place_of_function(type(layer))


def place_of_render(environment: gymnasium.Env) -> str:
    """`"<file>, line <n>: "` of the environment's `render`."""
    return place_of_function(type(environment.unwrapped).render)


@contextmanager
def _blamed(environment: gymnasium.Env, method: Method) -> Iterator[None]:
    """Blame the layer that cannot be called, or whose result Gymnasium's wrapper cannot take."""
    try:
        yield
    except Exception as error:
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        outside = (module_of(it) not in LIBRARIES or it.f_code.co_name == method for it in frames)
        caller = [each for each, is_outside in zip(frames, outside, strict=True) if is_outside][-1]
        if module_of(caller) not in _NO_PERSONS:
            raise  # the author's own line raised
        wrapper = caller.f_locals.get("self")
        layer = wrapper.env if isinstance(wrapper, gymnasium.Wrapper) else environment
        if isinstance(error, TypeError) and f"{method}() " in str(error):
            hint = f"write `def {method}({_TAKES[method]})`"
            if isinstance(layer, gymnasium.Wrapper):
                hint += f", and pass {'it' if method == 'step' else 'both'} on to self.env"
            what = f"cannot be called as Gymnasium calls it: {error}"
            raise _wrong(layer, method, what, hint) from None
        if layer is not environment:
            name, text = type(wrapper).__name__, describe_error(error)
            what = f"returned what Gymnasium's {name} cannot take: {text}"
            raise _wrong(layer, method, what) from None
        raise


def _wrong(
    environment: gymnasium.Env, method: Method, what: str, hint: str = ""
) -> EnvironmentLoadError:
    """The error for a result of the outermost layer that is the author's."""
    layer = _layers_of_persons(environment)[0]
    ending = "; an empty info is {}" if "info" in what else ""
    return EnvironmentLoadError(
        f"{_place(layer, method)}{type(layer).__name__}.{method} {what}",
        hint or f"end {method} with `return {', '.join(_RETURNS[method])}`{ending}",
    )


def _kind(value: Any) -> str:
    """A short description: a plain value itself, else its type, with an array's shape."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)[:60]
    if isinstance(value, numpy.ndarray):
        return f"an array of shape {tuple(value.shape)!r}"
    article = "an" if type(value).__name__[0] in "aeiou" else "a"
    return f"{article} {type(value).__name__}"
