"""What the functions that rewards call do to a number or to a factor: tables for reading a source
without running it."""

from __future__ import annotations

import ast


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES = _words("torch math F")
OF_NUMBERS = _words(
    """clamp clip clamp_min clamp_max where minimum maximum full_like exp log sqrt tanh float mul
    add
    sub div multiply subtract divide"""
)
"""Functions that take a number, whole or not."""
OF_TENSORS = OF_NUMBERS | _words("abs square sum mean sigmoid relu sin cos norm stack to values")
"""Functions that take what a number and a tensor make together."""
NUMBER_KEYWORDS = _words("min max other input")

KEEP_A_FACTOR = _words(
    "sum mean abs float clone squeeze unsqueeze view reshape norm relu values cumsum neg amax amin"
    " contiguous"
)
"""Functions f with f(a·x) = a·f(x) for every a > 0, where the other arguments know nothing of a."""
POWERS_OF_A_FACTOR = {"square": 2.0, "sqrt": 0.5}
"""Those with f(a·x) = aᵏ·f(x)."""


def called_name(call: ast.Call) -> str:
    """The last part of a called function's name; empty where it has none."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def is_method(call: ast.Call) -> bool:
    """Whether a value's method is called and no function of a module: `x.sum()`, not
    `torch.sum(x)`."""
    root: ast.expr = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(call.func, ast.Attribute) and not (
        isinstance(root, ast.Name) and root.id in MODULES
    )
