"""Folders of data files, in a clone or in a wheel, and of the user's state."""

from __future__ import annotations

import os
from pathlib import Path

STATE_VARIABLE = "XDG_STATE_HOME"
_PACKAGE = Path(__file__).resolve().parent


def resource_folder(name: str) -> Path:
    """Folder `envs`, `prompts` or `sandboxes`."""
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def state_folder() -> Path:
    """`$XDG_STATE_HOME/eureka_agent`, or `~/.local/state/eureka_agent`; it need not exist. Raises
    RuntimeError for a user without a home."""
    given = os.environ.get(STATE_VARIABLE, "")
    state = Path(given) if os.path.isabs(given) else Path.home() / ".local" / "state"
    return state / "eureka_agent"
