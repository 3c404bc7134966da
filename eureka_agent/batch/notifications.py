"""Notifications of a batch through Apprise: at its start, at the first failure, at its end.

The addresses hold secrets. They come from an environment variable or from a file that it names, and
never stand in a flag, a record or an error.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from eureka_agent.errors import SettingsError, system_reason
from eureka_agent.invocation import install_extra

if TYPE_CHECKING:
    from apprise import Apprise

ADDRESS_VARIABLE = "EUREKA_NOTIFY"
"""Environment variable with addresses of Apprise, with spaces between them."""
FILE_VARIABLE = "EUREKA_NOTIFY_FILE"
"""Environment variable that names a file with such addresses, one a line."""
_TIMEOUT_S = 30.0


class Notifications:
    """Sends what a person wants to know in bed."""

    def __init__(self, service: Apprise | None, warn: Callable[[str], None]) -> None:
        """`service`: None sends nothing. `warn` is told of notifications that do not arrive."""
        self._service = service
        self._warn = warn
        self._tasks: set[asyncio.Task[None]] = set()
        self._told_failure = False

    def failed(self, batch: str, search: str, message: str) -> None:
        """Tell of the first search that failed."""
        if not self._told_failure:
            self._told_failure = True
            self.send(f"{batch}: {search} failed", message)

    def send(self, title: str, text: str) -> None:
        """Send a notification in the background."""
        if self._service is not None:
            task = asyncio.create_task(self._deliver(self._service, title, text))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait until all are sent, for a bounded time."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_TIMEOUT_S)

    async def _deliver(self, service: Apprise, title: str, text: str) -> None:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                arrived = bool(await service.async_notify(text, title))
        except (TimeoutError, OSError, TypeError):
            arrived = False
        if not arrived:
            self._warn(f"the notification {title!r} did not arrive everywhere")


def notifier(environment: Mapping[str, str] = os.environ) -> Apprise | None:
    """The service behind the addresses in the environment; None without any. Raises SettingsError
    for one that Apprise does not know, without repeating it."""
    addresses = environment.get(ADDRESS_VARIABLE, "").split()
    origin = ADDRESS_VARIABLE
    if path := environment.get(FILE_VARIABLE):
        origin = f"{FILE_VARIABLE} ({path})"
        try:
            addresses += Path(path).read_text(encoding="utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            reason = system_reason(error) if isinstance(error, OSError) else "it is not UTF-8"
            message = f"the file with addresses for notifications {path!r} cannot be read: {reason}"
            raise SettingsError(message, f"mend it, or unset {FILE_VARIABLE}") from None
    if not addresses:
        return None
    try:
        import apprise
    except ImportError:
        message = f"{origin} asks for notifications, and Apprise, which sends them, is not"
        hint = f"install it: {install_extra('notify')}"
        raise SettingsError(f"{message} installed", hint) from None
    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its lines may hold addresses
    service = apprise.Apprise()
    for number, address in enumerate(addresses, start=1):
        if not service.add(address):
            message = f"address {number} in {origin} is none that Apprise knows"
            raise SettingsError(message, "see github.com/caronc/apprise/wiki for their forms")
    return service
