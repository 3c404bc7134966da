"""Parameters of a reward among its named constants, and the same reward with other values.

A parameter is a float with a name at the top level (`EFFORT_WEIGHT = 0.05`) that the code reads.
Numbers within expressions are no parameters: an author who names a number offers it for tuning.
Whole numbers are none, since they may be counts. Left out are

- zero, which has no size to multiply, and sizes near the limits of float32 (`LARGEST`);
- names that are bound more than once, and unread ones;
- facts: π, gravity, the control step, and guards against a division by zero (`FACTS`).

Within these bounds names and uses count, not sizes, so a retuned reward has the same parameters.
"""

from __future__ import annotations

import ast
import math
import re
import symtable
from collections import Counter
from collections.abc import Iterator, Mapping

from eureka_agent.designer.source_tools import number_assignments, parsed
from eureka_agent.errors import EurekaError

FACTS = frozenset({"PI", "GRAVITY", "DT", "TIMESTEP", "EPS", "EPSILON"})
"""Words of a name (`CONTROL_DT`, `HALF_PI`) that make it a fact. Targets, thresholds, temperatures
and weights are parameters."""
LARGEST = 1e30
"""Largest size of a parameter; its inverse is the smallest."""
DIGITS = 4
"""Significant digits of a written value. No training tells more of them apart."""
_LINE_ENDS = re.compile(rb"\r\n|\r|\n")


def tunable_constants(source: str) -> dict[str, float]:
    """The reward's parameters by name, in the source's order; empty for invalid source."""
    return {name: _value(literal) for name, literal in _tunable(source).items()}


def with_constants(source: str, values: Mapping[str, float]) -> str:
    """The source with these values of parameters, with `DIGITS` significant digits. All other bytes
    stay, as does an unchanged value.

    Raises EurekaError for an unknown name, and for a value that is written as 0 or is not finite.
    """
    literals = _tunable(source)
    edits: dict[str, float] = {}
    for name, value in values.items():
        if name not in literals:
            known = ", ".join(literals) or "none"
            raise EurekaError(f"{name!r} is no parameter of this reward", f"there are {known}")
        written = as_written(value)
        if written == 0.0 or not math.isfinite(written):
            what = f"the parameter {name!r} was to be {value!r}"
            raise EurekaError(what, "expected a finite number other than 0")
        if value != _value(literals[name]):
            edits[name] = written
    return _replaced(source, {literals[name]: value for name, value in edits.items()})


def as_written(value: float) -> float:
    """`value` with `DIGITS` significant digits."""
    return float(f"{value:.{DIGITS}g}")


def _tunable(source: str) -> dict[str, ast.expr]:
    """The literals of all parameters by name."""
    tree = parsed(source)
    try:
        read = _names_read(symtable.symtable(source, "<reward>", "exec"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # such as a stray `nonlocal`
        return {}
    if tree is None:
        return {}
    bound = Counter(_names_bound(tree))
    return {
        name: literal
        for name, literal in number_assignments(tree)
        if bound[name] == 1
        and name in read
        and FACTS.isdisjoint(name.upper().split("_"))
        and isinstance(ast.literal_eval(literal), float)
        and 1.0 / LARGEST <= abs(_value(literal)) <= LARGEST
    }


def _value(literal: ast.expr) -> float:
    return float(ast.literal_eval(literal))


def _names_read(table: symtable.SymbolTable) -> set[str]:
    """Top-level names that are read there or in a function without an own name of that kind."""
    top = table.get_type() == "module"
    names = {
        each.get_name()
        for each in table.get_symbols()
        if each.is_referenced() and (top or each.is_global())
    }
    return names.union(*(_names_read(child) for child in table.get_children()))


def _names_bound(tree: ast.Module) -> Iterator[str]:
    """Names that the top level binds, once for each binding, in doubt once too often."""
    yield from (
        name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names
    )
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]
        elif (
            isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler))
            and node.name is not None
        ):
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest is not None:
            yield node.rest
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif not isinstance(node, ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def _replaced(source: str, numbers: Mapping[ast.expr, float]) -> str:
    """The source with numbers in place of these literals."""
    if not numbers:
        return source
    text = source.encode()  # the parser counts columns in bytes
    # lines as in Python's grammar, since `splitlines` knows more line ends
    begins = [0, *(match.end() for match in _LINE_ENDS.finditer(text))]
    edits: list[tuple[int, int, bytes]] = []
    for literal, number in numbers.items():
        assert literal.end_lineno is not None
        assert literal.end_col_offset is not None
        begin = begins[literal.lineno - 1] + literal.col_offset
        edits.append(
            (begin, begins[literal.end_lineno - 1] + literal.end_col_offset, repr(number).encode())
        )
    for begin, end, written in sorted(edits, reverse=True):
        text = text[:begin] + written + text[end:]
    return text.decode()
