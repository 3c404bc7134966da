"""Analysis of reward source without running it: parameters, constants, equality."""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Iterator

from eureka_agent import syntax

ENTRY_POINT = "compute_reward"


def parsed(source: str) -> ast.Module | None:
    """The syntax tree, or None for invalid or too deeply nested source."""
    try:
        return syntax.parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # ValueError: a null byte
        return None


@functools.lru_cache(maxsize=128)  # each draft is compared with all before it
def normalized(source: str) -> str:
    """A text that is equal for sources that differ only in layout, comments, docstrings,
    annotations and decorators. Invalid source is its own normal form."""
    tree = parsed(source)
    return source.strip() if tree is None else ast.dump(without_annotations(tree))


def without_annotations(tree: ast.Module) -> ast.Module:
    """Remove docstrings, annotations and decorators from the tree, in place."""
    stripped = _Stripper().visit(tree)
    assert isinstance(stripped, ast.Module)
    return stripped


def same_reward(first: str, second: str) -> bool:
    """True if two sources are the same program apart from layout and comments."""
    return normalized(first) == normalized(second)


def entry_function(source: str) -> ast.FunctionDef | None:
    """The last top-level `compute_reward`; None without one or for invalid source."""
    tree = parsed(source)
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef)) if tree else ()
    found = [node for node in functions if node.name == ENTRY_POINT]
    return found[-1] if found else None


def parameter_names(source: str) -> tuple[str, ...]:
    """Names of `compute_reward`'s parameters, in order; empty without the function."""
    function = entry_function(source)
    if function is None:
        return ()
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return tuple(argument.arg for argument in arguments)


def number_constants(source: str) -> dict[str, float]:
    """Values of the top-level `NAME = <number>` assignments, the last one of each name."""
    tree = parsed(source)
    found: dict[str, float] = {}
    for name, literal in number_assignments(tree) if tree is not None else ():
        with contextlib.suppress(OverflowError):  # a whole number beyond all floats
            found[name] = float(ast.literal_eval(literal))
    return found


def number_assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Name and literal of every top-level `NAME = <number>` or `NAME: float = <number>`. A sign
    belongs to the literal."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        else:
            continue
        digits = value.operand if isinstance(value, ast.UnaryOp) and _is_sign(value.op) else value
        if (
            isinstance(target, ast.Name)
            and isinstance(digits, ast.Constant)
            and type(digits.value) in (int, float)
        ):
            yield target.id, value


def _is_sign(operation: ast.unaryop) -> bool:
    return isinstance(operation, (ast.USub, ast.UAdd))


class _Stripper(ast.NodeTransformer):
    """Removes annotations, decorators and docstrings."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.decorator_list = []
        node.returns = None
        node.body = _without_docstring(node.body) or [ast.Pass()]
        return node

    def visit_Module(self, node: ast.Module) -> ast.AST:
        self.generic_visit(node)
        node.body = _without_docstring(node.body)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None:
            return ast.Pass()
        return ast.Assign(targets=[node.target], value=node.value)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        return body[1:]
    return body
