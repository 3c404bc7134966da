"""Syntax trees, made one at a time.

CPython 3.11 counts the depth of all trees together, and raises SystemError where another one is
begun before the first is made (python/cpython#106905): by a thread whose turn it is, or by what the
garbage collector ends, since even a traceback is shown with the help of a tree. Numpy's readers
make a tree of an array's header, and the exporter of ONNX one of its own functions.
"""

from __future__ import annotations

import ast
import functools
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOCK = threading.RLock()


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """A block that makes trees: no other such block runs beside it, and no collection of garbage
    in it."""
    with _LOCK:
        collects = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if collects:
                gc.enable()


def parsed(source: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """`ast.parse` of a module. Raises what that raises."""
    with one_at_a_time():
        return ast.parse(source, filename)


def literal(source: str) -> Any:
    """`ast.literal_eval` of a text. Raises what that raises."""
    with one_at_a_time():
        return ast.literal_eval(source)


@functools.lru_cache(maxsize=256)
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """`ast.walk` of a tree that nobody changes, made once: a check asks for it twenty times."""
    return tuple(ast.walk(tree))
