"""Files of a run folder, which may be a stranger's: no link is followed, nothing but a plain file
is opened, numbers and sizes are bounded.

A folder that somebody sends can hold a link to any file of whoever opens it, a pipe that never
ends, or a name that leads out of it. `inside` makes a path within a run folder, `open_plain` opens
what is there. The run folder itself may be reached through links: those are the user's own. Against
somebody who changes the folder while it is read there is no protection: such a person is no
stranger to the machine.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
import stat
from pathlib import Path
from typing import Any, NoReturn

from eureka_agent.errors import RunFolderError, system_reason

MOST_TEXT_BYTES = 64 << 20
"""That a text file of a run folder may have."""
_SUSPICIOUS_NUMBER = re.compile(r"\d(?:\d{18}|[eE]\+?\d{3})")
_LARGEST_WHOLE, _LARGEST_FLOAT = 2**63, 1e100


def inside(run: Path, *names: str) -> Path:
    """`run/<names>`, whether it is there or not. Raises RunFolderError where a name leads
    elsewhere, or what is there is neither a plain file nor a folder."""
    path = run
    for place, name in enumerate(names, 1):
        if name in ("", ".", "..") or "/" in name or not name.isprintable():
            raise RunFolderError(
                f"{name[:100]!r} in the run {str(run)!r} is no name of a file",
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
    """A descriptor of a plain file. Raises OSError for a link and for all else that is none, and
    for writing into a file that has another name too."""
    try:
        # without O_NONBLOCK a pipe would be waited for
        descriptor = os.open(
            path, flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666
        )
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise OSError(
                error.errno, f"{path.name!r} is a link or a pipe, not a file", str(path)
            ) from None
        raise
    status = os.fstat(descriptor)
    reason = ""
    if not stat.S_ISREG(status.st_mode):
        reason = f"{path.name!r} is not a plain file"
    elif flags & (os.O_WRONLY | os.O_RDWR) and status.st_nlink > 1:
        reason = (
            f"{path.name!r} has another name elsewhere (a hard link), which would be written to as"
            " well"
        )
    if reason:
        os.close(descriptor)
        raise OSError(errno.EINVAL, reason, str(path))
    if flags & os.O_TRUNC:  # only now: it may have been another's file
        os.ftruncate(descriptor, 0)
    return descriptor


def read_plain(path: Path, most: int = MOST_TEXT_BYTES) -> bytes:
    """The content of a plain file. Raises OSError for what is none, and for more than `most`
    bytes."""
    with os.fdopen(open_plain(path), "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
    return content


def copy_plain(source: Path, target: Path) -> None:
    """Copy a plain file to a place of this program's own. Raises OSError."""
    with os.fdopen(open_plain(source), "rb") as read, target.open("wb") as written:
        shutil.copyfileobj(read, written)


def load_json(text: str | bytes) -> Any:
    """A value whose numbers anybody can compute with. Raises ValueError also for nesting without
    end, for what is infinite or beyond 64 bits."""
    try:
        return json.loads(
            text, parse_constant=_refuse, parse_float=_bounded_float, parse_int=_bounded_whole
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def check_numbers(text: str) -> None:
    """Raises ValueError for JSON with a number that `load_json` refuses. Quick where there is
    none."""
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
