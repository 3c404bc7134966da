"""A reward's source as a file of its own: what the trainer gave it silently is written out. Text in, text out; nothing is run."""

from __future__ import annotations

import ast
from typing import TypeGuard

from eureka_agent.errors import RewardLoadError
from eureka_agent.report.wording import without_trailing_comments

_FUTURE = "from __future__ import annotations"
_GIVEN_IMPORTS = {
    "math": "import math",
    **{
        name: f"from typing import {name}" for name in ("Any", "Dict", "List", "Optional", "Sequence", "Tuple", "Union")
    },
    "torch": "import torch",
    "Tensor": "from torch import Tensor",
}
"""Names that the trainer puts into a reward's namespace, and the lines that import them."""


def standalone_source(source: str) -> str:
    """The reward as a module that runs with torch alone, up to its last line of code.

    Imports that it does without in training are added, `@torch.jit.…` decorators (which training ignores) are taken off, and annotations
    are left unevaluated, as in training. Raises RewardLoadError for source that does not parse.
    """
    text = without_trailing_comments(source)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise RewardLoadError(
            f"the reward cannot be exported, it is not valid Python: {error}", "export another attempt"
        ) from None
    head, dropped = _end_of_head(tree), _decorator_lines(tree)
    kept = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if number not in dropped]
    before = [line for number, line in kept if number <= head]
    after = [line for number, line in kept if number > head]
    imports = _missing_imports(tree)
    body = "\n".join(after).strip("\n")
    future = [] if _has_annotations_future(tree) else [_FUTURE]
    heads = ["\n".join(part) for part in (before, future, imports) if part]
    if imports and body.startswith(("import ", "from ")):
        body = f"{heads.pop()}\n{body}"
    elif body.startswith("def "):
        body = f"\n{body}"
    return "\n\n".join([*heads, body.rstrip()]) + "\n"


def _end_of_head(tree: ast.Module) -> int:
    """Last line of the docstring and of `from __future__` imports, behind which other imports may stand; 0 where there are none."""
    end = 0
    for index, node in enumerate(tree.body):
        is_docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_docstring and not _is_future(node):
            break
        end = node.end_lineno or end
    return end


def _is_future(node: ast.stmt) -> TypeGuard[ast.ImportFrom]:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _has_annotations_future(tree: ast.Module) -> bool:
    return any(alias.name == "annotations" for node in tree.body if _is_future(node) for alias in node.names)


def _decorator_lines(tree: ast.Module) -> set[int]:
    """Lines of `@torch.jit.…` decorators."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if ast.unparse(decorator).startswith("torch.jit.")
        for line in range(decorator.lineno, (decorator.end_lineno or decorator.lineno) + 1)
    }


def _missing_imports(tree: ast.Module) -> list[str]:
    """Lines that import what the source uses without having it."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound = {
        alias.asname or alias.name.partition(".")[0]
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    return [line for name, line in _GIVEN_IMPORTS.items() if name in used - bound]
