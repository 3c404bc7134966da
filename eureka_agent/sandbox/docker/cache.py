"""The user's cache folder: requirements of `eureka sandbox build`, markers of drivers."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eureka_agent.errors import WallError, system_reason


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/eureka-agent`, or `~/.cache/eureka-agent`; it may be missing."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    # the standard says to ignore a relative path
    root = Path(given) if os.path.isabs(given) else Path(os.path.expanduser("~")) / ".cache"
    return root / "eureka-agent"


@contextmanager
def cache_errors() -> Iterator[None]:
    """Turn system errors of the cache into WallError."""
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
    """Hold a lock among processes. Raises WallError where the cache is not writable."""
    with cache_errors():
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with cache_errors():  # a network file system may have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
