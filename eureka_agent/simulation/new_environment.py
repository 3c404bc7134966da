"""A new environment's folder from the templates beside the built-in ones. Imports no torch."""

from __future__ import annotations

import shutil
from pathlib import Path

from eureka_agent.errors import EnvironmentLoadError, lacks_room, system_reason
from eureka_agent.resources import resource_folder

_TEMPLATES = "_templates"


def kinds() -> tuple[str, ...]:
    """Names of the templates."""
    templates = resource_folder("envs") / _TEMPLATES
    return tuple(sorted(path.name for path in templates.iterdir() if path.is_dir()))


def write_new_environment(folder: Path, kind: str) -> tuple[Path, ...]:
    """Write the template of one of `kinds()`; return its files. Raises EnvironmentLoadError."""
    template = resource_folder("envs") / _TEMPLATES / kind
    sources = [
        path
        for path in sorted(template.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise EnvironmentLoadError(
                f"the folder {str(folder)!r} is not empty, so nothing was written to it",
                "name a new folder",
            )
        try:
            for source in sources:
                path = folder / source.relative_to(template)
                path.parent.mkdir(exist_ok=True)
                with path.open("xb") as file, source.open("rb") as text:
                    shutil.copyfileobj(text, file)
        except BaseException:  # also Ctrl-C; all files in the folder are from here
            _remove(folder, itself=made)
            raise
    except OSError as error:
        raise EnvironmentLoadError(
            f"cannot write the environment to {str(folder)!r}: {system_reason(error)}",
            "free some space, then try again"
            if lacks_room(error)
            else "name a folder that you may write to",
        ) from None
    return tuple(folder / source.relative_to(template) for source in sources)


def _remove(folder: Path, *, itself: bool) -> None:
    """Remove a folder's content, and with `itself` the folder."""
    for path in [folder] if itself else list(folder.iterdir()):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
