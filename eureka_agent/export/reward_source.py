"""A reward's source as a file of its own, with all that the trainer adds to it. Nothing is run."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Mapping
from types import MappingProxyType

from eureka_agent import syntax
from eureka_agent.critic.allow_list import imports
from eureka_agent.critic.contract import FUNCTION_NAME
from eureka_agent.critic.repair import replaced
from eureka_agent.designer.source_tools import parameter_names
from eureka_agent.errors import RewardLoadError
from eureka_agent.reward_names import HELPER_NAMES, is_helper_module
from eureka_agent.rewards import OBSERVATION_FUNCTION
from eureka_agent.wording import without_trailing_comments

_FUTURE = "from __future__ import annotations"
_GIVEN_IMPORTS = {
    "math": "import math",
    **{
        name: f"from typing import {name}"
        for name in ("Any", "Dict", "List", "Optional", "Sequence", "Tuple", "Union")
    },
    "torch": "import torch",
    "Tensor": "from torch import Tensor",
}
"""Names that the trainer puts into a reward's namespace, with the lines that import them."""
HELPERS_MODULE = "reward_helpers"
"""Module of Isaac Gym's helper functions, for an exported reward that calls them."""


def standalone_source(source: str, constants: Mapping[str, float] = MappingProxyType({})) -> str:
    """Reward as a module that needs only torch (and `HELPERS_MODULE`), up to its last line of code.

    Adds the imports that training does not need, removes `@torch.jit.…` decorators, which training
    ignores, and leaves annotations unevaluated, as in training. `constants`: become defaults of
    the reward's arguments. Raises RewardLoadError for invalid Python.
    """
    text = without_trailing_comments(source)
    helpers = needed_helpers(text)
    text = _without_helper_imports(text)
    tree = _parsed(text)
    head, dropped = _end_of_head(tree), _decorator_lines(tree)
    lines = text.split("\n")
    before, after = (
        [lines[number - 1] for number in part if number not in dropped]
        for part in (range(1, head + 1), range(head + 1, len(lines) + 1))
    )
    needed = ["import functools"] * bool(constants) + _missing_imports(tree)
    if helpers:
        needed.append(f"from {HELPERS_MODULE} import {', '.join(helpers)}")
    body = "\n".join(after).strip("\n")
    future = [] if ("annotations", "__future__.annotations") in imports(tree) else [_FUTURE]
    heads = ["\n".join(part) for part in (before, future, needed) if part]
    if needed and body.startswith(("import ", "from ")):
        body = f"{heads.pop()}\n{body}"
    elif body.startswith("def "):
        body = f"\n{body}"
    return "\n\n".join([*heads, body.rstrip() + _with_constants(text, constants)]) + "\n"


def needed_helpers(source: str) -> list[str]:
    """Isaac Gym's helper functions that the source calls without defining them, in the words of an
    import: `quat_mul`, or `quat_mul as multiply`. Raises RewardLoadError for invalid Python."""
    top = symtable.symtable(_without_helper_imports(source), "reward.py", "exec")
    own = {
        symbol.get_name()
        for symbol in top.get_symbols()
        if symbol.is_assigned() or symbol.is_imported()
    }
    renamed = [
        f"{alias.name} as {alias.asname}"
        for node in _helper_imports(_parsed(source))
        for alias in node.names
        if alias.asname not in (None, alias.name) and alias.name in HELPER_NAMES
    ]
    return [name for name in HELPER_NAMES if name in _read_globally(top) - own] + renamed


def _read_globally(table: symtable.SymbolTable) -> set[str]:
    names = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_global() and symbol.is_referenced()
    }
    return names.union(*map(_read_globally, table.get_children()))


def _helper_imports(tree: ast.Module) -> list[ast.ImportFrom]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return [node for node in nodes if is_helper_module(node.module)]


def _without_helper_imports(text: str) -> str:
    """Text with `pass` in place of imports of helper functions."""
    return replaced(text, [(node, "pass") for node in _helper_imports(_parsed(text))])


def _with_constants(source: str, constants: Mapping[str, float]) -> str:
    lines = []
    for function in (FUNCTION_NAME, OBSERVATION_FUNCTION):
        names = [name for name in parameter_names(source, function) if name in constants]
        given = ", ".join(f"{name}={constants[name]!r}" for name in names)
        lines += [f"{function} = functools.partial({function}, {given})"] * bool(given)
    if not lines:
        return ""
    comment = "# constants of the environment, which training gave as arguments"
    return "\n\n\n" + "\n".join([comment, *lines])


def _parsed(text: str) -> ast.Module:
    try:
        return syntax.parsed(text)
    except (SyntaxError, ValueError) as error:
        raise RewardLoadError(
            f"the reward cannot be exported, it is not valid Python: {error}",
            "export another attempt",
        ) from None


def _end_of_head(tree: ast.Module) -> int:
    """Last line of the docstring and `from __future__` imports; 0 without them."""
    end = 0
    for index, node in enumerate(tree.body):
        is_constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (index == 0 and is_constant) and not is_future:
            break
        end = node.end_lineno or end
    return end


def _decorator_lines(tree: ast.Module) -> set[int]:
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if ast.unparse(decorator).startswith("torch.jit.")
        for line in range(decorator.lineno, (decorator.end_lineno or decorator.lineno) + 1)
    }


def _missing_imports(tree: ast.Module) -> list[str]:
    """Lines that import the source's undefined names."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    heads = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    used -= {name for node in heads for name, _ in imports(node)}
    return [line for name, line in _GIVEN_IMPORTS.items() if name in used]
