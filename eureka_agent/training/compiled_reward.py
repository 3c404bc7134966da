"""The top level of a reward's source: compiled once, run for each call."""

from __future__ import annotations
import __future__ as future

import ast
import builtins
import hashlib
import linecache
import math
import typing
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import Tensor

from eureka_agent import syntax
from eureka_agent.errors import RewardLoadError
from eureka_agent.reward_names import HELPER_NAMES, is_helper_module
from eureka_agent.rewards import OBSERVATION_FUNCTION
from eureka_agent.task import QuaternionOrder
from eureka_agent.training import reward_helpers

FUNCTION_NAME = "compute_reward"
_TYPING_NAMES = ("Any", "Dict", "List", "Optional", "Sequence", "Tuple", "Union")


@dataclass(frozen=True)
class CompiledReward:
    """The top level of a reward's source, compiled once for many runs."""

    filename: str
    return_line: int
    """Line of the last `return` of `compute_reward`."""
    has_observation: bool
    _code: CodeType
    _calls_helpers: bool
    _quaternion_order: QuaternionOrder

    @classmethod
    def compile(cls, source: str, quaternion_order: QuaternionOrder) -> CompiledReward:
        """Compile without `@torch.jit.script` and helpers' imports. Raises RewardLoadError."""
        filename = f"<reward {hashlib.sha256(source.encode(errors='replace')).hexdigest()[:12]}>"
        try:  # null bytes, absurd nesting, `return` at the top level
            tree = syntax.parsed(source, filename)
            definition = _definition(tree)
            # None as modification time keeps linecache from looking for a file
            lines = source.splitlines(keepends=True)
            linecache.cache[filename] = (len(source), None, lines, filename)
            tree = ast.fix_missing_locations(_Trimmer().visit(tree))
            # unevaluated, so that a good reward does not fail for a name in an annotation
            flags = future.annotations.compiler_flag
            code = compile(tree, filename, "exec", flags=flags, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            where = f"line {line}: " if line else ""
            what = f"{where}not valid Python: {getattr(error, 'msg', error)}"
            raise RewardLoadError(what, "correct the syntax") from None
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        ends = [node.lineno for node in ast.walk(definition) if isinstance(node, ast.Return)]
        return_line, calls_helpers = max(ends, default=definition.lineno), names & {*HELPER_NAMES}
        observes = OBSERVATION_FUNCTION in {
            node.name for node in tree.body if isinstance(node, ast.FunctionDef)
        }
        rest = code, bool(calls_helpers), quaternion_order
        return cls(filename, return_line, observes, *rest)

    def run(self, name: str = FUNCTION_NAME) -> Callable[..., Any]:
        """Run the top level in a new namespace; return a function of it, or raise its error."""
        namespace: dict[str, Any] = {"__builtins__": builtins, "__name__": self.filename}
        namespace |= {"torch": torch, "math": math, "Tensor": Tensor}
        namespace |= {name: getattr(typing, name) for name in _TYPING_NAMES}
        if self._calls_helpers:
            namespace.update(helpers(self._quaternion_order))
        exec(self._code, namespace)
        return typing.cast(Callable[..., Any], namespace.get(name))


def helpers(order: QuaternionOrder) -> dict[str, Callable[..., Any]]:
    """New copies of Isaac Gym's helper functions by name, for quaternions in this order."""
    names: dict[str, Any] = {**vars(reward_helpers), "QUATERNION_ORDER": order}
    functions = {name: value for name, value in names.items() if isinstance(value, FunctionType)}
    # functions look names up in the dictionary that they are made with
    for name, value in functions.items():
        names[name] = FunctionType(value.__code__, names, name, value.__defaults__)
    return {name: names[name] for name in HELPER_NAMES}


def _definition(tree: ast.Module) -> ast.FunctionDef:
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    found = [node for node in functions if node.name == FUNCTION_NAME]
    if not found:
        what = f"the source defines no function {FUNCTION_NAME!r}"
        raise RewardLoadError(what, f"write `def {FUNCTION_NAME}(…)` at the top level")
    return found[-1]


class _Trimmer(ast.NodeTransformer):
    """Removes `torch.jit` decorators, and imports of helper functions, which are there anyway."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        items = node.decorator_list
        node.decorator_list = [it for it in items if not ast.unparse(it).startswith("torch.jit.")]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.AST]:
        if not is_helper_module(node.module):
            return node
        assignments: list[ast.AST] = []
        for alias in node.names:
            if alias.asname and alias.asname != alias.name:
                target = ast.Name(str(alias.asname), ast.Store())
                assignment = ast.Assign([target], ast.Name(alias.name, ast.Load()))
                assignments.append(ast.copy_location(assignment, node))
        return assignments or ast.copy_location(ast.Pass(), node)
