"""Files that a person names on the command line."""

from __future__ import annotations

from pathlib import Path

from eureka_agent.errors import EnvironmentLoadError


def read_reward_file(path: Path) -> str:
    """Source of the reward function in a file. Raises EnvironmentLoadError where it has none."""
    what, hint = f"cannot read the reward function {str(path)!r}", "name a Python file that defines compute_reward"
    try:
        source = path.read_text(encoding="utf-8")
    except OSError as error:
        raise EnvironmentLoadError(f"{what}: {error.strerror}", hint) from None
    except UnicodeDecodeError as error:
        raise EnvironmentLoadError(f"{what}: it is not UTF-8 ({error.reason} at byte {error.start})", hint) from None
    if not source.strip():
        raise EnvironmentLoadError(f"{what}: the file is empty", hint)
    return source
