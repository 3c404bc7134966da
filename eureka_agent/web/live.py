"""Server-sent events: parts of a run's page, sent to all browsers that watch it as it grows.

A run that is watched has one feed, however many browsers there are. The feed looks at the archive's
size and time every second, and reads what is new. A run that nobody watches is not read.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
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
KEEP_ALIVE_S = 15.0
MOST_WATCHING = 64
"""Browsers that watch at the same time."""
ENDED = "event: ended\ndata: ended\n\n"
"""Message after which a browser does not connect again."""

Parts = Mapping[str, str]
"""HTML by the name of a part."""


class LiveRun(Watched):
    """View of a run that another process works on. All methods run on the reader's thread."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._follower = Follower(folder, self.see)

    def read_on(self) -> bool:
        """Read new entries; False once no process works on the run. Raises RunFolderError."""
        return self._follower.poll()


Render = Callable[[str, LiveRun, bool], Parts]
"""Makes the parts of a run's page on the reader's thread: all, or without True the quick ones."""


def pause_after(seconds: float) -> float:
    """Seconds between two slow parts, of which the last took so many."""
    return max(SLOW_PARTS_S, seconds / SLOW_SHARE)


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


class Feed:
    """The stream of one run: of each part the newest."""

    def __init__(
        self, name: str, reader: Reader, render: Render, ended: Callable[[Feed], None]
    ) -> None:
        self.name = name
        self.watching = 0
        """Number of browsers."""
        self._reader = reader
        self._render = render
        self._on_end = ended
        self._parts: dict[str, tuple[int, str]] = {}
        """HTML of each part, with the number of the news that brought it."""
        self._number = 0
        self._news = asyncio.Event()
        self._last: str | None = None
        """Message at the end of the stream, once it has one."""
        self._task: asyncio.Task[None] | None = None

    async def messages(self) -> AsyncGenerator[str, None]:
        """Messages for one browser, all known parts first. The feed ends with the last browser."""
        self.watching += 1
        if self._task is None and self._last is None:
            self._task = asyncio.get_running_loop().create_task(self._follow())
        sent = 0
        try:
            while self._last is None or sent < self._number:
                if sent == self._number:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._news.wait(), KEEP_ALIVE_S)
                new = {name: html for name, (at, html) in self._parts.items() if at > sent}
                sent = self._number
                yield message(new) if new else ": still here\n\n"
            if self._last:
                yield self._last
        finally:
            self.watching -= 1
            if not self.watching:
                self.close()

    def tell(self, parts: Parts) -> None:
        """Put new parts in place of older ones."""
        known = {name: html for name, (_, html) in self._parts.items()}
        new = {name: html for name, html in parts.items() if known.get(name) != html}
        if new:
            self._number += 1
            self._parts |= {name: (self._number, html) for name, html in new.items()}
            self._wake()

    def end(self, last: str = "") -> None:
        """End all streams after what waits and a last message."""
        self._last = last if self._last is None else self._last
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def close(self) -> None:
        """End all streams, though the run has not ended."""
        self.end()
        if self._task is not None:
            self._task.cancel()
        self._on_end(self)

    async def _follow(self) -> None:
        try:
            await self._send_parts()
        except EurekaError as error:  # it was removed, or is damaged
            self.tell({"fault": str(escape(error.message))})
        finally:
            self.end(ENDED)
            self._on_end(self)

    async def _send_parts(self) -> None:
        """Send parts until no process works on the run."""
        loop, folder = asyncio.get_running_loop(), folder_of(self.name)
        run, mark = LiveRun(folder), None
        held, dirty, quick_at, slow_from = True, True, -math.inf, -math.inf
        while held:
            now, before = loop.time(), mark
            mark = await self._reader(partial(mark_of, folder))
            if mark is None:
                raise RunFolderError(f"the run {self.name!r} is not there any more")
            if mark != before or before is None:
                held, dirty = await self._reader(run.read_on), True
            slow = dirty and (not held or now >= slow_from)
            if slow or mark != before or now - quick_at >= CLOCKS_S:
                self.tell(await self._reader(partial(self._render, self.name, run, slow)))
                quick_at = now
            if slow:
                dirty, slow_from = False, now + pause_after(loop.time() - now)
            if held:
                await asyncio.sleep(POLL_S)


class Feeds:
    """The feeds of all watched runs."""

    def __init__(self, reader: Reader, render: Render) -> None:
        self._reader = reader
        self._render = render
        self._feeds: dict[str, Feed] = {}

    @property
    def watching(self) -> int:
        """Number of browsers."""
        return sum(feed.watching for feed in self._feeds.values())

    async def messages(self, name: str) -> AsyncIterator[str]:
        """Messages of a run's stream."""
        feed = self._feeds.get(name)
        if feed is None:
            feed = self._feeds[name] = Feed(name, self._reader, self._render, self._drop)
        async with aclosing(feed.messages()) as messages:
            async for text in messages:
                yield text

    def _drop(self, feed: Feed) -> None:
        if self._feeds.get(feed.name) is feed:
            del self._feeds[feed.name]

    def close(self) -> None:
        """End all streams, when the server ends."""
        for feed in list(self._feeds.values()):
            feed.close()
