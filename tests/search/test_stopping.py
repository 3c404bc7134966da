"""Ctrl-C has the trainings under way saved, and the second one does not wait for that."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from eureka_agent.search.assembly import SAVING_SECONDS, saving_when_stopped


class Pool:
    """Stands for a pool whose workers take their time."""

    busy = True

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.saved = asyncio.Event()

    async def save(self, timeout_s: float) -> None:
        self.asked.append(timeout_s)
        await self.saved.wait()


class Work:
    """Never ends, and tells of its end."""

    def __init__(self) -> None:
        self.began, self.ended = asyncio.Event(), False

    async def __call__(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True


@pytest.mark.parametrize("again", [False, True])
async def test_the_trainings_end_when_they_are_saved_or_at_once_when_asked_again(
    again: bool,
) -> None:
    pool, work, told = Pool(), Work(), list[Any]()
    place: Any = pool
    running = asyncio.create_task(saving_when_stopped(work(), place, told.append))
    await work.began.wait()
    running.cancel()
    while not pool.asked:
        await asyncio.sleep(0)
    assert (pool.asked, work.ended) == ([SAVING_SECONDS], False)
    assert "Ctrl-C again" in told[0].text
    if again:
        running.cancel()
    else:
        pool.saved.set()
    async with asyncio.timeout(5):
        await asyncio.wait({running})
    assert running.cancelled()
    assert work.ended


async def test_an_error_of_the_work_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        raise ValueError("a defect")

    pool: Any = Pool()
    with pytest.raises(ValueError, match="a defect"):
        await saving_when_stopped(work(), pool, lambda event: None)
    assert pool.asked == []


async def test_an_error_on_the_way_to_the_end_is_no_traceback_of_an_abandoned_task() -> None:
    told: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: told.append(context))
    began = asyncio.Event()

    async def work() -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            raise ValueError("no room for a request")

    pool: Any = Pool()
    pool.busy = False
    running = asyncio.create_task(saving_when_stopped(work(), pool, lambda event: None))
    await began.wait()
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    del running
    gc.collect()
    assert told == []
