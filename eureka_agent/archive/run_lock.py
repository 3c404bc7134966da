"""Lock of a run folder: one process works on a run at a time."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from eureka_agent.archive.safe_files import open_plain
from eureka_agent.archive.storage_errors import storage_errors
from eureka_agent.errors import RunFolderError
from eureka_agent.invocation import resume_command

LOCK_FILE = ".lock"
_LOCK_CHARACTERS = 20


@contextmanager
def locked(
    folder: Path, what: str = "run", next_step: str = "", name: str = LOCK_FILE
) -> Iterator[None]:
    """Hold the lock of a run, or of another folder, in the block. The system releases it when the
    process ends. `what` and `next_step`: for the error; `name`: of the lock."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    with storage_errors(folder):
        handle = os.fdopen(open_plain(folder / name, flags), "a+")
    with handle:
        if not _locks(handle):
            handle.seek(0)
            raise RunFolderError(
                f"the {what} {folder.name!r} is being worked on by process"
                f" {handle.read(_LOCK_CHARACTERS).strip() or 'unknown'}",
                next_step or f"wait for it, or stop it and `{resume_command(folder)}`",
            )
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        yield


def _locks(handle: IO[str]) -> bool:
    """Take the lock; wait for up to a second, since `is_held` may hold it for a moment."""
    deadline = time.monotonic() + 1.0
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        else:
            return True


def is_held(folder: Path) -> bool:
    """True while a process works on the run."""
    try:
        with os.fdopen(open_plain(folder / LOCK_FILE)) as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
