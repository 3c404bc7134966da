"""Comparison of reward sources: a compact form, and a child's differences from its parent."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from eureka_agent.designer.source_tools import (
    ENTRY_POINT,
    entry_function,
    number_constants,
    parsed,
    same_reward,
    without_annotations,
)
from eureka_agent.text import clipped, one_line

LONGEST_COMPACT = 1_500
"""Most characters of a compact source."""
MOST_DIFFERENCES = 8
"""Most terms, and most constants, in a description of differences."""
_LONGEST_NAME = 40


def compact(source: str, limit: int = LONGEST_COMPACT) -> str:
    """The source without imports, comments, docstrings, annotations and decorators, at most `limit`
    characters; unchanged if it does not parse."""
    tree = parsed(source)
    if tree is None:
        return clipped(source.strip(), limit)
    tree.body = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    try:
        return clipped(ast.unparse(ast.fix_missing_locations(without_annotations(tree))), limit)
    except (RecursionError, ValueError):  # too deeply nested
        return clipped(source.strip(), limit)


def terms(source: str) -> dict[str, str]:
    """Each term of the returned dictionary with its last expression, constants by name. Empty if
    none can be read."""
    function = entry_function(source)
    if function is None:
        return {}
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    found = next((_dictionary(value, function) for value in reversed(returned)), None)
    if found is None:
        return {}
    given = {
        node.targets[0].id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
    }
    forms: dict[str, str] = {}
    for key, value in zip(found.keys, found.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            form = given.get(value.id, value) if isinstance(value, ast.Name) else value
            forms[key.value] = ast.dump(form)
    return forms


def _dictionary(value: ast.expr | None, function: ast.FunctionDef) -> ast.Dict | None:
    """The dictionary of a returned pair, written there or assigned to a name before."""
    if not isinstance(value, ast.Tuple) or len(value.elts) != 2:
        return None
    second = value.elts[1]
    if isinstance(second, ast.Name):
        named = [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            and any(isinstance(to, ast.Name) and to.id == second.id for to in node.targets)
        ]
        second = named[-1] if named else second
    return second if isinstance(second, ast.Dict) else None


def difference(parent: str, child: str) -> str:
    """Differences of a child in one line: `+ term upright; - term alive; other form of effort;
    FORWARD 1 → 2`."""
    if same_reward(parent, child):
        return "no difference"
    before, after = terms(parent), terms(child)
    parts = _names("+ term ", after.keys() - before.keys(), after) + _names(
        "- term ", before.keys() - after.keys(), before
    )
    changed = {name for name in before.keys() & after.keys() if before[name] != after[name]}
    if changed:
        parts.append(
            f"other form of {', '.join(_short(name) for name in list(after) if name in changed)}"
        )
    old, new = number_constants(parent), number_constants(child)
    moved = [name for name in new if name in old and new[name] != old[name]]
    parts += [
        f"{_short(name)} {old[name]:.4g} → {new[name]:.4g}" for name in moved[:MOST_DIFFERENCES]
    ]
    if len(moved) > MOST_DIFFERENCES:
        parts.append(f"{len(moved) - MOST_DIFFERENCES} more constants")
    return "; ".join(parts) or f"other code around the same terms of {ENTRY_POINT}"


def _names(sign: str, names: set[str], order: Mapping[str, str]) -> list[str]:
    shown = [name for name in order if name in names]
    parts = [f"{sign}{_short(name)}" for name in shown[:MOST_DIFFERENCES]]
    return parts + (
        [f"{len(shown) - MOST_DIFFERENCES} more"] if len(shown) > MOST_DIFFERENCES else []
    )


def _short(name: str) -> str:
    return one_line(name, _LONGEST_NAME)
