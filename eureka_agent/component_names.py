"""What a reward's components may be called: their names stand in tables, reports and other models' prompts."""

from __future__ import annotations

LONGEST_NAME = 80
"""Characters of a component's name."""
MOST_COMPONENTS = 100
"""That a reward may have: each is a curve, and a row in tables and prompts."""


def component_fault(name: str) -> tuple[str, str] | None:
    """Message and hint for a name that cannot stand there; None for one that can."""
    if len(name) <= LONGEST_NAME and name.isprintable():
        return None
    shown = f"{name[:LONGEST_NAME]!r}, expected at most {LONGEST_NAME} visible characters in one line"
    return f"a component's name is {shown}", "use names such as 'forward'"
