"""Every code that a verdict may hold, with one line that says what it means. `P` parse, `M` mended, `A` allow-list, `C` contract, `D` dry run,
`N` novelty, `G` trajectory gate, `R` review."""

from __future__ import annotations

import ast
from typing import Literal

from eureka_agent.records import Finding

CODES: dict[str, str] = {
    "P101": "the source is empty",
    "P102": "the source is longer than a reward function can sensibly be, or has more parts",
    "P103": "the source is not valid Python",
    "P104": "the source is nested too deeply to be read",
    "P105": "a whole number that is larger than any float",
    "M401": "something that has one sure repair was mended",
    "A201": "an import of something else than torch, math and typing",
    "A202": "a built-in function that a pure function of tensors has no use for, or its name for something else",
    "A203": "an attribute or name with double underscores",
    "A204": "a function of torch, math or typing that is not on the list of what rewards may use",
    "A205": "state that outlives a call: `global`, a default or a top-level value that is changed, writing to an attribute",
    "A206": "syntax that is not on the list: classes, generators, coroutines, exception handlers and others",
    "A207": "a decorator other than `@torch.jit.script`",
    "A208": "a `while` loop",
    "A209": "an attribute or method that is not on the list of what rewards may use",
    "A210": "a module used as a value, or its name for something else",
    "C301": "there is no function `compute_reward`",
    "C302": "`compute_reward` is defined more than once",
    "C303": "an argument is no variable of the environment",
    "C304": "an argument is a private variable",
    "C305": "an argument that is no variable has a default that is no number, or it collects several values (`*args`, `**kwargs`)",
    "C306": "`compute_reward` takes no variable as an argument",
    "C307": "an argument is never used",
    "C310": "an argument is written to in place",
    "C311": "a name that is not defined",
    "D301": "the source cannot be loaded",
    "D302": "the reward raises",
    "D303": "something else than `(total, components)` is returned",
    "D304": "a value returned has the wrong shape or type",
    "D305": "NaN or infinite on recorded states",
    "D306": "NaN or infinite on extreme states",
    "D307": "two calls on the same states differ",
    "D308": "a row's reward depends on the other rows of the batch",
    "D309": "the reward is slow",
    "D310": "the dry run did not end in time",
    "D311": "the dry run ran out of memory",
    "D312": "the dry run's process died",
    "D313": "the total is constant",
    "D314": "a component is constant",
    "D315": "the components do not add up to the total",
    "D316": "there are no components",
    "N501": "the source is that of an earlier attempt under other names",
    "N502": "the total is that of an earlier attempt up to a positive factor",
    "G601": "recorded episodes with higher fitness get lower returns",
    "R701": "the reward contradicts the task, in the reviewer's reading",
    "R702": "a way to earn the reward without doing the task, in the reviewer's reading",
    "R703": "the review could not be read",
}


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
