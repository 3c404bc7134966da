"""Errors for the person: what, the offending value, what was expected, the next step."""

from __future__ import annotations

import difflib
import errno
import os
import re
import signal
from collections.abc import Iterable


class EurekaError(Exception):
    """A problem that the user can solve; printed without a traceback."""

    exit_status = 2

    def __init__(self, message: str, hint: str = "") -> None:
        """`message` says what is wrong, with the offending value; `hint` says what to do next."""
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class SettingsError(EurekaError):
    """A setting that does not exist or whose value is out of range."""


class EnvironmentLoadError(EurekaError):
    """An environment folder, task or reward file that cannot be loaded."""


class EnvironmentFaultError(EurekaError):
    """An environment or a task's fitness that fails in use, for which no reward is to blame."""


class RunFolderError(EurekaError):
    """A folder that is not a run, or a run that cannot be read or written."""


class DiskFullError(RunFolderError):
    """A disk without room, or a used-up quota."""


class WallError(EurekaError):
    """A requested sandbox wall that is not available."""


OTHER_WALL = ", or use --sandbox auto"
"""End of a hint where another wall may be chosen."""


class WallAwayError(WallError):
    """A wall whose service does not answer, and may do so again later."""


class NoRoomError(WallError):
    """There is room for the workers that run, and for no further one."""


class WorkerDiedError(EurekaError):
    """A worker process ended in the middle of a job."""


class WorkerLostError(WorkerDiedError):
    """A worker is gone with its machine or its engine, for which no training can be to blame."""


class GpuLostError(WorkerLostError):
    """A GPU that failed under a worker: a fault of its driver or of the device."""


class WorkerFaultError(EurekaError):
    """A worker could not do a job; its process goes on."""


class ProcessStartError(EurekaError):
    """The machine has no room for one more process, which is no fault of the code for it."""

    def __init__(self, number: int) -> None:
        """`number`: the system's `errno`."""
        super().__init__(
            f"cannot start a process for a reward: {os.strerror(number)}",
            "free memory or processes of this machine, or use fewer --slots, and start the run"
            " again",
        )


class RewardLoadError(EurekaError):
    """Reward source that does not define a usable `compute_reward`."""


def signal_name(number: int) -> str:
    """`SIGKILL` for 9; `signal <number>` where it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_MOST_LISTED = 20


def close_match(word: str, known: Iterable[str]) -> str | None:
    """Known word that resembles `word`, or that one of the two begins; None where all differ much.

    Capitals, leading dashes and a version suffix are ignored: with them short words would resemble
    each other.
    """
    names = {_core(name): name for name in sorted(known)}
    core = _core(word)
    close = difflib.get_close_matches(core, names, n=1, cutoff=_LEAST_RESEMBLANCE)
    forms = [
        name
        for name in sorted(names, key=lambda name: abs(len(name) - len(core)))
        if min(len(name), len(core)) >= _SHORTEST_FORM
        and (name.startswith(core) or core.startswith(name))
    ]
    found = close or forms
    return names[found[0]] if found else None


_LEAST_RESEMBLANCE = 0.74
"""Least ratio of `difflib`: one letter in four may be wrong, or two swapped in a word of four."""
_SHORTEST_FORM = 3


def _core(name: str) -> str:
    return re.sub(r"-v\d+$", "", name.lower().lstrip("-"))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`"did you mean 'x'?"` for the closest known word, else a list of the known words."""
    names = sorted(known)
    close = close_match(word, names)
    if close is not None:
        return f"did you mean {close!r}?"
    if not names:
        return "none is defined"
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return f"expected one of: {', '.join(names[:_MOST_LISTED])}{more}"


def system_reason(error: OSError) -> str:
    """The system's error in plain words, to follow a colon."""
    return _SYSTEM_REASONS.get(error.errno or 0) or error.strerror or str(error)


def lacks_room(error: OSError) -> bool:
    """True for a full disk or a used-up quota."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


_SYSTEM_REASONS = {
    errno.ENOENT: "there is no such file or folder",
    errno.EISDIR: "it is a folder, expected a file",
    errno.ENOTDIR: "a part of the path is a file, expected a folder",
    errno.EEXIST: "there is a file of that name",
    errno.EACCES: "its permissions do not allow that",
    errno.EPERM: "its permissions do not allow that",
    errno.EROFS: "it lies on a disk that can only be read",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your quota of the disk is used up",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "its links lead in a circle",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "too many files are open",
    errno.EIO: "the disk cannot be read or written",
}
