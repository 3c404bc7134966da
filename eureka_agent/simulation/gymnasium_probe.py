"""Copies of a Gymnasium environment, by id or a user's function, with clear errors; and reading a
class's attributes from one."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import gymnasium
from gymnasium import spaces

from eureka_agent.errors import EnvironmentLoadError, close_match
from eureka_agent.invocation import install_extra
from eureka_agent.simulation import gymnasium_actions as actions
from eureka_agent.simulation import gymnasium_reading as reading
from eureka_agent.simulation.gymnasium_calls import place_of_class
from eureka_agent.simulation.gymnasium_names import names_of
from eureka_agent.simulation.gymnasium_spaces import (
    check_observations,
    named_entries,
    num_observations,
    observation_channels,
)
from eureka_agent.simulation.user_modules import (
    MISSING_MODULE_HINT,
    PACKAGE,
    place_of_function,
    third_party_code,
    top_module,
)
from eureka_agent.task import Variable

if TYPE_CHECKING:
    from eureka_agent.simulation.gymnasium_task import GymnasiumTask

_DOC = "the reward that the environment itself gives for this step; 0 right after a reset"
NATIVE_REWARD = Variable("native_reward", (), "1", "-", _DOC, private=True)
REACHED = "reached_goal"
"""Cause of an end that is always a success."""
_DECLARED = "as env.py says"
_IN_EXTRA = ("Box2D", "imageio")
"""Packages of the extra `gymnasium`."""
_LIST_HINT = 'list what is there: python -c "import gymnasium; gymnasium.pprint_registry()"'


def make_copy(task: type[GymnasiumTask], options: Mapping[str, Any]) -> gymnasium.Env:
    """Make one copy. Raises EnvironmentLoadError."""
    label = task.label()
    arguments = {**task.gymnasium_options, **options}
    _check_maker(task, arguments)
    _keep_mujoco_quiet()
    try:
        passing = (gymnasium.error.Error, ImportError)
        with third_party_code(task._package, f"when {label} was made", passing):
            environment = task.make_environment(**arguments)
    except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
        # Gymnasium's own text goes on with a pip command, which is another than the extra
        named = re.match(r"(\S+) is not installed", str(error))
        package = error.name if isinstance(error, ModuleNotFoundError) else named and named[1]
        what = f"it needs {package}, which is not installed" if package else str(error)
        extra = package in _IN_EXTRA
        hint = f"install it: {install_extra('gymnasium')}" if extra else MISSING_MODULE_HINT
        raise EnvironmentLoadError(f"Gymnasium cannot make {label}: {what}", hint) from None
    except gymnasium.error.Error as error:
        what = f"Gymnasium cannot make {label}: {error}"
        raise _unregistered(task) or EnvironmentLoadError(what, _LIST_HINT) from None
    if (unregistered := _unregistered(task)) is not None:
        raise unregistered  # `make` also takes a name without its version
    if not isinstance(environment, gymnasium.Env):
        is_class = isinstance(environment, type)
        given = f"the class {environment.__name__}" if is_class else repr(environment)
        raise EnvironmentLoadError(
            f"{place_of_function(task.make_environment)}the function that makes {label} returned"
            f" {given}, expected a gymnasium.Env",
            "end it with `return environment`, one instance of a subclass of gymnasium.Env or"
            " gymnasium.Wrapper",
        )
    cls = type(environment)
    for name in ("observation_space", "action_space"):
        space = getattr(environment, name, None)
        if not isinstance(space, spaces.Space):
            has = "has no" if space is None else f"has {space!r} as"
            raise EnvironmentLoadError(
                f"{place_of_function(cls)}{cls.__name__} {has} {name}, expected one of"
                " gymnasium.spaces",
                "call `super().__init__(env)` in its `__init__`"
                if isinstance(environment, gymnasium.Wrapper)
                else f"set self.{name} in its `__init__`",
            )
    return environment


@cache
def _keep_mujoco_quiet() -> None:
    """Ignore MuJoCo's warnings, which would fill the terminal and MUJOCO_LOG.TXT."""
    import mujoco  # not for each start of the program

    mujoco.set_mju_user_warning(lambda message: None)


