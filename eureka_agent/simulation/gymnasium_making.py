"""Making a copy of a Gymnasium environment, by id or a user's function, with clear errors."""

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
from eureka_agent.simulation.gymnasium_spaces import image_error
from eureka_agent.simulation.user_modules import (
    MISSING_MODULE_HINT,
    place_of_function,
    third_party_code,
    top_module,
)

if TYPE_CHECKING:
    from eureka_agent.simulation.gymnasium_task import GymnasiumTask

_IMAGE_ENTRY_POINTS = ("gymnasium.envs.box2d.car_racing:CarRacing", "ale_py.env:AtariEnv")
"""Environments with images, whose packages need not be installed to refuse them."""
_IN_EXTRA = ("Box2D", "imageio")
"""Packages of the extra `gymnasium`."""
_LIST_HINT = (
    'list what is registered with python -c "import gymnasium; gymnasium.pprint_registry()"'
)


def make_copy(task: type[GymnasiumTask], options: Mapping[str, Any]) -> gymnasium.Env:
    """Make one copy. Raises EnvironmentLoadError."""
    label = task.label()
    arguments = {**task.gymnasium_options, **options}
    _check_maker(task, arguments)
    _refuse_known_images(task)
    _keep_mujoco_quiet()
    try:
        passing = (gymnasium.error.Error, ImportError)
        with third_party_code(task._package, f"when {label} was made", passing):
            environment = task.make_environment(**arguments)
    except gymnasium.error.DependencyNotInstalled as error:
        # Gymnasium's own text goes on with a pip command, which is another than the extra
        named = re.match(r"(\S+) is not installed", str(error))
        raise _missing(label, named[1] if named else None, error) from None
    except gymnasium.error.Error as error:
        what = f"Gymnasium cannot make {label}: {error}"
        raise _unregistered(task) or EnvironmentLoadError(what, _LIST_HINT) from None
    except ImportError as error:
        name = error.name if isinstance(error, ModuleNotFoundError) else None
        raise _missing(label, name, error) from None
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
    for name in ("observation_space", "action_space"):
        space = getattr(environment, name, None)
        if not isinstance(space, spaces.Space):
            has = "has no" if space is None else f"has {space!r} as"
            raise EnvironmentLoadError(
                f"{place_of_function(type(environment))}{type(environment).__name__} {has} {name},"
                " expected one of gymnasium.spaces",
                "call `super().__init__(env)` in its `__init__`"
                if isinstance(environment, gymnasium.Wrapper)
                else f"set self.{name} in its `__init__`",
            )
    return environment


@cache
def _keep_mujoco_quiet() -> None:
    """Have MuJoCo tell the first warning of a kind alone; it would write MUJOCO_LOG.TXT into the
    working folder too."""
    import mujoco  # not for each start of the program

    told = set[str]()

    def tell(message: str) -> None:
        kind = re.sub(r"[\d.]+", "", message)
        if kind not in told:
            told.add(kind)
            print(f"MuJoCo: {message}", file=sys.stderr)

    mujoco.set_mju_user_warning(tell)


def _missing(label: str, package: str | None, error: Exception) -> EnvironmentLoadError:
    """The error for a package that Gymnasium imports when it makes a copy; None: unnamed."""
    what = str(error) if package is None else f"it needs {package}, which is not installed"
    in_extra = package in _IN_EXTRA
    hint = f"install it: {install_extra('gymnasium')}" if in_extra else MISSING_MODULE_HINT
    return EnvironmentLoadError(f"Gymnasium cannot make {label}: {what}", hint)


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
            hint = (
                "write @staticmethod above it, and no `self`: it makes an environment before there"
                " is any"
            )
        raise EnvironmentLoadError(f"{place_of_function(maker)}{what}", hint) from None


def _refuse_known_images(task: type[GymnasiumTask]) -> None:
    """Raises EnvironmentLoadError for an environment known to observe images, before imports."""
    registered = gymnasium.registry.get(task.gymnasium_id.rpartition(":")[2])
    if not is_by_id(task) or registered is None:
        return
    seen = {**registered.kwargs, **task.gymnasium_options}.get("obs_type", "rgb")
    if registered.entry_point in _IMAGE_ENTRY_POINTS and seen != "ram":
        raise image_error(f"the observation of {task.label()}", "")


def is_by_id(task: type[GymnasiumTask]) -> bool:
    """True where the id alone determines the environment."""
    makers = [base for base in task.__mro__ if "make_environment" in vars(base)]
    return top_module(makers[0]) == __name__.partition(".")[0]


def _is_installed(module: str) -> bool:
    return module.isidentifier() and importlib.util.find_spec(module) is not None


def _unregistered(task: type[GymnasiumTask]) -> EnvironmentLoadError | None:
    """The error for an id that Gymnasium does not know after importing its module."""
    module, colon, name = task.gymnasium_id.rpartition(":")
    if not is_by_id(task) or name in gymnasium.registry:
        return None
    package = re.split(r"\W", name.lower(), maxsplit=1)[0]
    if not colon and package not in sys.modules and _is_installed(package):
        hint = f"did you mean 'gymnasium:{package}:{name}'? It is registered on import"
    elif close := close_match(name, gymnasium.registry):
        hint = f"did you mean 'gymnasium:{module}{colon}{close}'?"
    else:
        hint = _LIST_HINT
    return EnvironmentLoadError(f"Gymnasium has no environment {task.gymnasium_id!r}", hint)
