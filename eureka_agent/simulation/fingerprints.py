"""Files and fingerprints on which results of an environment and its tasks depend."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

from eureka_agent.cards import CARDS_FOLDER
from eureka_agent.errors import EnvironmentLoadError

_IMPORT = re.compile(r"^\s*(?:from|import)\b.*$", re.MULTILINE)


def folder_files(folder: Path) -> dict[str, Path]:
    """All files by relative name, without caches, hidden ones, difficulty cards and virtual
    environments. Raises EnvironmentLoadError for a link that leads out of the folder, and a name
    that is not UTF-8."""
    found = {}
    root = folder.resolve()
    virtual = {path.parent for path in folder.glob("*/pyvenv.cfg")}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
        if hidden or parts[0] == CARDS_FOLDER or folder / parts[0] in virtual:
            continue
        try:
            "/".join(parts).encode()
        except UnicodeEncodeError:
            raise EnvironmentLoadError(
                f"the name of the file {str(path)!r} is not UTF-8", "rename the file"
            ) from None
        if path.is_symlink() and path.exists() and not path.resolve().is_relative_to(root):
            raise EnvironmentLoadError(
                f"{str(path)!r} is a link to {str(path.resolve())!r}, outside of the environment's"
                " folder",
                "copy what it leads to into the folder, or take the link out: results depend on"
                " what lies in the folder, and workers get that alone",
            )
        if path.is_file():
            found["/".join(parts)] = path
    return found


def relevant_files(folder: Path, name: str, own: Collection[str]) -> dict[str, Path]:
    """Files that results of a task may depend on: without other tasks and their rewards.
    `own`: paths of the task's rewards in the folder."""
    files = folder_files(folder)
    rewards = {str(PurePosixPath(reward).parent) for reward in own}
    tasks = {f"tasks/{path.name}": path.stem for path in (folder / "tasks").glob("*.py")}
    code = [
        path
        for key, path in files.items()
        if path.suffix == ".py" and (key not in tasks or tasks[key] == name)
    ]
    imports = [
        line
        for path in code
        for line in _IMPORT.findall(path.read_text(encoding="utf-8", errors="replace"))
    ]
    needed = {name, "__init__", *(word for line in imports for word in re.findall(r"\w+", line))}
    return {
        key: path
        for key, path in files.items()
        if tasks.get(key, name) in needed
        and not (
            path.suffix == ".py" and str(PurePosixPath(key).parent) in rewards and key not in own
        )
    }


def fingerprint_of(files: Mapping[str, Path]) -> str:
    """SHA-256 of names and contents."""
    digest = hashlib.sha256()
    for name, path in files.items():
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def task_fingerprint(fingerprint: str, files: Mapping[str, Path]) -> str:
    """An environment's fingerprint, of these files alone; a written fitness stays in it."""
    if not files:
        return fingerprint
    _, plus, written = fingerprint.partition("+")
    return f"{fingerprint_of(files)}{plus}{written}"
