"""Files that a person names on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eureka_agent.errors import EnvironmentLoadError, system_reason


def read_reward_file(path: Path) -> str:
    """Source of the reward function in a file. Raises EnvironmentLoadError where it has none."""
    reason = "the file is empty"
    try:
        source = path.read_text(encoding="utf-8")
        if source.strip():
            return source
    except OSError as error:
        reason = system_reason(error)
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8 ({error.reason} at byte {error.start})"
    raise EnvironmentLoadError(
        f"cannot read the reward function {str(path)!r}: {reason}",
        "name a Python file that defines compute_reward",
    )


def reward_files(paths: Sequence[Path]) -> list[Path]:
    """Files and folders' Python files, each once. Raises EnvironmentLoadError without one."""
    found: list[Path] = []
    for path in paths:
        files = sorted(path.glob("*.py")) if path.is_dir() else [path]
        if not files:
            hint = "name files with compute_reward, or their folder"
            raise EnvironmentLoadError(f"the folder {str(path)!r} has no Python file", hint)
        found += files
    return list(dict.fromkeys(found))


def write_reward_file(path: Path, source: str) -> None:
    """Write a reward function's source. Raises EnvironmentLoadError where that fails."""
    try:
        path.write_text(source, encoding="utf-8")
    except OSError as error:
        raise EnvironmentLoadError(
            f"cannot write the repaired reward function {str(path)!r}: {system_reason(error)}",
            "leave out --fix, or make it writable",
        ) from None
