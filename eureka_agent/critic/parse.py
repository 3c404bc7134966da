"""The critic's first step: parse the source."""

from __future__ import annotations

import ast
import warnings

from eureka_agent import syntax
from eureka_agent.critic.findings import finding
from eureka_agent.records import Finding

EMPTY, NO_PYTHON = "P101", "P103"
"""Codes of the findings on an empty source and on one that is no Python."""
MAX_SOURCE_CHARACTERS = 50_000
MAX_NODES = 20_000
"""Most nodes of the syntax tree, several times those of a long hand-written source. `a<a<a` has one
for each character."""
MAX_DEPTH = 100
"""Deepest nesting of the syntax tree. Beyond it recursion in Python's own tools may fail."""

MAX_BITS = 1024
"""Most bits of an integer. No float is larger, and Python refuses to write very long integers as
text."""


def unreadable_file(reason: str, hint: str) -> Finding:
    """The finding for an unreadable file among others."""
    return finding("P100", f"cannot be read: {reason}", hint=hint)


def parse(source: str) -> tuple[ast.Module | None, list[Finding]]:
    """The syntax tree, or None with a finding."""
    if not source.strip():
        return None, [finding(EMPTY, "the source is empty", hint="define `compute_reward`")]
    if len(source) > MAX_SOURCE_CHARACTERS:
        message = (
            f"the source has {len(source)} characters, expected at most {MAX_SOURCE_CHARACTERS}"
        )
        return None, [finding("P102", message, hint="write the reward as a short function")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as a backslash in a string
            tree = syntax.parsed(source)
            nodes = list(ast.walk(tree))
            if len(nodes) > MAX_NODES:
                message = (
                    f"the source has {len(nodes)} parts of syntax, expected at most {MAX_NODES}"
                )
                return None, [finding("P102", message, hint="write the reward as a short function")]
            if _depth(tree) > MAX_DEPTH:
                message = f"the source is nested more than {MAX_DEPTH} levels deep"
                return None, [finding("P104", message, hint="split long expressions")]
            # The compiler finds what the grammar allows, such as a stray return. It copies a
            # `finally` for every way out of its `try`, which can take minutes and gigabytes for a
            # few hundred characters; the allow-list refuses every `try`.
            if not any(isinstance(node, (ast.Try, ast.TryStar)) for node in nodes):
                compile(source, "<reward>", "exec", dont_inherit=True)
    except SyntaxError as error:
        message = f"not valid Python: {error.msg}"
        place = Finding(
            code=NO_PYTHON,
            severity="error",
            message=message,
            line=error.lineno,
            column=error.offset or None,
        )
        fenced = "give Python source alone, without prose or fences"
        hint = fenced if "```" in source else "mend this line, or what is open above it"
        return None, [place.model_copy(update={"hint": hint})]
    except ValueError as error:  # a null byte, a lone surrogate
        return None, [finding(NO_PYTHON, f"not valid Python: {error}", hint="give plain text")]
    except (RecursionError, MemoryError):
        return None, [
            finding(
                "P104", "the source is nested too deeply to be read", hint="split long expressions"
            )
        ]
    if large := next((node for node in nodes if _is_huge(node)), None):
        message = f"a whole number has more than {MAX_BITS} bits"
        return None, [finding("P105", message, large, "write it as a float, such as 1e9")]
    return tree, []


def _depth(tree: ast.AST) -> int:
    depth, level = 0, [tree]
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def _is_huge(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int)
        and node.value.bit_length() > MAX_BITS
    )
