"""Streams of a run's page: the newest parts, an end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from page_runs import add_trained, finish, new_run

from eureka_agent.archive.files import locked
from eureka_agent.web import live
from eureka_agent.web.live import ENDED, Feeds, LiveRun, Parts, message
from eureka_agent.web.runs import Reader


class Views:
    """Counts what is read, and renders the number of attempts."""

    def __init__(self) -> None:
        self.quick = self.slow = 0

    def __call__(self, name: str, run: LiveRun, slow: bool) -> Parts:
        self.slow += slow
        self.quick += not slow
        return {"now": f"<p>{len(run.state.by_id)} attempts</p>"}


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Views:
    monkeypatch.setenv("EUREKA_RUNS", str(tmp_path))
    monkeypatch.setattr(live, "POLL_S", 0.02)
    monkeypatch.setattr(live, "SLOW_PARTS_S", 0.05)
    return Views()


async def until(stream: AsyncIterator[str], words: str) -> str:
    async with asyncio.timeout(10):
        async for text in stream:
            if words in text:
                return text
    raise AssertionError(f"the stream ended without {words}")


async def test_every_browser_sees_what_is_new_and_the_end(views: Views, tmp_path: Path) -> None:
    folder, archive = new_run(tmp_path)
    reader = Reader()
    feeds = Feeds(reader, views)
    with locked(folder):
        first, second = feeds.messages(folder.name), feeds.messages(folder.name)
        await until(first, "0 attempts")
        await until(second, "0 attempts")
        assert feeds.watching == 2
        add_trained(archive, "1-01", 1.0)
        await until(first, "1 attempts")
        await until(second, "1 attempts")
        finish(archive)
    assert await until(first, "event: ended") == ENDED
    assert await until(second, "event: ended") == ENDED
    await first.aclose()  # type: ignore[attr-defined]
    await second.aclose()  # type: ignore[attr-defined]
    assert feeds.watching == 0
    reader.close()


async def test_nobody_watches_and_nothing_is_read(views: Views, tmp_path: Path) -> None:
    folder, archive = new_run(tmp_path)
    reader = Reader()
    feeds = Feeds(reader, views)
    with locked(folder):
        stream = feeds.messages(folder.name)
        await until(stream, "0 attempts")
        await stream.aclose()  # type: ignore[attr-defined]
        assert feeds.watching == 0
        rendered = views.quick + views.slow
        add_trained(archive, "1-01", 1.0)
        await asyncio.sleep(0.2)  # ten times as long as between two looks
        assert views.quick + views.slow == rendered
        # another browser begins anew, from the whole journal
        again = feeds.messages(folder.name)
        await until(again, "1 attempts")
        await again.aclose()  # type: ignore[attr-defined]
    archive.close()
    reader.close()


async def test_an_idle_run_is_not_rendered_again(views: Views, tmp_path: Path) -> None:
    folder, archive = new_run(tmp_path)
    reader = Reader()
    feeds = Feeds(reader, views)
    with locked(folder):
        stream = feeds.messages(folder.name)
        await until(stream, "0 attempts")
        watching = asyncio.create_task(until(stream, "another attempt"))
        await asyncio.sleep(0.3)  # fifteen looks
        assert (views.slow, views.quick) == (1, 0)
        watching.cancel()
        await asyncio.wait({watching})
        await stream.aclose()  # type: ignore[attr-defined]
    archive.close()
    reader.close()


async def test_a_run_that_vanishes_is_told_and_ends_the_stream(
    views: Views, tmp_path: Path
) -> None:
    folder, archive = new_run(tmp_path)
    reader = Reader()
    feeds = Feeds(reader, views)
    with locked(folder):
        stream = feeds.messages(folder.name)
        await until(stream, "0 attempts")
        (folder / "archive.sqlite").rename(tmp_path / "away.sqlite")
        assert "is not there any more" in await until(stream, "part-fault")
        assert await until(stream, "ended") == ENDED
    archive.close()
    reader.close()


def test_no_line_of_a_part_ends_a_message() -> None:
    text = message({"log": "one\n\nevent: ended\n\rdata: x"})
    lines = text.removesuffix("\n\n").split("\n")
    assert all(line.startswith("data: ") for line in lines)
    assert "\r" not in text
