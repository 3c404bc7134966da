"""What a reward is compared with: the rewards that this run has tried, and recorded episodes. The
search fills this memory."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

from eureka_agent import syntax
from eureka_agent.critic.allow_list import imports, names_bound, names_used
from eureka_agent.critic.contract import FUNCTION_NAME, reward_functions
from eureka_agent.critic.parse import finding, parse
from eureka_agent.critic.vocabulary import ALL_BUILTINS, ALWAYS_DEFINED
from eureka_agent.helper_names import HELPER_NAMES
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


@dataclass(frozen=True)
class Memory:
    """Known rewards and episodes that a reward is compared with. An empty part leaves its
    comparison out."""

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
"""Pairs below which nothing is told: about half of those between six episodes, of three
attempts."""


def episode_order(
    episodes: Sequence[KnownEpisodes], returns: Sequence[Mapping[str, float | None]]
) -> EpisodeOrder | None:
    """A reward's order of all pairs of episodes; None for too few. `returns`: by episode, None
    where not finite. Of two that differ clearly in fitness the better one should have the higher.

    This is the Trajectory Preference Evaluation of CARD (Sun et al. 2024). It decides nothing,
    since it foretold nothing: of 88 rewards that it would have refused none was bad. Designers are
    told.
    """
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


_FORMS_KEPT = 4096


def find_same_source(source: str, known: Sequence[KnownReward]) -> list[Finding]:
    """N501 if a known reward has the same canonical form. `source` must parse."""
    form = canonical_form(source)
    for other in known:
        if form is not None and canonical_form(other.reward.source) == form:
            message = f"the same reward as {other.attempt}"
            if other.reward.source != source:
                message += " up to renaming, layout and the order of arguments"
            hint = "change what is computed: a term, its shape, or a weight"
            return [finding("N501", message, hint=hint)]
    return []


@lru_cache(maxsize=_FORMS_KEPT)
def canonical_form(source: str) -> str | None:
    """A text that is equal for rewards that differ only in layout, comments, docstrings,
    annotations, decorators, imports, the order of arguments, and the names of definitions and
    components. None for a source that does not parse.

    Different names get different new names, so equal texts compute equal totals. A name that cannot
    be renamed safely is kept: a label that is also a value, or a name of Python's.
    """
    tree, _ = parse(source)
    if tree is None:
        return None
    stripped = copy.deepcopy(_Stripper(tree).visit(tree))  # the walk over `tree` is kept
    return ast.dump(_Renamer(stripped).visit(stripped), annotate_fields=False)


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


class _Stripper(Bare):
    """Writes imported names in full too, and sorts the arguments of `compute_reward`."""

    def __init__(self, tree: ast.Module) -> None:
        functions = reward_functions(tree)
        self._entry = functions[-1] if functions else None
        self._paths = _imported_paths(tree)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        super().visit_FunctionDef(node)
        if node is self._entry:
            read = names_used(node)
            arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            # arguments are passed by name, so neither order nor unused ones matter
            node.args.args = sorted(
                (each for each in arguments if each.arg in read), key=lambda each: each.arg
            )
            node.args.posonlyargs, node.args.kwonlyargs, node.args.kw_defaults = [], [], []
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        path = self._paths.get(node.id)
        return node if path is None else syntax.parsed_expression(path)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> ast.AST | None:
        """Remove an import whose names are written in full."""
        bound = [(alias.asname or alias.name).split(".")[0] for alias in node.names]
        return None if all(name in self._paths for name in bound) else node

    visit_ImportFrom = visit_Import


def _imported_paths(tree: ast.Module) -> dict[str, str]:
    """Paths of imported names, such as `F` → `torch.nn.functional`, without names that are bound
    again."""
    paths: dict[str, set[str]] = {}
    for name, path in imports(tree):
        paths.setdefault(name, set()).add(path)
    own = names_bound(tree, imported=False)
    return {
        name: found.pop() for name, found in paths.items() if len(found) == 1 and name not in own
    }


class _Renamer(ast.NodeTransformer):
    """Numbers names and labels in their order."""

    def __init__(self, tree: ast.Module) -> None:
        entry = reward_functions(tree)
        arguments = {each.arg for each in entry[-1].args.args} if entry else set()
        kept = {
            FUNCTION_NAME,
            *arguments,
            *ALL_BUILTINS,
            *(ALWAYS_DEFINED - set(HELPER_NAMES)),
            *(name for name, _ in imports(tree)),
        }
        self._renamed = names_bound(tree) - kept
        self._labels = _labels(tree)
        self._numbers: dict[str, str] = {}

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._name(node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(self._name(node.arg))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._name(node.name)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        # only functions of the source have renamed arguments
        if isinstance(node.func, ast.Name) and node.func.id in self._renamed:
            for keyword in node.keywords:
                keyword.arg = keyword.arg and self._name(keyword.arg)
        return self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        node.keys = [key and self._label(key) for key in node.keys]
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.slice = self._label(node.slice)
        return self.generic_visit(node)

    def _name(self, name: str) -> str:
        return self._number("name", name) if name in self._renamed else name

    def _label(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Constant) and node.value in self._labels:
            return ast.Constant(self._number("label", str(node.value)))
        return node

    def _number(self, kind: str, name: str) -> str:
        """A text that cannot be a name in the source."""
        return self._numbers.setdefault(f"{kind} {name}", f"{kind} {len(self._numbers)}")


def _labels(tree: ast.Module) -> set[Any]:
    """Strings that are keys of dictionaries and nothing else; none in a source with f-strings."""
    places: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            return set()
        if isinstance(node, ast.Dict):
            places += node.keys
        elif isinstance(node, ast.Subscript):
            places.append(node.slice)
    keys = {id(place): place.value for place in places if isinstance(place, ast.Constant)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    elsewhere = {node.value for node in constants if id(node) not in keys}
    return {value for value in keys.values() if isinstance(value, str)} - {
        each for each in elsewhere if isinstance(each, str)
    }
