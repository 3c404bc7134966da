"""How the process ends: by Ctrl-C during the program's imports, at once and silently, and beside
threads of a person's environment, whose prints are kept off. Imported first."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from types import FrameType
from typing import TextIO

INTERRUPTED = 130
_PROGRAMS = ("eureka", "main.py")
"""Scripts of this program: pip's, and the package's own under `python -m`."""


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def raise_from_now_on() -> None:
    """Let Ctrl-C raise KeyboardInterrupt, for commands that clean up."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# other programs that import the package keep their handlers, as `nohup` does
if (
    os.path.basename(sys.argv[0]) in _PROGRAMS
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, _leave)


_HAS_RUN = threading.Event()


@contextmanager
def foreign_code() -> Iterator[TextIO]:
    """Send all that the block prints to standard error, also by descriptor 1, as C libraries do.
    Yields the stream for the command's own output meanwhile."""
    import ctypes  # not for each start of the program

    _HAS_RUN.set()
    out, err = sys.stdout, sys.stderr
    if err is None or not _is_descriptor(out, 1):  # within another program
        with redirect_stdout(err):
            yield out
        return
    out.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    own = open(kept, "w", encoding=out.encoding, errors=out.errors)  # noqa: SIM115
    # a stream of its own, which the code may close
    sys.stdout = open(os.dup(2), "w", encoding="utf-8", errors="replace", buffering=1)  # noqa: SIM115
    try:
        yield own
    finally:
        for stream in (sys.stdout, out):  # the latter is `sys.__stdout__`
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        ctypes.CDLL(None).fflush(None)
        sys.stdout, sys.stderr = out, err
        with suppress(OSError):  # its reader is gone: the next print says so
            own.flush()
        os.dup2(kept, 1)
        with suppress(OSError):
            own.close()


def leave(status: int) -> None:
    """End the process at once where a thread of foreign code would keep it from ending."""
    if not _HAS_RUN.is_set() or all(
        each.daemon or each is threading.main_thread() for each in threading.enumerate()
    ):
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def _is_descriptor(stream: TextIO, number: int) -> bool:
    try:
        return stream.fileno() == number
    except (OSError, ValueError, AttributeError):
        return False
