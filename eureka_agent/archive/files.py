"""Writes to a run folder: atomic (under another name, then renamed), by one process at a time, and
with the errors of the disk and of SQLite in plain words."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from eureka_agent.archive.safe_files import copy_plain, open_plain
from eureka_agent.errors import DiskFullError, RunFolderError, lacks_room, system_reason
from eureka_agent.invocation import resume_command


def write_text(path: Path, text: str) -> None:
    """Write a file atomically."""
    write_file(path, lambda draft: draft.write_text(text, encoding="utf-8"))


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Fill a draft by `write` and rename it. Raises RunFolderError on a full disk."""
    # unique, since two searches may write one entry of the cache at once
    draft = path.with_name(f".{path.name}.draft-{os.getpid()}-{threading.get_ident()}")
    with storage_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # created here, so that `write` does not follow somebody's link
            draft.unlink(missing_ok=True)
            os.close(open_plain(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            write(draft)
            os.replace(draft, path)
        except BaseException:  # also one of `write`, and Ctrl-C
            draft.unlink(missing_ok=True)
            raise


def copy_file(source: Path, path: Path) -> None:
    """Copy a file atomically."""
    write_file(path, lambda draft: copy_plain(source, draft))


def dump_json(value: object) -> str:
    """JSON in the form of a run folder's files."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


FILE_NAME = "archive.sqlite"
_FULL_BYTES = 256 * 1024
"""Free bytes below which a disk counts as full: SQLite needs room for pages and a journal."""
_REASONS = {
    "file is not a database": "it is no SQLite database",
    "database disk image is malformed": "its content is damaged",
    "database or disk is full": "the disk is full",
    "disk I/O error": "the disk cannot be read or written",
    "unable to open database file": "it cannot be opened",
    "attempt to write a readonly database": "it can only be read",
    "database is locked": "another program holds it",
}
"""SQLite's messages in plain words."""
CLOSE_IT = "close that program, such as a backup or a database viewer; nothing is lost"


def rest_of_run(run: Path) -> str:
    """Hint on the rest of a run whose archive is lost; empty for a folder that is no run."""
    if not (run / "settings.yaml").is_file():
        return ""
    paths = [run / name for name in ("report.md", "report.html", "best", "attempts")]
    readable = ", ".join(str(path) for path in paths if path.exists())
    rest = f"what can still be read: {readable}" if readable else "nothing else is left to read"
    return f"put a copy of it back if you have one: nothing else restores the run; {rest}"


@contextmanager
def storage_errors(folder: Path) -> Iterator[None]:
    """Turn errors of the disk under `folder` into a RunFolderError that says how to resume."""
    try:
        yield
    except IsADirectoryError as error:
        path = str(error.filename2 or error.filename)  # the target of a rename
        raise RunFolderError(
            f"cannot write {path!r}: it is a folder, expected a file", "name a file"
        ) from error
    except (OSError, sqlite3.Error) as error:
        raise storage_error(folder, error) from error


def storage_error(folder: Path, error: OSError | sqlite3.Error) -> RunFolderError:
    """Error of writing to `folder`, or to the archive in it."""
    reason = system_reason(error) if isinstance(error, OSError) else reason_of(error)
    full = is_full(error, folder)
    hint = "free some space" if full else "check the folder's permissions and the disk"
    hint = CLOSE_IT if is_busy(error) else hint
    folders = (folder, *folder.parents)
    run = next((each for each in folders if (each / FILE_NAME).is_file()), None)
    then = "try again" if run is None else f"`{resume_command(run)}`"
    message = f"cannot write to {str(run or folder)!r}: {reason}"
    return (DiskFullError if full else RunFolderError)(message, f"{hint}, then {then}")


def reason_of(error: Exception) -> str:
    """SQLite's error in plain words."""
    return _REASONS.get(str(error), str(error))


def is_busy(error: BaseException) -> bool:
    """True for an error of a database that another program reads or writes just now."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_full(error: Exception, folder: Path) -> bool:
    """True for an error from a disk without room."""
    if is_busy(error):
        return False
    if isinstance(error, OSError) and lacks_room(error):
        return True
    if isinstance(error, sqlite3.Error) and "full" in str(error):
        return True
    # SQLite reports a full disk or an I/O error, depending on the file it happens to
    with suppress(OSError):
        return shutil.disk_usage(folder).free < _FULL_BYTES
    return False


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
        deadline = time.monotonic() + 1.0  # `is_held` may hold it for a moment
        while not _lock(handle, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                handle.seek(0)
                raise RunFolderError(
                    f"the {what} {folder.name!r} is being worked on by process"
                    f" {handle.read(_LOCK_CHARACTERS).strip() or 'unknown'}",
                    next_step or f"wait for it, or stop it and `{resume_command(folder)}`",
                )
            time.sleep(0.02)
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        yield


def _lock(handle: IO[str], kind: int) -> bool:
    """Take the lock without waiting. Returns True for one that is taken, or was before."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(folder: Path) -> bool:
    """True while a process works on the run."""
    try:
        with os.fdopen(open_plain(folder / LOCK_FILE)) as handle:
            return not _lock(handle, fcntl.LOCK_SH)
    except OSError:
        return False


def files_below(folder: Path) -> Iterator[os.DirEntry[str]]:
    """All plain files in a folder and in the folders below it, in any order."""
    folders = [str(folder)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:  # it may be gone by now
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry


def size_of(file: os.DirEntry[str]) -> int:
    """Bytes of a file; 0 for one that is gone by now."""
    with suppress(OSError):
        return file.stat(follow_symlinks=False).st_size
    return 0


def folder_size(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(map(size_of, files_below(folder)))
