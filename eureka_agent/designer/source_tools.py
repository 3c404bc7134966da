"""Reward source without running it: its parameters, its differences from another one, and the same
reward with other values of its named constants.

A constant that may be changed is a float with a name at the top level (`EFFORT_WEIGHT = 0.05`) that
the code reads. Numbers within expressions stay: an author who names a number offers it for tuning.
Whole numbers stay, since they may be counts, and so do

- zero, which has no size to multiply, and sizes near the limits of float32 (`LARGEST`);
- names that are bound more than once;
- facts: π, gravity, the control step, and guards against a division by zero (`FACTS`).
"""

from __future__ import annotations

import ast
import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from eureka_agent import syntax
from eureka_agent.critic.allow_list import imports, names_used
from eureka_agent.critic.contract import FUNCTION_NAME, reward_functions
from eureka_agent.critic.memory import Bare, normalized, parsed
from eureka_agent.critic.repair import replaced
from eureka_agent.errors import EurekaError
from eureka_agent.rewards import OBSERVATION_FUNCTION
from eureka_agent.text import clipped, one_line

ENTRY_POINT = FUNCTION_NAME
LONGEST_COMPACT = 1_500
MOST_DIFFERENCES = 8
_LONGEST_NAME = 40
FACTS = frozenset({"PI", "GRAVITY", "DT", "TIMESTEP", "EPS", "EPSILON"})
"""Words of a name (`CONTROL_DT`, `HALF_PI`) that make it a fact."""
LARGEST = 1e30
"""Largest size of a constant that may be changed; its inverse is the smallest."""
DIGITS = 4
"""Significant digits of a written value. No training tells more of them apart."""


def same_reward(first: str, second: str) -> bool:
    """True if two sources are the same program apart from layout and comments."""
    return normalized(first) == normalized(second)


def compact(source: str, limit: int = LONGEST_COMPACT) -> str:
    """The source without imports, comments, docstrings, annotations and decorators, at most `limit`
    characters; unchanged if it does not parse."""
    tree = parsed(source)
    if tree is not None:
        tree.body = [
            each for each in tree.body if not isinstance(each, ast.Import | ast.ImportFrom)
        ]
        with contextlib.suppress(RecursionError, ValueError):  # too deeply nested
            return clipped(ast.unparse(ast.fix_missing_locations(Bare().visit(tree))), limit)
    return clipped(source.strip(), limit)


def entry_function(source: str, name: str = ENTRY_POINT) -> ast.FunctionDef | None:
    """The last top-level function of this name; None without one or for invalid source."""
    tree = parsed(source)
    found = [] if tree is None else reward_functions(tree, name)
    return found[-1] if found else None


def parameter_names(source: str, name: str = ENTRY_POINT) -> tuple[str, ...]:
    """Names of the parameters of `compute_reward` or another function, in order; empty without
    it."""
    function = entry_function(source, name)
    if function is None:
        return ()
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return tuple(argument.arg for argument in arguments)


def terms(source: str) -> dict[str, str]:
    """Each term of the returned dictionary with its last expression; empty if unreadable."""
    function = entry_function(source)
    nodes = [] if function is None else list(ast.walk(function))
    given = {
        node.targets[0].id: node.value
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }

    def named(node: ast.expr) -> ast.expr:
        return given.get(node.id, node) if isinstance(node, ast.Name) else node

    for node in reversed(nodes):
        match node:
            case ast.Return(value=ast.Tuple(elts=[_, second])):
                found = named(second)
                if isinstance(found, ast.Dict):
                    return {
                        key.value: ast.dump(named(value))
                        for key, value in zip(found.keys, found.values, strict=True)
                        if isinstance(key, ast.Constant) and isinstance(key.value, str)
                    }
    return {}


