"""One search's share of a fleet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class Share:
    """What one search gets of a fleet that it shares with others."""

    weight: float = 1.0
    """Env steps that it gets, relative to other searches that have jobs to train."""
    held: bool = False
    """True while none of its jobs is to start; those under way go on."""
    turn: float = 0.0
    """Env steps of its trainings so far, for its weight (`fleet/turns.py`)."""
