"""Findings of the critic. docs/reward-contract.md explains the codes: `P` parse, `M` mended, `A`
allow-list, `C` contract, `D` dry run, `N` novelty, `R` review."""

from __future__ import annotations

import ast
from typing import Literal

from eureka_agent.records import Finding


def finding(
    code: str,
    message: str,
    node: ast.AST | None = None,
    hint: str = "",
    severity: Literal["error", "warning", "note"] = "error",
) -> Finding:
    """A finding at the place of a syntax node; columns count from 1."""
    line = getattr(node, "lineno", None)
    column = getattr(node, "col_offset", None)
    return Finding(
        code=code,
        severity=severity,
        message=message,
        line=line,
        column=None if column is None else column + 1,
        hint=hint,
    )
