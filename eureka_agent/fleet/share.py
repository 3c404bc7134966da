"""One search's share of a fleet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class Share:
    """Share of one search in a fleet that others use too."""

    held: bool = False
    """True while none of its jobs is to start; those under way go on."""
    turn: int = 0
    """Env steps of its trainings so far (`fleet/turns.py`)."""
