"""Pauses before retries: no request is in flight then, so a stop does not wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


class Pauses:
    """Pauses of one gateway's requests, which find them in `PAUSES`."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[Any]] = set()
        """Requests that pause."""
        self._over = False

    async def sleep(self, seconds: float, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Pause this task's request. Raises CancelledError where no retry follows."""
        await self.during(lambda: sleep(seconds))

    async def during(self, wait: Callable[[], Awaitable[T]]) -> T:
        """Wait for anything that a stop need not wait for. Raises CancelledError after `end`."""
        task = asyncio.current_task()
        assert task is not None  # a coroutine of the event loop
        if self._over:
            raise asyncio.CancelledError
        self.tasks.add(task)
        try:
            return await wait()
        finally:
            self.tasks.discard(task)

    def end(self) -> None:
        """Cancel the requests that pause now or later."""
        self._over = True
        for task in self.tasks:
            task.cancel()


PAUSES: ContextVar[Pauses] = ContextVar("PAUSES")
"""Pauses of the present request's gateway; unset without a gateway."""
