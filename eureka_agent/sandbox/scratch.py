"""Files that a worker left in its scratch folder: nothing that it names is believed before it was looked at."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

from eureka_agent.errors import EurekaError
from eureka_agent.worker.messages import CURRENT_JOB_BYTES, CURRENT_JOB_FILE

MAX_FILE_BYTES = 256 << 20
_STDERR_TAIL_BYTES = 4096


class ScratchFileError(EurekaError):
    """A file named by a worker that is not a plain file of its scratch folder."""


def checked_file(scratch: Path, name: str, max_bytes: int = MAX_FILE_BYTES) -> Path:
    """The path of a file named by a worker.

    Raises ScratchFileError for a name that leaves the folder, a link anywhere on the way, something that is no plain file, and a file over `max_bytes`.
    """
    parts = PurePosixPath(name).parts
    if not parts or "\0" in name or PurePosixPath(name).is_absolute() or ".." in parts:
        raise _refused(name, "expected a name within the scratch folder")
    path = scratch
    for part in parts:
        path = path / part
        try:
            status = path.lstat()
        except OSError as error:
            raise _refused(name, f"{error.strerror or error}") from None
        if stat.S_ISLNK(status.st_mode):
            raise _refused(name, "it is a link, expected a plain file")
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        raise _refused(name, "expected a plain file with one name")
    if status.st_size > max_bytes:
        raise _refused(name, f"it has {status.st_size} bytes, expected at most {max_bytes}")
    return path


def take_file(scratch: Path, name: str, destination: Path, max_bytes: int = MAX_FILE_BYTES) -> Path:
    """Copy a file named by a worker out of its reach. The same errors as `checked_file`; returns `destination`."""
    path = checked_file(scratch, name, max_bytes)
    try:
        # the worker may swap the file after it was looked at: do not follow a link, do not read past the bound
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise _refused(name, f"{error.strerror or error}") from None
    with open(descriptor, "rb") as source:
        data = source.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise _refused(name, f"it grew over {max_bytes} bytes")
    destination.parent.mkdir(parents=True, exist_ok=True)
    destination.write_bytes(data)
    return destination


def stderr_tail(path: Path) -> str:
    """The last lines that a worker wrote to standard error; empty when there are none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _STDERR_TAIL_BYTES))
            return file.read(_STDERR_TAIL_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""


def job_under_way(scratch: Path) -> str:
    """The job whose generated code ran when the worker ended; empty when none did."""
    try:
        with open(os.open(scratch / CURRENT_JOB_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return file.read(CURRENT_JOB_BYTES).rstrip(b"\0").decode(errors="replace")
    except OSError:
        return ""


def _refused(name: str, why: str) -> ScratchFileError:
    return ScratchFileError(f"a worker named the file {name!r}: {why}", "do not trust what this worker wrote")
