"""Files that a person names on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eureka_agent.errors import EnvironmentLoadError, EurekaError, system_reason


def read_text(path: Path, what: str, hint: str, error: type[EurekaError]) -> str:
    """Text of a file that a person names. Raises `error`."""
    try:
        return path.read_text(encoding="utf-8-sig")  # as Python reads a source
    except OSError as fault:
        reason = system_reason(fault)
    except UnicodeDecodeError as fault:
        reason = f"it is not UTF-8 ({fault.reason} at byte {fault.start})"
    raise error(f"cannot read {what} {str(path)!r}: {reason}", hint)


def read_reward_file(path: Path) -> str:
    """Source of the reward function in a file. Raises EnvironmentLoadError where it has none."""
    what, hint = "the reward function", "name a Python file that defines compute_reward"
    source = read_text(path, what, hint, EnvironmentLoadError)
    if not source.strip():
        raise EnvironmentLoadError(f"cannot read {what} {str(path)!r}: the file is empty", hint)
    return source


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
