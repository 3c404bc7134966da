"""Ctrl-C during the program's imports ends it at once and silently. Imported first."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

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
