"""The critic's first step: parse the source. Also findings: docs/reward-contract.md explains the
codes, `P` parse, `M` mended, `A` allow-list, `C` contract, `D` dry run, `N` novelty, `R` review."""

from __future__ import annotations

import ast
import warnings
from typing import Literal

from eureka_agent import syntax
from eureka_agent.records import Finding

EMPTY, NO_PYTHON = "P101", "P103"
MAX_SOURCE_CHARACTERS = 50_000
MAX_NODES = 20_000
"""Most nodes of the syntax tree, several times those of a long hand-written source."""
MAX_DEPTH = 100
"""Deepest nesting of the syntax tree. Beyond it recursion in Python's own tools may fail."""
MAX_BITS = 1024
"""Most bits of an integer: no float is larger, and Python writes no longer one as text."""
_SHORTER = "write the reward as a short function"


def finding(
    code: str,
    message: str,
    node: ast.AST | None = None,
    hint: str = "",
    severity: Literal["error", "warning", "note"] = "error",
    *,
    line: int | None = None,
) -> Finding:
    """A finding at the place of a syntax node, or in a line; columns count from 1."""
    line, offset = getattr(node, "lineno", line), getattr(node, "col_offset", None)
    column = None if offset is None else offset + 1
    return Finding(
        code=code, severity=severity, message=message, line=line, column=column, hint=hint
    )


def parse(source: str) -> tuple[ast.Module | None, list[Finding]]:
    """The syntax tree, or None with a finding."""
    if not source.strip():
        return None, [finding(EMPTY, "the source is empty", hint="define `compute_reward`")]
    if len(source) > MAX_SOURCE_CHARACTERS:
        fault = f"the source has {len(source)} characters, expected at most {MAX_SOURCE_CHARACTERS}"
        return None, [finding("P102", fault, hint=_SHORTER)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as a backslash in a string
            tree = syntax.parsed(source)
            nodes = list(ast.walk(tree))
            if len(nodes) > MAX_NODES:
                fault = f"the source has {len(nodes)} parts of syntax, expected at most {MAX_NODES}"
                return None, [finding("P102", fault, hint=_SHORTER)]
            if _depth(tree) > MAX_DEPTH:
                fault = f"the source is nested more than {MAX_DEPTH} levels deep"
                return None, [finding("P104", fault, hint="split long expressions")]
            # The compiler finds what the grammar allows, such as a stray return. It copies a
            # `finally` for every way out of its `try`, which can take minutes and gigabytes for a
            # few hundred characters; the allow-list refuses every `try`.
            if not any(isinstance(node, (ast.Try, ast.TryStar)) for node in nodes):
                compile(source, "<reward>", "exec", dont_inherit=True)
    except SyntaxError as error:
        hint = "mend this line, or what is open above it"
        if "```" in source:
            hint = "give Python source alone, without prose or fences"
        found = finding(NO_PYTHON, f"not valid Python: {error.msg}", hint=hint, line=error.lineno)
        return None, [found.model_copy(update={"column": error.offset or None})]
    except ValueError as error:  # a null byte, a lone surrogate
        return None, [finding(NO_PYTHON, f"not valid Python: {error}", hint="give plain text")]
    except (RecursionError, MemoryError):
        fault = "the source is nested too deeply to be read"
        return None, [finding("P104", fault, hint="split long expressions")]
    if large := next((node for node in nodes if _is_huge(node)), None):
        fault = f"a whole number has more than {MAX_BITS} bits"
        return None, [finding("P105", fault, large, "write it as a float, such as 1e9")]
    return tree, []


def _depth(tree: ast.AST) -> int:
    depth, level = 0, [tree]
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def _is_huge(node: ast.AST) -> bool:
    value = node.value if isinstance(node, ast.Constant) else 0
    return isinstance(value, int) and value.bit_length() > MAX_BITS
