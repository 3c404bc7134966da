"""Files that a worker left in its scratch folder: nothing that it names is believed before it was looked at."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from eureka_agent.archive.database import storage_errors
from eureka_agent.errors import EurekaError
from eureka_agent.sandbox.wall import STDERR_NAME
from eureka_agent.worker.messages import CURRENT_JOB_BYTES, CURRENT_JOB_FILE

MAX_FILE_BYTES = 256 << 20
_STDERR_TAIL_BYTES = 4096


class ScratchFileError(EurekaError):
    """A file named by a worker that is not a plain file of its scratch folder."""


def take_file(scratch: Path, name: str, destination: Path, max_bytes: int = MAX_FILE_BYTES) -> Path:
    """Copy a file named by a worker out of its reach. Returns `destination`.

    Raises ScratchFileError for a name that is more than a file's name, a link, anything else than a plain file with one name, and one over
    `max_bytes`; EurekaError when the copy cannot be written.
    """
    if name in ("", ".", "..") or "/" in name or os.sep in name or "\0" in name:
        raise _refused(name, "expected the plain name of a file in the scratch folder")
    try:
        descriptor = _open_plain(scratch / name)
    except OSError as error:
        raise _refused(name, f"{error.strerror or error}") from None
    with open(descriptor, "rb") as source:
        data = source.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise _refused(name, f"it has more than {max_bytes} bytes")
    with storage_errors(destination.parent):
        destination.parent.mkdir(parents=True, exist_ok=True)
        draft = destination.with_name(f".{destination.name}.draft-{os.getpid()}")
        draft.write_bytes(data)
        os.replace(draft, destination)  # a file that is there is whole
    return destination


def stderr_tail(scratch: Path) -> str:
    """The last lines that a worker wrote to standard error; empty when there are none."""
    try:
        with open(_open_plain(scratch / STDERR_NAME), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _STDERR_TAIL_BYTES))
            return file.read(_STDERR_TAIL_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""


def job_under_way(scratch: Path) -> str:
    """The job whose generated code ran when the worker ended; empty when none did."""
    try:
        with open(_open_plain(scratch / CURRENT_JOB_FILE), "rb") as file:
            return file.read(CURRENT_JOB_BYTES).rstrip(b"\0").decode(errors="replace")
    except OSError:
        return ""


def _open_plain(path: Path) -> int:
    """A file descriptor, looked at after it was opened, so that the worker cannot swap the file in between. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe must not block
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(descriptor)
        raise OSError(0, "expected a plain file with one name")
    return descriptor


def _refused(name: str, why: str) -> ScratchFileError:
    return ScratchFileError(f"a worker named the file {name!r}: {why}", "do not trust what this worker wrote")
