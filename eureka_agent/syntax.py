"""Syntax trees, made by one thread at a time.

CPython 3.11 counts the depth of a tree for all threads together, and raises SystemError where two
threads take turns (python/cpython#106905). Numpy's readers parse an array's header as Python too.
"""

from __future__ import annotations

import ast
import threading
from typing import Any

ONE_AT_A_TIME = threading.RLock()
"""Held while a tree is made."""


def parsed(source: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """`ast.parse` of a module. Raises what that raises."""
    with ONE_AT_A_TIME:
        return ast.parse(source, filename)


def parsed_expression(source: str) -> ast.expr:
    """`ast.parse` of an expression. Raises what that raises."""
    with ONE_AT_A_TIME:
        return ast.parse(source, mode="eval").body


def literal(source: str) -> Any:
    """`ast.literal_eval` of a text. Raises what that raises."""
    with ONE_AT_A_TIME:
        return ast.literal_eval(source)
