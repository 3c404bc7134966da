"""Known rewards and recorded episodes of this run, which a reward is compared with."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path

from eureka_agent import syntax
from eureka_agent.critic.parse import finding
from eureka_agent.records import EpisodeOrder, Finding
from eureka_agent.rewards import RewardSpecification


@dataclass(frozen=True)
class KnownReward:
    """A reward that this run has trained or is training."""

    attempt: str
    reward: RewardSpecification


@dataclass(frozen=True)
class KnownEpisodes:
    """Recorded episodes of a trained attempt."""

    attempt: str
    path: Path
    """Npz of plain arrays named `<episode>/<variable>`."""
    fitness: Mapping[str, float]
    """By episode."""
    steps: tuple[int, ...] = ()
    """Lengths of the episodes, in their order."""


@dataclass(frozen=True)
class Memory:
    """Known rewards and episodes; an empty part leaves its comparison out."""

    rewards: tuple[KnownReward, ...] = ()
    episodes: tuple[KnownEpisodes, ...] = ()
    practice: tuple[KnownEpisodes, ...] = ()
    """Episodes of the same attempts' policies early in their trainings."""


NOTHING_KNOWN = Memory()


CLEAR_DIFFERENCE = 0.25
"""Part of the range of known fitness by which two episodes differ clearly. It is about the spread
of one policy's episodes on hopper and ant, and leaves about half of the pairs."""
LEAST_RANGE = 0.05
"""Range of fitness, as a part of the largest, below which all episodes count as equally good."""
LEAST_PAIRS = 12
"""Pairs below which nothing is told: half of those between six episodes."""


def episode_order(
    episodes: Sequence[KnownEpisodes], returns: Sequence[Mapping[str, float | None]]
) -> EpisodeOrder | None:
    """A reward's order of all pairs of episodes; None for too few. `returns`: by episode, None
    where not finite. Of two that differ clearly in fitness the better one should have the higher.
    This is the Trajectory Preference Evaluation of CARD (Sun et al. 2024). It decides nothing,
    since it foretold nothing: of 88 rewards that it would have refused none was bad. Designers are
    told."""
    ranked = [
        (fitness, value)
        for known, values in zip(episodes, returns, strict=True)
        for name, fitness in known.fitness.items()
        if (value := values.get(name)) is not None
    ]
    fitness = [each for each, _ in ranked]
    spread = max(fitness, default=0.0) - min(fitness, default=0.0)
    if spread <= LEAST_RANGE * max(map(abs, fitness), default=0.0):
        return None
    pairs = [
        (first[1], second[1]) if first[0] > second[0] else (second[1], first[1])
        for first, second in combinations(ranked, 2)
        if abs(first[0] - second[0]) > CLEAR_DIFFERENCE * spread
    ]
    if len(pairs) < LEAST_PAIRS:
        return None
    right = sum(better > worse for better, worse in pairs)
    equal = sum(better == worse for better, worse in pairs)
    return EpisodeOrder(pairs=len(pairs), right=right + equal / 2)


def find_same_source(source: str, known: Sequence[KnownReward]) -> list[Finding]:
    """N501 if a known reward has the same normal form."""
    form = normalized(source)
    for other in known:
        if normalized(other.reward.source) == form:
            message = f"the same reward as {other.attempt}"
            if other.reward.source != source:
                message += " up to layout and comments"
            hint = "change what is computed: a term, its shape, or a weight"
            return [finding("N501", message, hint=hint)]
    return []


@lru_cache(maxsize=4096)  # each draft is compared with all before it
def normalized(source: str) -> str:
    """A text that is equal for sources that differ only in layout, comments, docstrings,
    annotations and decorators. Invalid source is its own normal form."""
    tree = parsed(source)
    return source.strip() if tree is None else ast.dump(Bare().visit(tree))


def parsed(source: str) -> ast.Module | None:
    """The syntax tree, or None for invalid or too deeply nested source."""
    try:
        return syntax.parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # ValueError: a null byte
        return None


class Bare(ast.NodeTransformer):
    """Removes annotations, decorators, docstrings and other constants that nothing reads."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.decorator_list, node.returns, node.type_comment = [], None, None
        node.body = node.body or [ast.Pass()]
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation, node.type_comment = None, None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        return None if node.value is None else ast.Assign([node.target], node.value)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)
