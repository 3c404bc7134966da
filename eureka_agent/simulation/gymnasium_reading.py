"""Reading a Gymnasium environment for designers: docstring, numbers in `info`, ends of episodes."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy
from gymnasium import spaces

from eureka_agent.reward_names import is_argument_name
from eureka_agent.simulation.gymnasium_actions import trial_actions
from eureka_agent.simulation.gymnasium_calls import call, layers
from eureka_agent.simulation.gymnasium_names import Part
from eureka_agent.simulation.gymnasium_spaces import limits
from eureka_agent.task import Variable, is_finite

_SEED = 0
_STEPS = 250
"""Random steps at first: mostly a fraction of a second."""
_MOST_STEPS = 1000
"""Random steps in which truncations of its own are looked for, where no episode ends otherwise."""
_MOST_WORDS = 300
ENDS_BY = {
    "either": "1 where the episode ends here, by success or by failure, else 0 (a time-out does not"
    " count)",
    "failure": "1 where the episode ends here by failure, else 0 (a time-out is not a failure)",
    "none": "always 0: nothing ends an episode early",
}
"""Meaning of `terminated` by what an episode's end is known to be; `either` where it is not."""
_DEFAULT_EPISODE_LENGTH = 1000
_DEFAULT_SECONDS = 1.0
_EQUAL_EPISODES = 2
"""Episodes truncated after the same number of steps that make it the episode length."""
_SECTIONS_SHOWN = tuple(
    f"## {title}"
    for title in (
        *("Action Space", "Observation Space", "Observation Encoding", "Mission Space"),
        *("Starting State", "Episode End", "Termination"),
    )
)


def random_episodes(
    environment: gymnasium.Env, size: int, declared: int | None
) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Run a few random episodes of at most `declared` steps. `size`: of an observation. Returns the
    info of the first reset and step, and lengths of the episodes that it truncated sooner; none
    where another episode was longer. Raises EnvironmentLoadError."""
    space = environment.action_space  # a property may make a new one each time
    space.seed(_SEED)
    draw = trial_actions(space)
    info = dict(call(environment, size, seed=_SEED).info)
    cut_short = list[int]()
    steps = longest_other = 0
    for step in range(_MOST_STEPS):
        if step >= _STEPS and (longest_other or len(cut_short) >= _EQUAL_EPISODES):
            break
        steps += 1
        result = call(environment, size, steps, action=draw())
        if step == 0:
            info.update(result.info)
        at_limit = declared is not None and steps >= declared
        if result.terminated or result.truncated or at_limit:
            if result.truncated and not at_limit:
                cut_short.append(steps)
            else:
                longest_other = max(longest_other, steps)
            call(environment, size, seed=_SEED + step + 1)
            steps = 0
    goes_on = max(longest_other, steps) > max(cut_short, default=0)
    return info, () if goes_on else tuple(cut_short)


def declared_length(
    environment: gymnasium.Env, registered: gymnasium.envs.registration.EnvSpec | None
) -> tuple[int, str] | None:
    """The shortest declared limit of an episode, else its attribute `max_steps`; its origin."""
    found = (each for each in layers(environment) if isinstance(each, gymnasium.wrappers.TimeLimit))
    declared = [(each._max_episode_steps, "from its wrapper TimeLimit") for each in found]
    for spec in (registered, getattr(environment.unwrapped, "spec", None)):
        steps = 0 if spec is None else spec.max_episode_steps or 0
        if steps > 0:
            declared.append((steps, "from max_episode_steps of its registration"))
    own: Any = getattr(environment.unwrapped, "max_steps", None)
    if not declared and isinstance(own, int) and own > 1:
        declared = [(own, "from its attribute max_steps")]
    return min(declared, default=None)


def episode_length(declared: tuple[int, str] | None, seen: Sequence[int]) -> tuple[int, str]:
    """Steps of an episode and their origin: declared, counted in truncations `seen`, guessed."""
    shortest, longest = min(seen, default=0), max(seen, default=0)
    if len(seen) >= _EQUAL_EPISODES and shortest == longest:
        sooner = f", sooner than the {declared[0]} steps {declared[1]}" if declared else ""
        counted = f"as it truncated every one of the first episodes after {longest} steps"
        return longest, counted + sooner
    counted = f"it truncated {len(seen)} of its first episodes by itself after {shortest} to"
    told = f"; {counted} {longest} steps" if seen else ""
    if declared is not None:
        return declared[0], f"{declared[1]}{told}"
    guess = f"guessed: {_DEFAULT_EPISODE_LENGTH} steps, as nothing names it{told}"
    return _DEFAULT_EPISODE_LENGTH, f"{guess} (set MAX_EPISODE_LENGTH in env.py)"


def time_step(environment: gymnasium.Env) -> tuple[float, str]:
    """Seconds of a step, and their origin: the simulator's `dt`, frames per second or a guess."""
    seconds: Any = getattr(environment.unwrapped, "dt", None)
    if is_finite(seconds) and seconds > 0:
        return float(seconds), "from its attribute dt"
    rate: Any = (environment.metadata or {}).get("render_fps")
    if is_finite(rate) and rate > 0:
        return 1.0 / rate, 'from metadata["render_fps"]'
    guess = f"guessed: {_DEFAULT_SECONDS:g} s, as nothing names it"
    return _DEFAULT_SECONDS, f"{guess} (set CONTROL_DT in env.py, in seconds)"


