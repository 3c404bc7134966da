"""Checks of `eureka envs --check` on source text: misspelt names, missing baselines, numpy."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Literal

from eureka_agent import syntax
from eureka_agent.conformance.checks import Nonconforming, Remark, Subject
from eureka_agent.simulation.hooks import misspelt


def hooks(subject: Subject) -> None:
    """No method or class attribute has almost the name of one that a subclass may define."""
    for place, text, meant in misspelt(subject.loaded.environment_class):
        raise Nonconforming(
            f"{meant}, as the base class calls it",
            f"{place}{text}",
            f"rename it to {meant!r}, or to something less alike",
        )


def baselines(subject: Subject) -> Iterator[Remark]:
    """There is a human and a sparse reward to compare with."""
    lost = {
        "human": "reports compare with no human reward, and the search with the sparse one alone",
        "sparse": "reports cannot say what training on the metric itself gives",
    }
    for kind, what in lost.items() if subject.loaded.folder is not None else ():
        if subject.loaded.reward_source(subject.task, _kind(kind)) is None:
            hint = f"write {getattr(subject.task, f'{kind}_reward')}, with a compute_reward in it"
            yield Remark(f"a {kind} reward", f"there is none: {what}", hint)


def numpy_in_rewards(subject: Subject) -> Iterator[Remark]:
    """Fitness and rewards compute with torch alone."""
    sources = {
        kind: subject.loaded.reward_source(subject.task, _kind(kind))
        for kind in ("human", "sparse")
    }
    try:
        sources["fitness"] = textwrap.dedent(inspect.getsource(subject.task.fitness))
        module = inspect.getmodule(subject.task.fitness) or object
        names = {name for name, value in vars(module).items() if inspect.ismodule(value)}
        numpy_names = {
            name for name in names if getattr(module, name).__name__.partition(".")[0] == "numpy"
        }
    except (OSError, TypeError):  # no source
        numpy_names = set()
    for kind, source in sources.items():
        known = numpy_names if kind == "fitness" else set()
        line = None if source is None else _line_of_numpy(source, known)
        if line is not None:
            file = getattr(subject.task, f"{kind}_reward", "")
            what = "the fitness" if kind == "fitness" else f"{file}, line {line},"
            yield Remark(
                f"{kind} computed with torch alone",
                f"{what} uses numpy, which leaves the device and fails on a GPU",
                "torch has the same function: torch.exp for np.exp, torch.clamp for np.clip",
            )


def _kind(kind: str) -> Literal["human", "sparse"]:
    return "human" if kind == "human" else "sparse"


def _line_of_numpy(source: str, known: set[str]) -> int | None:
    """The first line that imports numpy, or reads one of the names `known` for it."""
    try:
        tree = syntax.parsed(source)
    except SyntaxError:  # reported by another check
        return None
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if any(module.partition(".")[0] == "numpy" for module in modules):
            return int(getattr(node, "lineno", 1))
        if isinstance(node, ast.Name) and node.id in known:
            return node.lineno
    return None
