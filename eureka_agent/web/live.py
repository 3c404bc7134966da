"""Server-sent events: parts of a run's page, sent to a browser that watches it as it grows. A
stream looks at the archive's size and time every second, and reads what is new. A run that nobody
watches is not read."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from markupsafe import escape

from eureka_agent.errors import EurekaError, RunFolderError
from eureka_agent.report.follow import Follower
from eureka_agent.report.progress import Watched
from eureka_agent.web.runs import Reader, folder_of, mark_of

POLL_S = 1.0
SLOW_PARTS_S = 2.0
"""Least seconds between two tables and charts, which take longer than what is training now."""
SLOW_SHARE = 0.01
"""Largest part of one core's time for them: those of a thousand attempts come every few seconds."""
CLOCKS_S = 5.0
"""Seconds between two messages with times alone, where nothing else has changed."""
MOST_WATCHING = 16
"""Browsers that watch at the same time."""
ENDED = "event: ended\ndata: ended\n\n"
"""Message after which a browser does not connect again."""

Parts = Mapping[str, str]
"""HTML by the name of a part."""


class LiveRun(Watched):
    """View of a run that another process works on. All methods run on the reader's thread."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        follower = Follower(folder, self.see)
        self.state, self.read_on = follower.state, follower.poll


Render = Callable[[str, LiveRun, bool], Parts]
"""Makes the parts of a run's page on the reader's thread: all, or without True the quick ones."""


def message(parts: Parts) -> str:
    """Server-sent event that replaces parts of the page by their ids."""
    body = swaps(parts)
    return "".join(f"data: {line}\n" for line in body.splitlines()) + "\n"


def swaps(parts: Parts, style: str = "innerMorph") -> str:
    """HTML that replaces parts of the page by their ids. `style`: htmx's way of doing it."""
    return "".join(
        f'<hx-partial hx-target="#part-{name}" hx-swap="{style}">{html}</hx-partial>'
        for name, html in parts.items()
    )


class Feeds:
    """The streams of all browsers that watch a run."""

    def __init__(self, reader: Reader, render: Render) -> None:
        self._reader = reader
        self._render = render
        self._ended = asyncio.Event()
        self.watching = 0
        """Number of browsers."""

    async def messages(self, name: str) -> AsyncIterator[str]:
        """Messages for one browser: all parts, then those that change, until no process works on
        the run. A browser that reads slowly gets the newest of each part."""
        self.watching += 1
        sent: dict[str, str] = {}
        try:
            async for parts in self._parts(name):
                new = {part: html for part, html in parts.items() if sent.get(part) != html}
                sent |= new
                yield message(new) if new else ": still here\n\n"
        except EurekaError as error:  # it was removed, or is damaged
            yield message({"fault": str(escape(error.message))})
        finally:
            self.watching -= 1
        if not self._ended.is_set():
            yield ENDED

    async def _parts(self, name: str) -> AsyncIterator[Parts]:
        loop, folder = asyncio.get_running_loop(), folder_of(name)
        run, mark = LiveRun(folder), None
        held, dirty, quick_at, slow_from = True, True, -math.inf, -math.inf
        while held and not self._ended.is_set():
            now, before = loop.time(), mark
            mark = await self._reader(partial(mark_of, folder))
            if mark is None:
                raise RunFolderError(f"the run {name!r} is not there any more")
            if mark != before or before is None:
                held, dirty = await self._reader(run.read_on), True
            slow = dirty and (not held or now >= slow_from)
            if slow or mark != before or now - quick_at >= CLOCKS_S:
                yield await self._reader(partial(self._render, name, run, slow))
                quick_at = now
            if slow:
                pause = max(SLOW_PARTS_S, (loop.time() - now) / SLOW_SHARE)
                dirty, slow_from = False, now + pause
            if held:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), POLL_S)

    def close(self) -> None:
        """End all streams, when the server ends."""
        self._ended.set()
