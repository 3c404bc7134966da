"""Files that a person names on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eureka_agent.errors import EnvironmentLoadError, system_reason


def read_reward_file(path: Path) -> str:
    """Source of the reward function in a file. Raises EnvironmentLoadError where it has none."""
    what, hint = (
        f"cannot read the reward function {str(path)!r}",
        "name a Python file that defines compute_reward",
    )
    try:
        source = path.read_text(encoding="utf-8")
    except OSError as error:
        raise EnvironmentLoadError(f"{what}: {system_reason(error)}", hint) from None
    except UnicodeDecodeError as error:
        raise EnvironmentLoadError(
            f"{what}: it is not UTF-8 ({error.reason} at byte {error.start})", hint
        ) from None
    if not source.strip():
        raise EnvironmentLoadError(f"{what}: the file is empty", hint)
    return source


def reward_files(paths: Sequence[Path]) -> list[Path]:
    """The files named, and the Python files of the folders named, each once. Raises
    EnvironmentLoadError for a folder without one."""
    found: list[Path] = []
    for path in paths:
        files = sorted(path.glob("*.py")) if path.is_dir() else [path]
        if not files:
            raise EnvironmentLoadError(
                f"the folder {str(path)!r} has no Python file",
                "name files with compute_reward, or their folder",
            )
        found += files
    return list(dict.fromkeys(found))


def write_reward_file(path: Path, source: str) -> None:
    """Put a reward function's source into its file. Raises EnvironmentLoadError where that cannot
    be written."""
    try:
        path.write_text(source, encoding="utf-8")
    except OSError as error:
        raise EnvironmentLoadError(
            f"cannot write the repaired reward function {str(path)!r}: {system_reason(error)}",
            "leave out --fix, or make it writable",
        ) from None
