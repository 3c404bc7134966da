"""Reading a Gymnasium environment for designers: words, numbers in `info`, and how its episodes end."""

from __future__ import annotations

import inspect
import keyword
import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy
from gymnasium import spaces

from eureka_agent.simulation.gymnasium_spaces import limits
from eureka_agent.task import Variable

_SEED = 0
_STEPS = 250
"""Random steps in which it is counted how episodes end: a fraction of a second, but for the slowest environments."""
_EPISODES = 10
ENDS = "1 where the episode ends here, by success or by failure, else 0 (a time-out does not count)"
_NOT_FINITE = "an observation or the reward is NaN or infinite"
_HEALTHY = {
    "z": "height of the body {}",
    "angle": "angle of the body {} rad",
    "state": "a further entry of the state {}",
}
"""Ranges of Gymnasium's MuJoCo environments, `_healthy_<name>_range`, outside which an episode ends."""
_THRESHOLDS = {"x_threshold": "position beyond ±{:.3g}", "theta_threshold_radians": "angle beyond ±{:.3g} rad"}
"""Attributes of Gymnasium's classic environments, likewise."""
_SECTIONS_SHOWN = ("## Action Space", "## Observation Space", "## Starting State", "## Episode End")


def random_episodes(environment: gymnasium.Env) -> tuple[dict[str, Any], str]:
    """Info of the first reset and step, and what `terminated` is worth: the sign of the environment's own reward at ends."""
    environment.action_space.seed(_SEED)
    _, info = environment.reset(seed=_SEED)
    info = dict(info)
    at_ends, elsewhere = list[float](), list[float]()
    for step in range(_STEPS):
        _, reward, terminated, truncated, later = environment.step(environment.action_space.sample())
        if step == 0:
            info.update(later)
        (at_ends if terminated else elsewhere).append(float(reward))
        if terminated or truncated:
            if len(at_ends) >= _EPISODES:
                break
            environment.reset(seed=_SEED + step + 1)
    if not at_ends:
        return info, f"{ENDS}; random actions ended no episode within {_STEPS} steps"
    return info, (
        f"{ENDS}; with random actions the environment's own reward was {_signs(at_ends)} of {len(at_ends)} ends, "
        f"{_signs(elsewhere)} of {len(elsewhere)} other steps"
    )


def _signs(rewards: Sequence[float]) -> str:
    return (
        f"positive at {sum(reward > 0 for reward in rewards)} and negative at {sum(reward < 0 for reward in rewards)}"
    )


def termination_conditions(physics: Any) -> dict[str, str]:
    """Termination conditions that the environment's attributes tell; the rest is in its docstring."""
    parts = []
    if getattr(physics, "_terminate_when_unhealthy", False):
        ranges = {name: getattr(physics, f"_healthy_{name}_range", None) for name in _HEALTHY}
        parts += [_HEALTHY[name].format(_outside(*ends)) for name, ends in ranges.items() if ends is not None]
    for name, words in _THRESHOLDS.items():
        if isinstance(value := getattr(physics, name, None), float):
            parts.append(words.format(value))
    return ({"terminated": " or ".join(parts)} if parts else {}) | {"not_finite": _NOT_FINITE}


def _outside(low: float, high: float) -> str:
    """`below 0.7`, `outside -0.2 to 0.2`."""
    if math.isinf(high):
        return f"below {low:g}"
    return f"above {high:g}" if math.isinf(low) else f"outside {low:g} to {high:g}"


def masses_and_sizes(physics: Any) -> tuple[str, ...]:
    """Masses and sizes of a MuJoCo environment's model; none for another."""
    if "mujoco" not in sys.modules:  # no environment has a model of it
        return ()
    import mujoco

    from eureka_agent.simulation import mujoco_sizes

    model = getattr(physics, "model", None)
    return mujoco_sizes.masses_and_sizes(model) if isinstance(model, mujoco.MjModel) else ()


def source(physics: Any) -> str:
    try:
        return inspect.getsource(inspect.getmodule(type(physics)) or type(physics))
    except (OSError, TypeError):
        return ""  # compiled, or typed in


def numeric_keys(info: Mapping[str, Any], taken: set[str]) -> tuple[str, ...]:
    """Names of plain numbers that can be arguments; none that tells of a reward."""
    return tuple(
        key
        for key, value in sorted(info.items(), key=lambda item: str(item[0]))
        if isinstance(key, str)
        and numpy.ndim(value) == 0
        and isinstance(value, bool | int | float | numpy.number | numpy.bool_)
        and key.isidentifier()
        and not keyword.iskeyword(key)
        and "reward" not in key.lower()
        and not key.startswith("previous_")
        and key not in taken
    )


def observation_variable(size: int, space: spaces.Space) -> Variable:
    doc = f"whole observation vector; read its entries as observation[:, i], i from 0 to {size - 1}"
    return Variable("observation", (size,), "?", "?", doc, limits(space) if isinstance(space, spaces.Box) else None)


def description(physics: Any, gymnasium_id: str) -> str:
    """First paragraph of the environment's own docstring, and its sections on what is observed, done and reached; not the one on rewards."""
    text = re.sub(r"^```\{figure\}.*?^```\n", "", inspect.getdoc(type(physics)) or "", flags=re.DOTALL | re.MULTILINE)
    paragraph = re.sub(r"^#+.*\n+", "", text).split("\n\n")[0].strip()
    sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    shown = [section.strip() for section in sections if section.startswith(_SECTIONS_SHOWN)]
    return "\n\n".join([paragraph or f"Gymnasium's {gymnasium_id}.", *shown])


def words(name: str) -> str:
    """`"mountain car continuous"` for `MountainCarContinuous-v0`."""
    name = re.sub(r"-v\d+$", "", name.rpartition(":")[2].rpartition("/")[2])
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("-", " ").replace("_", " ").lower()