def difference(parent: str, child: str) -> str:
    """Differences of a child in one line: `+ term upright; other form of effort; FORWARD 1 → 2`."""
    if same_reward(parent, child):
        return "no difference"
    before, after = terms(parent), terms(child)
    old, new = number_constants(parent), number_constants(child)
    saw, sees = (parameter_names(each, OBSERVATION_FUNCTION) for each in (parent, child))
    changed = [_short(name) for name in after if before.get(name, after[name]) != after[name]]
    parts = [
        *_few([f"+ term {_short(name)}" for name in after if name not in before]),
        *_few([f"- term {_short(name)}" for name in before if name not in after]),
        *([f"other form of {', '.join(changed)}"] if changed else []),
        *_few([f"+ observes {_short(name)}" for name in sees if name not in saw]),
        *_few([f"- observes {_short(name)}" for name in saw if name not in sees]),
        *_few(
            [
                f"{_short(name)} {old[name]:.4g} → {value:.4g}"
                for name, value in new.items()
                if old.get(name, value) != value
            ],
            " constants",
        ),
    ]
    return "; ".join(parts) or f"other code around the same terms of {ENTRY_POINT}"


def _few(parts: Sequence[str], what: str = "") -> list[str]:
    more = len(parts) - MOST_DIFFERENCES
    return [*parts[:MOST_DIFFERENCES], *([f"{more} more{what}"] if more > 0 else [])]


def _short(name: str) -> str:
    return one_line(name, _LONGEST_NAME)


# ── named constants ───────────────────────────────────────────────────────────────────────────────


def number_constants(source: str) -> dict[str, float]:
    """Values of the top-level `NAME = <number>` assignments, the last one of each name."""
    tree = parsed(source)
    found: dict[str, float] = {}
    for name, literal in _number_assignments(tree) if tree is not None else ():
        with contextlib.suppress(OverflowError):  # a whole number beyond all floats
            found[name] = _value(literal)
    return found


def tunable_constants(source: str) -> dict[str, float]:
    """The constants that may be changed, in the source's order; empty for invalid source."""
    return {name: _value(literal) for name, literal in _tunable(source).items()}


def with_constants(source: str, values: Mapping[str, float]) -> str:
    """The source with these values of constants, with `DIGITS` significant digits. All other bytes
    stay, as does an unchanged value. Raises EurekaError for an unknown name, and for a value that
    is written as 0 or is not finite."""
    literals = _tunable(source)
    edits: list[tuple[ast.expr | ast.stmt, str]] = []
    for name, value in values.items():
        if name not in literals:
            known = ", ".join(literals) or "none"
            raise EurekaError(f"{name!r} is no parameter of this reward", f"there are {known}")
        written = float(f"{value:.{DIGITS}g}")
        if written == 0.0 or not math.isfinite(written):
            what = f"the parameter {name!r} was to be {value!r}"
            raise EurekaError(what, "expected a finite number other than 0")
        if value != _value(literals[name]):
            edits.append((literals[name], repr(written)))
    return replaced(source, edits) if edits else source


def _tunable(source: str) -> dict[str, ast.expr]:
    tree = parsed(source)
    if tree is None:
        return {}
    read, bound = set(names_used(tree)), Counter(name for name, _ in imports(tree))
    for node in syntax.nodes(tree):
        match node:
            case ast.arg(arg=name) | ast.FunctionDef(name=name):
                bound[name] += 1
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound[name] += 1
    return {
        name: literal
        for name, literal in _number_assignments(tree)
        if bound[name] == 1
        and name in read
        and FACTS.isdisjoint(name.upper().split("_"))
        and isinstance(ast.literal_eval(literal), float)
        and 1.0 / LARGEST <= abs(_value(literal)) <= LARGEST
    }


def _value(literal: ast.expr) -> float:
    return float(ast.literal_eval(literal))


def _number_assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Name and literal of every top-level `NAME = <number>`, also annotated, with its sign."""
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                digits = value
                if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub | ast.UAdd):
                    digits = value.operand
                if isinstance(digits, ast.Constant) and type(digits.value) in (int, float):
                    yield name, value