def model_masses(physics: Any) -> tuple[str, ...]:
    """Masses and sizes of a MuJoCo environment's model; none for another."""
    if "mujoco" not in sys.modules:  # no environment can have a model then
        return ()
    import mujoco

    from eureka_agent.simulation.mujoco_names import masses_and_sizes

    model = getattr(physics, "model", None)
    return masses_and_sizes(model) if isinstance(model, mujoco.MjModel) else ()


def numeric_keys(info: Mapping[str, Any], taken: set[str]) -> tuple[str, ...]:
    """Names of plain numbers that can be arguments, without those of rewards."""
    numbers = bool | int | float | numpy.number | numpy.bool_
    found = (key for key, value in info.items() if isinstance(value, numbers))
    names = sorted(key for key in found if isinstance(key, str) and is_argument_name(key))
    others = (key for key in names if "reward" not in key.lower() and key not in taken)
    return tuple(key for key in others if not key.startswith("previous_"))


def observation_variable(
    size: int, space: spaces.Space, parts: Sequence[Part] = (), problem: str = ""
) -> Variable:
    """The whole vector. `parts`: those that are variables; `problem`: why there are none."""
    doc = f"whole observation vector; read its entries as observation[:, i], i from 0 to {size - 1}"
    if parts:
        first, last = parts[0].variable.name, parts[-1].variable.name
        doc = f"whole observation vector: the variables from {first} to {last}, in this order"
        if any(part.scale != 1.0 for part in parts):
            doc += ", but some multiplied by a factor"
    elif problem:
        doc += f"; they have no names: {problem}"
    elif not isinstance(space, spaces.Box):
        doc += f"; it is what gymnasium.spaces.flatten makes of {space}"[:_MOST_WORDS]
    bounds = limits(space) if isinstance(space, spaces.Box) else None
    return Variable("observation", (size,), "?", "?", doc, bounds)


def description(physics: Any, gymnasium_id: str) -> str:
    """First paragraph of the environment's docstring, and its sections but that on rewards."""
    figure = re.compile(r"^```\{figure\}.*?^```\n", re.DOTALL | re.MULTILINE)
    text = figure.sub("", inspect.getdoc(type(physics)) or "")
    paragraph = re.sub(r"^#+.*\n+", "", text).split("\n\n")[0].strip()
    sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    shown = [section.strip() for section in sections if section.startswith(_SECTIONS_SHOWN)]
    return "\n\n".join([paragraph or f"Gymnasium's {gymnasium_id}.", *shown])


def source_of(physics: Any) -> str:
    """Source text of an environment's module; empty where there is none."""
    try:
        return inspect.getsource(inspect.getmodule(type(physics)) or type(physics))
    except (OSError, TypeError):
        return ""  # compiled, or defined interactively


def words(name: str) -> str:
    """`"mountain car continuous"` for `MountainCarContinuous-v0`."""
    name = re.sub(r"-v\d+$", "", name.rpartition(":")[2].rpartition("/")[2])
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("-", " ").replace("_", " ").lower()
