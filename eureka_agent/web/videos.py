"""Videos of a run: the files of known names that lie in it."""

from __future__ import annotations

import re
from pathlib import Path

from eureka_agent.archive.artefacts import BEST, GIF, VIDEO, attempt_folder
from eureka_agent.archive.safe_files import inside
from eureka_agent.errors import RunFolderError

NAMES = {VIDEO: "video/mp4", GIF: "image/gif"}
_CLIP = re.compile(r"clip-\d{1,6}\.mp4")
"""Clips of a refinement; a page of it names them."""


def media_type(name: str) -> str:
    """Media type of a video's file; empty for a name that no video has."""
    return NAMES.get(name) or (NAMES[VIDEO] if _CLIP.fullmatch(name) else "")


def video_file(run: Path, place: str, name: str) -> Path | None:
    """File of a video; None where there is none. `place`: an attempt, or `BEST`. Raises
    RunFolderError for a path that leaves the run."""
    if not media_type(name):
        raise RunFolderError(
            f"{name[:100]!r} is no video of a run", f"expected {' or '.join(NAMES)}"
        )
    folder = inside(run, BEST) if place == BEST else attempt_folder(run, place)
    file = inside(folder, name)
    return file if file.is_file() else None


def videos_in(run: Path, place: str) -> tuple[str, ...]:
    """Names of the videos of an attempt, or of the best one."""
    return tuple(name for name in NAMES if video_file(run, place, name) is not None)
