"""Names of a reward's components: they stand in tables, reports and other models' prompts."""

from __future__ import annotations

from collections.abc import Collection

LONGEST_NAME = 80
"""Characters of a component's name."""
MOST_COMPONENTS = 100
"""Components of a reward: each is a curve, and a row in tables and prompts."""


def component_fault(name: str) -> tuple[str, str] | None:
    """Message and hint for an invalid name; None for a valid one."""
    if len(name) <= LONGEST_NAME and name.isprintable() and name.strip():
        return None
    expected = f"expected one line of 1 to {LONGEST_NAME} visible characters"
    message = f"a component's name is {name[:LONGEST_NAME]!r}, {expected}"
    return message, "use names such as 'forward'"


def changed_names_fault(first: Collection[str], now: Collection[str]) -> tuple[str, str] | None:
    """Message and hint for components other than the first call's; None for the same ones."""
    changes = {
        "new": [name for name in now if name not in first],
        "missing": [name for name in first if name not in now],
    }
    told = [
        f"{', '.join(map(repr, names[:3]))}{', …' if len(names) > 3 else ''} {what}"
        for what, names in changes.items()
        if names
    ]
    if not told:
        return None
    return (
        f"the components are not those of the first call: {' and '.join(told)}",
        "return the same names in every call, zeros where a component has no part",
    )
