"""Wall-clock limits of code in a worker's process: generated code, and an environment's."""

from __future__ import annotations

import faulthandler
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from types import FrameType

_REPEAT_SECONDS = 0.5
_GRACE_SECONDS = 3.0
"""Time from the end of a limit to the exception on a busy machine, before the process is ended."""
_CALL_SECONDS: ContextVar[float | None] = ContextVar("_CALL_SECONDS", default=None)
_LOOKS = 10
"""Clock readings until a patient limit is over."""


class TimeLimitError(BaseException):
    """The limit passed. No `Exception`, so that generated code does not catch it by accident."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"took longer than {seconds:g} s")
        self.seconds = seconds


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimitError in the main thread's Python code after `seconds` in the block;
    repeatedly, in case it is swallowed. An outer limit continues."""

    def interrupt(signal_number: int, frame: FrameType | None) -> None:
        raise TimeLimitError(seconds)

    with _alarms(interrupt, seconds, _REPEAT_SECONDS):
        yield


@contextmanager
def patient_time_limit(
    seconds: float, dump_file: int | None = None, end_process: bool = False
) -> Iterator[None]:
    """Raise TimeLimitError after `seconds` in which the process ran: while stopped (Ctrl-Z) the
    clock is read once. In a call that never ends, Python's stack is written to the descriptor
    `dump_file`, and with `end_process` the process ends."""
    looks = 0

    def look(signal_number: int, frame: FrameType | None) -> None:
        nonlocal looks
        looks += 1
        if looks >= _LOOKS:
            raise TimeLimitError(seconds)

    with _alarms(look, seconds / _LOOKS, seconds / _LOOKS), ExitStack() as stack:
        if dump_file is not None:
            grace = _GRACE_SECONDS if end_process else _REPEAT_SECONDS
            faulthandler.dump_traceback_later(seconds + grace, file=dump_file, exit=end_process)
            stack.callback(faulthandler.cancel_dump_traceback_later)
        yield


@contextmanager
def calls_limited_to(seconds: float) -> Iterator[None]:
    """Set the limit of each `call_limit` in the block."""
    token = _CALL_SECONDS.set(seconds)
    try:
        yield
    finally:
        _CALL_SECONDS.reset(token)


@contextmanager
def call_limit() -> Iterator[None]:
    """Apply the patient limit of `calls_limited_to` to one call; without one, no limit."""
    seconds = _CALL_SECONDS.get()
    with nullcontext() if seconds is None else patient_time_limit(seconds):
        yield


@contextmanager
def _alarms(
    handle: Callable[[int, FrameType | None], None], first_s: float, then_s: float
) -> Iterator[None]:
    """Call `handle` after `first_s` and then every `then_s` seconds; restore the alarm before."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not hasattr(signal, "setitimer"):
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
