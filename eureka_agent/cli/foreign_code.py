"""A person's environment in the command's own process: its prints and its threads are kept off."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TextIO

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
