"""Pauses between two tries of a request: nothing is under way in them, so whoever stops waits for
none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any


class Pauses:
    """The pauses of one gateway's requests, which find them in `PAUSES`."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[Any]] = set()
        """Requests that pause."""
        self._over = False

    async def sleep(self, seconds: float, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Pause the request of this task. Raises CancelledError where no further try is made."""
        task = asyncio.current_task()
        assert task is not None  # a coroutine of the event loop
        if self._over:
            raise asyncio.CancelledError
        self.tasks.add(task)
        try:
            await sleep(seconds)
        finally:
            self.tasks.discard(task)

    def end(self) -> None:
        """Give up the requests that pause, and each that would from now on."""
        self._over = True
        for task in self.tasks:
            task.cancel()


PAUSES: ContextVar[Pauses] = ContextVar("PAUSES")
"""Pauses of the gateway at which the present request was handed in; unset for a request without a
gateway."""
