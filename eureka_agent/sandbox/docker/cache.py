"""Folder of what this package keeps for a person: what `eureka sandbox build` was told, the markers
of drivers."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eureka_agent.errors import WallError, system_reason


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/eureka-agent`, or `~/.cache/eureka-agent`. It need not be there."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    # the standard says that a relative path is to be ignored
    root = Path(given) if os.path.isabs(given) else Path(os.path.expanduser("~")) / ".cache"
    return root / "eureka-agent"


@contextmanager
def cache_errors() -> Iterator[None]:
    """Turn what the system says of the cache into one line. Raises WallError."""
    try:
        yield
    except OSError as error:
        where = error.filename or str(cache_folder())
        raise WallError(
            f"cannot use the cache: {where!r}: {system_reason(error)}",
            "free disk space there, or name another folder: XDG_CACHE_HOME=/path",
        ) from None


@contextmanager
def cache_lock(name: str) -> Iterator[None]:
    """Held by one process at a time; the others wait. Raises WallError when the cache cannot be
    written."""
    with cache_errors():
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with cache_errors():  # a network's file system may have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
