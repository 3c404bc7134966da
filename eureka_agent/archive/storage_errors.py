"""Errors of the disk and of SQLite in plain words, with the command that resumes the run."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eureka_agent.errors import DiskFullError, RunFolderError, lacks_room, system_reason
from eureka_agent.invocation import resume_command

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
    except sqlite3.Error as error:
        raise database_error(folder, error) from error
    except IsADirectoryError as error:
        path = str(error.filename2 or error.filename)  # the target of a rename
        raise RunFolderError(
            f"cannot write {path!r}: it is a folder, expected a file", "name a file"
        ) from error
    except OSError as error:
        raise _storage_error(folder, system_reason(error), error) from error


def database_error(folder: Path, error: sqlite3.Error) -> RunFolderError:
    """Error of writing to the archive in `folder`."""
    return _storage_error(folder, reason_of(error), error)


def _storage_error(folder: Path, reason: str, error: Exception) -> RunFolderError:
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