def _check_maker(task: type[GymnasiumTask], arguments: Mapping[str, Any]) -> None:
    """Raises EnvironmentLoadError where a user's function does not take the arguments."""
    maker = task.make_environment
    if is_by_id(task):
        return
    try:
        signature = inspect.signature(maker)
    except (TypeError, ValueError):  # compiled
        return
    try:
        signature.bind(**arguments)
    except TypeError as error:
        what = f"{maker.__name__} cannot be called with the options {arguments!r}: {error}"
        hint = "a task's `options` are its arguments; give the others a default"
        if next(iter(signature.parameters), "") == "self":
            hint = "write @staticmethod above it, and no `self`: it makes an environment before"
            hint += " there is any"
        raise EnvironmentLoadError(f"{place_of_function(maker)}{what}", hint) from None


def is_by_id(task: type[GymnasiumTask]) -> bool:
    """True where the id alone determines the environment."""
    return top_module(next(b for b in task.__mro__ if "make_environment" in vars(b))) == PACKAGE


def _unregistered(task: type[GymnasiumTask]) -> EnvironmentLoadError | None:
    """The error for an id that Gymnasium does not know after importing its module."""
    module, colon, name = task.gymnasium_id.rpartition(":")
    if not is_by_id(task) or name in gymnasium.registry:
        return None
    package = re.split(r"\W", name.lower(), maxsplit=1)[0]
    installed = package.isidentifier() and importlib.util.find_spec(package) is not None
    hint = _LIST_HINT
    if not colon and package not in sys.modules and installed:
        hint = f"did you mean 'gymnasium:{package}:{name}'? It is registered on import"
    elif close := close_match(name, gymnasium.registry):
        hint = f"did you mean 'gymnasium:{module}{colon}{close}'?"
    return EnvironmentLoadError(f"Gymnasium has no environment {task.gymnasium_id!r}", hint)


# ── attributes ────────────────────────────────────────────────────────────────────────────────────


def probe(task: type[GymnasiumTask]) -> None:
    """Set the class's attributes from one copy of the environment, but those that it has."""
    task._remarks = ()
    environment, own = make_copy(task, {}), dict(vars(task))
    physics: Any = environment.unwrapped
    observed, acted = environment.observation_space, environment.action_space
    task._package = top_module(type(physics))
    try:
        size, declared, (info, truncated_after) = _try_out(task, environment, own)
    finally:
        try:
            with third_party_code(task._package, "when it was closed"):
                environment.close()
        except EnvironmentLoadError as error:  # all has been read
            task._remarks += (error.message,)

    def give(name: str, value: Any) -> None:
        if name not in own:
            setattr(task, name, value)

    task._source = reading.source_of(physics)
    task.num_observations = size
    task.num_actions = actions.num_actions(acted)
    task.action_choices = actions.action_choices(acted)
    problem = _set_names(task, observed)
    names = task._names
    length, length_from = reading.episode_length(declared, truncated_after)
    seconds, seconds_from = reading.time_step(environment)
    length_from = _DECLARED if "max_episode_length" in own else length_from
    seconds_from = _DECLARED if "control_dt" in own else seconds_from
    give("max_episode_length", length)
    give("control_dt", seconds)
    task.episode_source = f"length {length_from}; time step {seconds_from}"
    task.variables = _variables(task, observed, info, problem)
    entries = [entry.variable for entry in task._entries]
    channels = tuple(part.channel for part in task._parts)
    unnamed = observation_channels(observed, entries, task.named_observations)
    give("observation_channels", channels or unnamed)
    named = None if names is None or not names.actions else names.action_channels(acted)
    give("action_channels", named or actions.action_channels(acted))
    _set_ends(task)
    masses = () if names is None else names.masses_and_sizes
    give("masses_and_sizes", masses or reading.model_masses(physics))
    if own.get("__doc__") is None:
        name = task.__name__ if task._spec is None else task._spec.id
        task.__doc__ = reading.description(physics, name) if names is None else names.doc


