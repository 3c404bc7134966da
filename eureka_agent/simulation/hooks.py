"""Misspelt names of a base class's methods and attributes, found in the source text."""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
from collections.abc import Iterator

import eureka_agent
from eureka_agent import syntax
from eureka_agent.simulation.user_modules import place_of_function
from eureka_agent.simulation.vec_task import VecTask

_CALLED_FROM_OUTSIDE = frozenset(
    (
        *("advance", "create", "all_variables", "read_variables", "reset", "reset_done"),
        *("reset_rows", "reset_masked", "step"),
    )
)
"""Methods of a base class that others call; the rest may be overridden."""
_SIMILAR = 0.84
"""Similarity (`difflib`) from which a name counts as a misspelling of another."""

_FOREIGN = (eureka_agent.__name__, "abc", "builtins")
"""Packages of base classes that are not the environment author's."""


def own_classes(cls: type[VecTask]) -> list[type]:
    """The class and its bases outside this package, the class first."""
    return [each for each in cls.__mro__ if each.__module__.partition(".")[0] not in _FOREIGN]


def misspelt(cls: type[VecTask]) -> Iterator[tuple[str, str, str]]:
    """Find misspelt methods and attributes: `"<file>, line <n>: "`, fault and intended name."""
    own = own_classes(cls)
    bases = [base for base in cls.__mro__ if issubclass(base, VecTask) and base not in own]
    written = {
        name: value
        for each in reversed(own)
        for name, value in vars(each).items()
        if name[0] != "_"
    }
    read = {name for each in own for name in _read_names(each)}
    for is_method in (True, False):
        known = {name for base in bases for name in _to_be_written(base, is_method)}
        for name, value in written.items():
            if inspect.isfunction(value) != is_method or name in known | read:
                continue
            close = difflib.get_close_matches(name, known - set(written), n=1, cutoff=_SIMILAR)
            if close:
                place = place_of_function(value) if is_method else ""
                what = (
                    f"{cls.__name__} has {name!r}, which overrides nothing and which nothing"
                    f" reads; the base class calls {close[0]!r}"
                )
                yield place, what, close[0]


def _to_be_written(base: type, is_method: bool) -> set[str]:
    """Names of a base class's overridable methods, or of its class attributes."""
    found = {name for name, value in vars(base).items() if inspect.isfunction(value) == is_method}
    found |= set() if is_method else set(inspect.get_annotations(base))
    return {name for name in found if name[0] != "_"} - _CALLED_FROM_OUTSIDE


def _read_names(cls: type) -> set[str]:
    """Names that its methods read as attributes."""
    return {
        node.attr
        for node in ast.walk(_tree(cls))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def _tree(cls: type) -> ast.AST:
    """Its parsed source; an empty module without source."""
    try:
        return syntax.parsed(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return ast.Module(body=[], type_ignores=[])
