"""Files of an untrusted run folder: no link is followed, only plain files are opened, numbers and
sizes are bounded.

Such a folder can hold a link to the reader's own files, an endless pipe, or a name that leads out
of it. `inside` makes a path within a run folder, `open_plain` opens a file. The path to the run
folder may have links, which are the user's own. Changes of the folder while it is read are not
covered: they need access to the machine.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from eureka_agent.errors import RunFolderError, system_reason

MOST_TEXT_BYTES = 64 << 20
_SUSPICIOUS_NUMBER = re.compile(r"[0-9](?:[0-9]{18}|[eE]\+?[0-9]{3})")
_LARGEST_WHOLE, _LARGEST_FLOAT = 2**63, 1e100


def inside(run: Path, *names: str) -> Path:
    """`run/<names>`, existing or not. Raises RunFolderError for a name that leads elsewhere, and
    for anything but plain files and folders."""
    path = run
    for place, name in enumerate(names, 1):
        if name in ("", ".", "..") or "/" in name or not name.isprintable():
            raise RunFolderError(
                f"{name[:100]!r} in the run {str(run)!r} is no valid file name",
                "do not trust who made this folder",
            )
        path = path / name
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RunFolderError(
                f"cannot read {str(path)!r}: {system_reason(error)}", "check the folder"
            ) from None
        if not (stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and place == len(names))):
            raise RunFolderError(
                f"{str(path)!r} is {_kind(mode)}, expected a"
                f" {'file or ' if place == len(names) else ''}folder of the run's own",
                "remove it, or put what it stands for in its place",
            )
    return path


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a link",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFREG: "a file",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")


def open_plain(path: Path, flags: int = os.O_RDONLY) -> int:
    """Descriptor of a plain file. Raises OSError for anything else, and for writing to a file with
    several hard links."""
    # without O_NONBLOCK opening a pipe would wait
    safe = flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, safe, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            reason = f"{path.name!r} is a link or a pipe, not a file"
            raise OSError(error.errno, reason, str(path)) from None
        raise
    status = os.fstat(descriptor)
    reason = ""
    if not stat.S_ISREG(status.st_mode):
        reason = f"{path.name!r} is not a plain file"
    elif flags & (os.O_WRONLY | os.O_RDWR) and status.st_nlink > 1:
        reason = f"{path.name!r} has a hard link elsewhere, which would be written to as well"
    if reason:
        os.close(descriptor)
        raise OSError(errno.EINVAL, reason, str(path))
    if flags & os.O_TRUNC:  # only after the checks
        os.ftruncate(descriptor, 0)
    return descriptor


def read_plain(path: Path, most: int = MOST_TEXT_BYTES) -> bytes:
    """Content of a plain file. Raises OSError for anything else, and for more than `most` bytes."""
    with os.fdopen(open_plain(path), "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
    return content


def copy_plain(source: Path, target: Path) -> None:
    """Copy a plain file to a path of this program. Raises OSError."""
    with os.fdopen(open_plain(source), "rb") as read, target.open("wb") as written:
        shutil.copyfileobj(read, written)


def load_json(text: str | bytes) -> Any:
    """Parsed JSON with bounded numbers. Raises ValueError also for endless nesting, infinite
    numbers and integers beyond 64 bits."""
    try:
        return json.loads(
            text, parse_constant=_refuse, parse_float=_bounded_float, parse_int=_bounded_whole
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError:
        raise ValueError("it is not JSON") from None


def check_numbers(text: str) -> None:
    """Raises ValueError for a number that `load_json` refuses; parses suspicious text only."""
    if _SUSPICIOUS_NUMBER.search(text) or "NaN" in text or "Infinity" in text:
        load_json(text)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _bounded_float(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and abs(value) <= _LARGEST_FLOAT):
        raise ValueError(f"{text[:20]} is too large a number")
    return value


def _bounded_whole(text: str) -> int:
    if len(text) > 20 or not -_LARGEST_WHOLE <= int(text) < _LARGEST_WHOLE:
        raise ValueError(f"{text[:20]}… is too large a number")
    return int(text)


_PREFIX = "eureka-driver-"


@contextmanager
def driver_scratch() -> Iterator[Path]:
    """A temporary folder of this process. Folders of killed drivers are removed first."""
    parent = Path(tempfile.gettempdir())
    for folder in parent.glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not _alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-") as scratch:
        yield Path(scratch)


def _alive(process: int) -> bool:
    with suppress(ProcessLookupError):
        try:
            os.kill(process, 0)
        except PermissionError:  # another user's process
            return True
        return True
    return False