def _try_out(
    task: type[GymnasiumTask], environment: gymnasium.Env, own: Mapping[str, Any]
) -> tuple[int, tuple[int, str] | None, tuple[dict[str, Any], tuple[int, ...]]]:
    """An observation's numbers, an episode's declared length, findings of random episodes."""
    observed = environment.observation_space
    try:
        actions.check_actions(task.label(), environment.action_space)
        check_observations(task.label(), observed)
        named = not task.named_observations
        described = task.described_entries
        task._entries = named_entries(task.label(), observed, described) if named else ()
    except EnvironmentLoadError as error:
        place = "" if is_by_id(task) else place_of_class(environment)
        raise EnvironmentLoadError(f"{place}{error.message}", error.hint) from None
    size = num_observations(observed)
    # the copy's own specification may lack its time limit and reward threshold
    by_id = is_by_id(task)
    task._spec = gymnasium.spec(task.gymnasium_id.rpartition(":")[2]) if by_id else environment.spec
    declared = reading.declared_length(environment, task._spec)
    if "max_episode_length" in own:
        declared = own["max_episode_length"], _DECLARED
    with third_party_code(task._package, "in the first steps of random actions"):
        return size, declared, reading.random_episodes(environment, size, declared and declared[0])


def _set_names(task: type[GymnasiumTask], space: spaces.Space) -> str:
    """Set the names of Gymnasium's own environment; return why they do not fit, or nothing."""
    names = names_of(task.gymnasium_id) if is_by_id(task) else None
    if names is None:
        return ""
    task._state_place = names.state
    if "restorable" not in vars(task):
        task.restorable = names.state != "hidden"
    problem = names.problem(space, task.gymnasium_options)
    if problem:
        task._remarks += (f"the observation of {task.label()} has no names: {problem}",)
    elif not task.named_observations:
        task._names, task._parts = names, names.parts
    return problem


def _variables(
    task: type[GymnasiumTask], space: spaces.Space, info: Mapping[str, Any], problem: str
) -> tuple[Variable, ...]:
    """The environment's variables and its own reward. `problem`: why it has no names, or empty."""
    entries = [entry.variable for entry in task._entries]
    parts = [part.variable for part in task._parts]
    named = [variable for variable, _ in task.named_observations] + entries + parts
    taken = {"actions", "terminated", "observation", NATIVE_REWARD.name}
    keys = reading.numeric_keys(info, taken | {variable.name for variable in named})
    described = {} if task._names is None else task._names.info
    # what else is in the info of an environment with names is a part of its reward
    task.info_keys = tuple(key for key in keys if task._names is None or key in described)
    doc = "number {!r} in Gymnasium's info of this step"
    numbers = {key: Variable(key, (), "?", "?", doc.format(key)) for key in task.info_keys}
    whole = reading.observation_variable(task.num_observations, space, task._parts, problem)
    infos = (described.get(key, number) for key, number in numbers.items())
    return (*([] if entries else [whole]), *named, *infos, NATIVE_REWARD)


def _set_ends(task: type[GymnasiumTask]) -> None:
    """Set causes and meaning of an episode's end."""
    own, names = vars(task), task._names
    by = "either" if names is None else names.ends_by
    task._ends_doc = reading.ENDS_BY.get(by, reading.ENDS_BY["either"])
    found = dict[str, str]()
    if names is not None:
        found = {"terminated": names.ends_when} if names.ends_when else {}
        if names.ends_by == "success" and not {"termination_causes", "success_causes"} & own.keys():
            task.termination_causes = task.success_causes = (REACHED,)
            found = {REACHED: names.ends_when}
    if "termination_conditions" not in own:
        causes = (cause for cause in task.termination_causes if cause in found)
        task.termination_conditions = {cause: found[cause] for cause in causes}
