"""Which wall stands around generated code."""

from __future__ import annotations

from eureka_agent.errors import WallError, did_you_mean
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.sandbox.wall import Wall

WALLS = ("process",)
"""Names of the walls, strongest first."""


def choose_wall(name: str) -> Wall:
    """The wall of that name; `"auto"`: the strongest one that is there. Raises WallError for a name that is none."""
    if name in ("auto", "process"):
        return ProcessWall()
    raise WallError(f"there is no sandbox {name!r}", did_you_mean(name, ("auto", *WALLS)))
