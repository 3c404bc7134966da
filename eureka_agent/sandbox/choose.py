"""Choice of the wall around generated code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from eureka_agent.errors import WallError, did_you_mean
from eureka_agent.resources import state_folder
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.sandbox.wall import Wall

WALLS = ("docker", "bubblewrap", "process")
AUTO = "auto"
WALL_VARIABLE = "EUREKA_SANDBOX"
"""Environment variable with the wall for `auto` on this machine."""


def choose_wall(name: str, say: Callable[[str], None] | None = None) -> Wall:
    """Open the named wall; `"auto"`: the one in EUREKA_SANDBOX, else the strongest available, with
    a line to `say` once a day on the wall, its gaps and why it is no stronger one. Raises
    WallError, with the next step, for an unknown name or a wall that is not available."""
    if name == AUTO:
        name = os.environ.get(WALL_VARIABLE) or AUTO
    if name != AUTO:
        return open_wall(name)
    reasons = []
    for candidate in WALLS:
        try:
            wall = open_wall(candidate)
        except WallError as error:
            reasons.append(f"not {candidate}: {error.message}")
        else:
            break
    lacking = f" ({'; '.join(reasons)})" if reasons else ""
    gaps = "; ".join(wall.does_not_cover)
    sentence = f"sandbox: {wall.name}, which does not cover {gaps}{lacking}"
    if not _said_today(sentence):
        print(sentence, file=sys.stderr, flush=True) if say is None else say(sentence)
    return wall


def open_wall(name: str) -> Wall:
    """Open the named wall. Raises WallError where it is not available."""
    # each wall is imported by itself: the Docker SDK takes a third of a second
    if name == "docker":
        from eureka_agent.sandbox.docker.wall import DockerWall

        return DockerWall()
    if name == "bubblewrap":
        from eureka_agent.sandbox.bubblewrap_wall import BubblewrapWall, unavailable_reason

        if reason := unavailable_reason():
            what = f"the sandbox 'bubblewrap' cannot be had here: {reason}"
            raise WallError(what, "or use another --sandbox")
        return BubblewrapWall()
    if name == "process":
        return ProcessWall()
    raise WallError(f"there is no sandbox {name!r}", did_you_mean(name, (AUTO, *WALLS)))


def _said_today(sentence: str) -> bool:
    """True where this user was told the same today, which is noted; False where that fails."""
    today = f"{datetime.now():%Y-%m-%d} {sentence}\n"
    with suppress(OSError, RuntimeError, UnicodeDecodeError):  # RuntimeError: a user without a home
        marker = state_folder() / "wall-note"
        if marker.is_file() and marker.read_text(encoding="utf-8") == today:
            return True
        marker.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        marker.write_text(today, encoding="utf-8")
    return False
