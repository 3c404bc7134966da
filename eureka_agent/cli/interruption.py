"""Ctrl-C while the program still imports its parts: it ends at once and says nothing, as there is
nothing to clean up. Imported before all others."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
_PROGRAMS = ("eureka", "main.py")
"""Scripts that are this program: pip's, and this package's own under `python -m`."""


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def raise_from_now_on() -> None:
    """Have Ctrl-C raise KeyboardInterrupt again, as a command that has something to clean up needs
    it."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# whoever imports the package for something else keeps what its own program does, and `nohup` what
# it ignores
if (
    os.path.basename(sys.argv[0]) in _PROGRAMS
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, _leave)
