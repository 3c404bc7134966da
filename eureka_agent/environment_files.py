"""Files of an environment and its tasks, read without importing them, and their fingerprints."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath

from eureka_agent import syntax
from eureka_agent.cards import CARDS_FOLDER
from eureka_agent.command_file import is_command, read_command
from eureka_agent.errors import EnvironmentLoadError, system_reason
from eureka_agent.records import MOST_FILES
from eureka_agent.task import HUMAN_REWARD, SPARSE_REWARD

ENVIRONMENT_FILE = "env.py"
TASKS_FOLDER = "tasks"
SHARED_FOLDER = "_shared"
"""Folder of files that the environments beside it import as their own."""
_IMPORT = re.compile(r"^\s*(?:from|import)\b.*$", re.MULTILINE)


def source_folders(folder: Path) -> list[Path]:
    """An environment's folder, and the shared one beside it where there is one."""
    shared = folder.resolve().parent / SHARED_FOLDER
    return [folder, shared] if shared.is_dir() and shared != folder.resolve() else [folder]


def folder_files(folder: Path) -> dict[str, Path]:
    """All files by relative name, with those of the shared folder whose names they import; without
    caches, hidden ones, difficulty cards and virtual environments. Raises EnvironmentLoadError for
    a link that leads out of the folder, and a name that is not UTF-8."""
    found = _files_in(folder)
    offered: dict[str, Path] = {}
    for shared in source_folders(folder)[1:]:
        offered |= _files_in(shared)
    words = _imported_words(found.values())
    while chosen := [key for key in offered if re.split(r"[/.]", key)[0] in words]:
        files = {f"../{SHARED_FOLDER}/{key}": offered.pop(key) for key in chosen}
        found |= files
        words |= _imported_words(files.values())
    return found


def _imported_words(paths: Iterable[Path]) -> set[str]:
    """Words of the import statements in Python files."""
    texts = [
        path.read_text(encoding="utf-8", errors="replace") for path in paths if path.suffix == ".py"
    ]
    lines = [line for text in texts for line in _IMPORT.findall(text)]
    return {word for line in lines for word in re.findall(r"\w+", line)}


def _files_in(folder: Path) -> dict[str, Path]:
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
    needed = {name, "__init__", *_imported_words(code)}
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


def fingerprints(folder: Path, task: str) -> tuple[str, dict[str, str]]:
    """Fingerprint of a task's files, and a short one of each by name, or none for more than
    `MOST_FILES`. Raises EnvironmentLoadError for files that cannot be read."""
    try:
        files = relevant_files(folder, task, _rewards(folder, task))
        each = {name: fingerprint_of({name: path})[:16] for name, path in files.items()}
        return fingerprint_of(files), each if len(files) <= MOST_FILES else {}
    except OSError as error:
        raise EnvironmentLoadError(
            f"the environment {str(folder)!r} cannot be read: {system_reason(error)}",
            "look at the file's permissions",
        ) from None


def _rewards(folder: Path, task: str) -> frozenset[str]:
    """Paths of the rewards of one of the folder's tasks."""
    if is_command(folder):
        told = read_command(folder).tasks[task]
        return frozenset({told.human_reward, told.sparse_reward})
    source = folder / TASKS_FOLDER / f"{task}.py"
    source = source if source.is_file() else folder / ENVIRONMENT_FILE
    return rewards_of(texts_of_calls(parsed(source)))


def rewards_of(keywords: Mapping[str, str]) -> frozenset[str]:
    """Paths of a task's rewards, by the keywords of its `Task(...)`."""
    return frozenset(
        {
            keywords.get("human_reward", HUMAN_REWARD),
            keywords.get("sparse_reward", SPARSE_REWARD),
        }
    )


def parsed(path: Path) -> ast.Module:
    """Syntax tree of a file. Raises EnvironmentLoadError."""
    try:
        return syntax.parsed(path.read_bytes())
    except OSError as error:
        raise EnvironmentLoadError(
            f"cannot read {str(path)!r}: {system_reason(error)}", "look at the environment's folder"
        ) from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise EnvironmentLoadError(
            f"{str(path)!r}{line} is no Python: {getattr(error, 'msg', error)}",
            "mend the file, or take its environment away",
        ) from None


def texts_of_calls(module: ast.Module) -> dict[str, str]:
    """Texts among the keywords of the file's calls, of which `Task(...)` is one."""
    return {
        str(node.arg): str(node.value.value)
        for node in ast.walk(module)
        if isinstance(node, ast.keyword)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
