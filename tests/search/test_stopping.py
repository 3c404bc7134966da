"""A search that fails in the moment in which it is stopped."""

from __future__ import annotations

import asyncio
import gc
from typing import Any, cast

import pytest

from eureka_agent.errors import EurekaError
from eureka_agent.fleet.trainings import Trainings
from eureka_agent.search.assembly import saving_when_stopped


class NoTrainings:
    busy = False


async def test_its_error_is_no_traceback_of_an_abandoned_task() -> None:
    told: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: told.append(context))
    fail = asyncio.Event()

    async def work() -> None:
        await fail.wait()
        raise EurekaError("no room for a request")

    trainings = cast(Trainings, NoTrainings())
    search = asyncio.create_task(saving_when_stopped(work(), trainings, lambda entry: None))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    fail.set()
    search.cancel()  # before the error has come out
    with pytest.raises(asyncio.CancelledError):
        await search
    del search
    gc.collect()
    await asyncio.sleep(0)
    assert told == []
