"""Reading reward source without running it: its parameters, its constants, and whether two sources are the same reward."""

from __future__ import annotations

import ast

ENTRY_POINT = "compute_reward"


def normalized(source: str) -> str:
    """A text that is equal for two sources that differ only in layout, comments, docstrings, annotations and decorators.

    Source that does not parse is its own normal form.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source.strip()
    return ast.dump(_Stripper().visit(tree))


def same_reward(first: str, second: str) -> bool:
    """Whether two sources are the same program but for layout and comments."""
    return normalized(first) == normalized(second)


def entry_function(source: str) -> ast.FunctionDef | None:
    """The last `compute_reward` at the top level, or None (also for source that does not parse)."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == ENTRY_POINT]
    return found[-1] if found else None


def parameter_names(source: str) -> tuple[str, ...]:
    """Names of `compute_reward`'s parameters, in order; empty where there is no such function."""
    function = entry_function(source)
    if function is None:
        return ()
    return tuple(
        argument.arg for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    )


def number_constants(source: str) -> dict[str, float]:
    """Top-level `NAME = <number>` assignments."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {}
    found: dict[str, float] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            try:
                value = ast.literal_eval(node.value)
            except ValueError:
                continue
            if isinstance(value, int | float) and not isinstance(value, bool):
                found[node.targets[0].id] = float(value)
    return found


class _Stripper(ast.NodeTransformer):
    """Removes what does not change what a function computes."""

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
        return ast.Assign(targets=[node.target], value=node.value) if node.value is not None else ast.Pass()


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return body[1:]
    return body
