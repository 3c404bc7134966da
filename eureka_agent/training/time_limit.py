"""A wall-clock limit around generated code that shares the trainer's process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_REPEAT_SECONDS = 0.5


class TimeLimitError(BaseException):
    """The limit passed. Not an `Exception`, so that generated code does not catch it by accident."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"took longer than {seconds:g} s")


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimitError in the block once `seconds` have passed.

    Covers Python code in the main thread: in another thread there is no limit, and one long call into torch is interrupted only at its
    end. The alarm repeats, in case the block swallows the first one.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def interrupt(signal_number: int, frame: FrameType | None) -> None:
        raise TimeLimitError(seconds)

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, _REPEAT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
