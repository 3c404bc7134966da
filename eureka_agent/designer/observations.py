"""Observations that a model designs beside a reward that is kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from eureka_agent.critic.allow_list import names_bound
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.designer.source_tools import parameter_names, parsed
from eureka_agent.errors import SettingsError
from eureka_agent.records import TaskDescription
from eureka_agent.rewards import Design


def design_of(request: DesignRequest) -> Design:
    return "reward" if request.settings is None else request.settings.design


def subject_of(request: DesignRequest) -> str:
    """A word for what is designed: the observation where the reward is kept."""
    return "observation" if design_of(request) == "observation" else "reward"


def kept_reward(description: TaskDescription) -> str:
    """Source of the environment's own reward, the human one where there is one. Raises
    SettingsError where there is none that a proposal may hold."""
    private = {each.name for each in description.variables if each.private}
    for name in ("human", "sparse"):
        reward = description.baselines.get(name)
        if reward is not None and not private.intersection(parameter_names(reward.source)):
            return reward.source
    raise SettingsError(
        f"--design observation keeps the environment's own reward, and {description.environment!r}"
        " has none that reads public variables alone",
        "ask for the two with --design both",
    )


def with_observation(kept: str, source: str) -> tuple[str, str]:
    """The kept reward and an observation in one source, and the problem of a name that both define;
    empty for none."""
    tree = parsed(source)
    lines = source.split("\n")
    for node in [] if tree is None else tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            lines[node.lineno - 1] = ""
    joined = f"{kept.rstrip()}\n\n\n" + "\n".join(lines).strip("\n") + "\n"
    both = min(set(_defined(kept)) & set(_defined(source)), default="")
    again = f"it defines {both!r} anew, which is a name of the reward that is kept"
    return joined, again if both else ""


def _defined(source: str) -> Iterator[str]:
    """Names that the top level binds, but for imports."""
    tree = parsed(source)
    for node in [] if tree is None else tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            yield from names_bound(node)
