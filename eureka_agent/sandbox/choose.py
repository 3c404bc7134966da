"""Which wall stands around generated code."""

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
"""Names of the walls, strongest first."""
AUTO = "auto"
WALL_VARIABLE = "EUREKA_SANDBOX"
"""Environment variable with the wall that `auto` stands for on this machine."""

Say = Callable[[str], None]


def choose_wall(name: str, say: Say | None = None) -> Wall:
    """The wall of that name, ready to start workers; `"auto"`: the one that EUREKA_SANDBOX names,
    or else the strongest one that is there.

    `say`: is told in one line, of `auto` and once a day, what was taken, what that does not cover,
    and why nothing stronger was; and of a Docker image that is built. Raises WallError, with the
    next step, for a name that is none and for a wall that was asked for and cannot be had.
    """
    if name == AUTO:
        name = os.environ.get(WALL_VARIABLE) or AUTO
    if name != AUTO:
        return open_wall(name, say)
    reasons = []
    for candidate in WALLS:
        try:
            wall = open_wall(candidate, say)
        except WallError as error:
            reasons.append(f"not {candidate}: {error.message}")
        else:
            break
    sentence = _sentence(wall, reasons)
    if not _said_today(sentence):
        (say or _to_stderr)(sentence)
    return wall


def open_wall(name: str, say: Say | None = None, build: bool = True) -> Wall:
    """The wall of that name. `say`: is told in one line of a Docker image that is built. Raises
    WallError where it cannot be had.

    Without `build` nothing is downloaded or built, and where that is needed first it raises
    WallNotBuiltError.
    """
    say = say or _to_stderr
    # each wall is imported by itself: the Docker SDK takes a third of a second
    if name == "docker":
        from eureka_agent.sandbox.docker.wall import DockerWall

        docker = DockerWall(say=say)
        if build:
            docker.make_ready()
        else:
            docker.look()
        return docker
    if name == "bubblewrap":
        from eureka_agent.sandbox.bubblewrap_wall import BubblewrapWall, unavailable_reason

        if reason := unavailable_reason():
            raise WallError(
                f"the sandbox 'bubblewrap' cannot be had here: {reason}", "or use another --sandbox"
            )
        return BubblewrapWall()
    if name == "process":
        return ProcessWall()
    raise WallError(f"there is no sandbox {name!r}", did_you_mean(name, (AUTO, *WALLS)))


def _sentence(wall: Wall, reasons: list[str]) -> str:
    lacking = f" ({'; '.join(reasons)})" if reasons else ""
    return f"sandbox: {wall.name}, which does not cover {'; '.join(wall.does_not_cover)}{lacking}"


def _said_today(sentence: str) -> bool:
    """True where this user was told the same today; from now on he was. False where that cannot be
    kept."""
    today = f"{datetime.now():%Y-%m-%d} {sentence}\n"
    with suppress(OSError, RuntimeError, UnicodeDecodeError):  # RuntimeError: a user without a home
        marker = state_folder() / "wall-note"
        if marker.is_file() and marker.read_text(encoding="utf-8") == today:
            return True
        marker.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        marker.write_text(today, encoding="utf-8")
    return False


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
