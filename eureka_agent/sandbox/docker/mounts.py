"""Folders of the host that a worker reads, mounted read-only under the same paths."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import eureka_agent
from eureka_agent.errors import WallError
from eureka_agent.resources import resource_folder
from eureka_agent.sandbox.readable import named_folders, package_parent

_MOST_COPIED_BYTES = 1 << 30
_COPIED_NOT = shutil.ignore_patterns("__pycache__")


@dataclass(frozen=True)
class Folder:
    """A folder in the container, and the place of its content."""

    inside: Path
    outside: Path


def readable_folders(readable: Iterable[Path], variables: Mapping[str, str]) -> list[Path]:
    """All folders that a worker reads, without nested ones. Raises WallError as `named_folders`."""
    package = package_parent() / eureka_agent.__name__
    wanted = {package, resource_folder("envs"), *named_folders(readable, variables)}
    return sorted(path for path in wanted if not any(parent in wanted for parent in path.parents))


def prepare(paths: Iterable[Path], copies: Path) -> list[Folder]:
    """Prepare the folders to mount. Files that only their owner may read are copied to `copies`,
    readable for all, as the worker runs as nobody. Raises WallError."""
    folders = []
    for index, path in enumerate(paths):
        outside = path.resolve()
        size = _closed_size(outside)
        if size is not None:
            if size > _MOST_COPIED_BYTES:
                raise WallError(
                    f"the folder {str(path)!r} has files that only you may read, and is too large"
                    " to be copied",
                    f"let the worker read it: chmod -R a+rX {str(path)!r}",
                )
            outside = _copy(outside, copies / f"readable-{index}")
        folders.append(Folder(path, outside))
    return folders


def _closed_size(root: Path) -> int | None:
    """None for a folder that everybody may read; else its size in bytes."""
    closed = False
    size = 0
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in (".", *files):
            try:
                # of a link itself: its target is not mounted
                status = os.lstat(os.path.join(folder, name))
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode):
                closed |= status.st_mode & 0o5 != 0o5
            elif stat.S_ISREG(status.st_mode):
                size += status.st_size
                closed |= not status.st_mode & 0o4
    return size if closed else None


def _copy(source: Path, target: Path) -> Path:
    try:
        shutil.copytree(source, target, symlinks=True, ignore=_COPIED_NOT)
        for folder, _, files in os.walk(target):
            os.chmod(folder, 0o755)
            for name in files:
                path = os.path.join(folder, name)
                if not os.path.islink(path):
                    os.chmod(path, 0o644)
    except (OSError, shutil.Error) as error:
        raise WallError(
            f"cannot copy the folder {str(source)!r} for a worker: {error}",
            "let it be read: chmod -R a+rX",
        ) from None
    return target
