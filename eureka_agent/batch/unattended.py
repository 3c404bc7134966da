"""A batch that is left alone: its start in the background, and notifications through Apprise.

It runs, or it failed to start: there is no third state. Addresses of notifications hold secrets:
they come from an environment variable, and never stand in a flag, a record or an error.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from eureka_agent.archive.files import storage_errors
from eureka_agent.archive.safe_files import open_plain
from eureka_agent.errors import EurekaError, SettingsError
from eureka_agent.invocation import PROGRAM, install_extra

if TYPE_CHECKING:
    from apprise import Apprise

OUTPUT = "output.txt"
"""Output of a detached batch, in its folder; its last line is `done`."""
ADDRESS_VARIABLE = "EUREKA_NOTIFY"
"""Environment variable with addresses of Apprise, with spaces between them."""
_TIMEOUT_S = 30.0


def start_detached(arguments: list[str], folder: Path) -> str:
    """Start `eureka` with these arguments in a session of its own. Returns its line once it runs.
    Raises EurekaError with its message where it does not."""
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        output = os.fdopen(open_plain(folder / OUTPUT, flags), "ab")
    reading, writing = os.pipe()
    with output, os.fdopen(reading) as line:
        begin = output.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "eureka_agent.cli.main", *arguments, "--ready-fd", str(writing)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=(writing,),
            env={**os.environ, PROGRAM: os.environ.get(PROGRAM) or sys.argv[0]},  # for its hints
        )
        os.close(writing)
        ready = line.readline().strip()
    if ready:
        return ready
    status = process.wait()
    said = (folder / OUTPUT).read_bytes()[begin:].decode(errors="replace").strip()
    if status == 0:  # nothing is left to do
        return said
    raise EurekaError(f"the batch did not start:\n{said}", "nothing runs in the background")


async def notify(service: Apprise | None, title: str, text: str) -> str:
    """Send a notification; None sends nothing. Returns what went wrong, or ""."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            arrived = service is None or bool(await service.async_notify(text, title))
    except (TimeoutError, OSError, TypeError):
        arrived = False
    return "" if arrived else f"the notification {title!r} did not arrive everywhere"


def notifier(environment: Mapping[str, str] = os.environ) -> Apprise | None:
    """The service behind the addresses in the environment; None without any. Raises SettingsError
    for one that Apprise does not know, without repeating it."""
    addresses = environment.get(ADDRESS_VARIABLE, "").split()
    if not addresses:
        return None
    try:
        import apprise
    except ImportError:
        message = f"{ADDRESS_VARIABLE} asks for notifications, and Apprise is not installed"
        raise SettingsError(message, f"install it: {install_extra('notify')}") from None
    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its lines may hold addresses
    service = apprise.Apprise()
    for number, address in enumerate(addresses, start=1):
        if not service.add(address):
            message = f"address {number} in {ADDRESS_VARIABLE} is none that Apprise knows"
            raise SettingsError(message, "see github.com/caronc/apprise/wiki for their forms")
    return service
