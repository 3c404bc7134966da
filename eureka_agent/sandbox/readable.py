"""Folders of the user that a worker behind a wall reads: from `--env` and PYTHONPATH."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import eureka_agent
from eureka_agent.errors import WallError


def package_parent() -> Path:
    """Folder for PYTHONPATH from which this package can be imported."""
    return Path(eureka_agent.__file__).resolve().parent.parent


def python_path(variables: Mapping[str, str]) -> list[Path]:
    """Existing folders of PYTHONPATH, without this package's parent, which may hold runs."""
    parts = [
        Path(part).absolute() for part in variables.get("PYTHONPATH", "").split(os.pathsep) if part
    ]
    parent = package_parent()
    return [part for part in dict.fromkeys(parts) if part.is_dir() and part.resolve() != parent]


def named_folders(readable: Iterable[Path], variables: Mapping[str, str]) -> list[Path]:
    """Folders of `Limits.readable` and PYTHONPATH. Raises WallError for the root folder."""
    folders = [*python_path(variables), *(path.absolute() for path in readable)]
    for path in folders:
        real = path.resolve()  # a link may lead there
        if real == real.parent:
            raise WallError(
                f"the sandbox will not show a worker the folder {str(path)!r}",
                "name a smaller folder: in PYTHONPATH, or with --env",
            )
    return folders
