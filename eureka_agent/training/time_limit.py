"""Wall-clock limits around code that shares a worker's process: generated code's, and an
environment's."""

from __future__ import annotations

import faulthandler
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

_REPEAT_SECONDS = 0.5
_GRACE_SECONDS = 3.0
"""Time that a busy machine may take from the end of a limit to the exception, before the process is
ended."""
_CALL_SECONDS: ContextVar[float | None] = ContextVar("_CALL_SECONDS", default=None)
_LOOKS = 10
"""A patient limit is over after so many looks at the clock."""


class TimeLimitError(BaseException):
    """The limit passed. Not an `Exception`, so that generated code does not catch it by
    accident."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"took longer than {seconds:g} s")
        self.seconds = seconds


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimitError in the block once `seconds` have passed.

    Covers Python code in the main thread: in another thread there is no limit, and one long call
    into torch is interrupted only at its end. The alarm repeats, in case the block swallows the
    first one. A limit around this one goes on after it.
    """

    def interrupt(signal_number: int, frame: FrameType | None) -> None:
        raise TimeLimitError(seconds)

    with _alarms(interrupt, seconds, _REPEAT_SECONDS):
        yield


@contextmanager
def patient_time_limit(
    seconds: float, dump_file: int | None = None, end_process: bool = False
) -> Iterator[None]:
    """The same, but time in which the process was stopped (Ctrl-Z, a paused container) does not
    count: it is one look at the clock.

    One call into a library that never ends cannot be interrupted. Then the stack of Python is
    written to the file descriptor `dump_file`, and the process ends where `end_process` says so.
    """
    looks = 0

    def look(signal_number: int, frame: FrameType | None) -> None:
        nonlocal looks
        looks += 1
        if looks >= _LOOKS:
            raise TimeLimitError(seconds)

    with _alarms(look, seconds / _LOOKS, seconds / _LOOKS):
        if dump_file is not None:
            grace = _GRACE_SECONDS if end_process else _REPEAT_SECONDS
            faulthandler.dump_traceback_later(seconds + grace, file=dump_file, exit=end_process)
        try:
            yield
        finally:
            if dump_file is not None:
                faulthandler.cancel_dump_traceback_later()


@contextmanager
def calls_limited_to(seconds: float) -> Iterator[None]:
    """Have each `call_limit` in the block be of so many seconds."""
    token = _CALL_SECONDS.set(seconds)
    try:
        yield
    finally:
        _CALL_SECONDS.reset(token)


@contextmanager
def call_limit() -> Iterator[None]:
    """The patient limit of one call that `calls_limited_to` sets; none where nothing sets it."""
    seconds = _CALL_SECONDS.get()
    if seconds is None:
        yield
        return
    with patient_time_limit(seconds):
        yield


@contextmanager
def _alarms(
    handle: Callable[[int, FrameType | None], None], first_s: float, then_s: float
) -> Iterator[None]:
    """Have `handle` called after `first_s` and then every `then_s` seconds; put back what there was
    before."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        yield
        return
    handler = signal.signal(signal.SIGALRM, handle)
    before = signal.setitimer(signal.ITIMER_REAL, first_s, then_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *before)
