"""The command as the person types it: hints, reports and docs name commands that can be pasted."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import sys
from pathlib import Path

PROGRAM = "EUREKA_PROGRAM"
"""Environment variable in which the checkout's launcher, and a driver for its workers, hands on how it was called."""


@functools.cache
def program() -> str:
    """The program's name for a shell: `eureka` where PATH leads to this installation, else the path by which it was called."""
    called = os.environ.get(PROGRAM) or sys.argv[0]
    found = shutil.which("eureka")
    if os.sep not in called or Path(called).name != "eureka":
        return "eureka"
    if found is not None and Path(found).resolve() == Path(called).resolve():
        return "eureka"
    return shlex.quote(called)


def command(arguments: str) -> str:
    """A command of this program that can be pasted: `command("show latest")` is `./eureka show latest` in a checkout."""
    return f"{program()} {arguments}"
