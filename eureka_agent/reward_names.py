"""Names that Python source of a reward may not give to an argument. No torch."""

from __future__ import annotations

import builtins
import keyword
import unicodedata

BUILTINS = frozenset(
    """abs all any bool dict divmod enumerate filter float frozenset int isinstance len list map max
    min pow range reversed round set slice sorted str sum tuple zip True False None ValueError
    TypeError RuntimeError""".split()  # noqa: SIM905
)
"""Built-ins that a reward may use, and whose names it may give to its own values."""
ALL_BUILTINS = frozenset(dir(builtins))
MODULES_THERE = ("torch", "math")
"""Modules that a reward has without an import."""


def is_argument_name(name: object) -> bool:
    """True for a name that Python and the critic take for an argument of a reward."""
    return (
        isinstance(name, str)
        and name.isidentifier()
        and unicodedata.normalize("NFKC", name) == name  # else Python reads another name
        and not keyword.iskeyword(name)
        and not name.startswith("__")
        and name not in MODULES_THERE
        and name not in ALL_BUILTINS - BUILTINS
    )
