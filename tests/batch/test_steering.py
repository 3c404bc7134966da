"""What a person asks of a batch, under way and at rest, and what the answers say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from eureka_agent.batch.control import NobodyListensError
from eureka_agent.batch.driver import BatchDriver
from eureka_agent.batch.file import BatchSettings
from eureka_agent.batch.folder import BATCH_COPY
from eureka_agent.batch.queue import Queue, State
from eureka_agent.batch.requests import Requests
from eureka_agent.batch.session import ask_batch
from eureka_agent.cli.batch import _say_held
from eureka_agent.errors import EurekaError
from eureka_agent.fleet.fleet import Machine
from eureka_agent.sandbox.process_wall import ProcessWall


class BusyMachine:
    """A machine with trainings that do not end by themselves."""

    wall = ProcessWall()
    under_way = 2

    def workers(self, hardware: object) -> int:
        return 2

    def dispatch(self) -> None:
        """Nothing waits."""


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    (tmp_path / "night").mkdir()
    with closing(Queue(tmp_path / "night", make=True)) as made:
        made.add([("one", {"env": "ant"}), ("two", {"env": "ant"})])
        yield made


@pytest.fixture
def saved() -> asyncio.Event:
    """Set once the trainings of a cancelled search are saved."""
    return asyncio.Event()


@pytest.fixture
async def driver(
    queue: Queue, saved: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[BatchDriver]:
    """A driver at work on searches that take some time to save what they have."""

    async def search(*arguments: object, **more: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await saved.wait()

    monkeypatch.setattr("eureka_agent.batch.driver.run_search", search)
    settings = BatchSettings()
    driver = BatchDriver(queue, settings, cast(Machine, BusyMachine()), [], lambda event: None)
    working = asyncio.create_task(driver.run())
    await asyncio.sleep(0)
    yield driver
    saved.set()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)


async def ended(driver: BatchDriver, search: str) -> None:
    """Wait until a search is not under way."""
    async with asyncio.timeout(10):
        await asyncio.wait([driver.active[search].task])


async def test_a_search_is_cancelling_until_it_is_saved_and_asking_twice_keeps_it_saving(
    driver: BatchDriver, queue: Queue, saved: asyncio.Event
) -> None:
    requests = Requests(driver)
    for _ in range(2):
        answer = requests.answer({"action": "cancel", "search": "one"})
        await asyncio.sleep(0)
        assert answer["searches"] == {"one": "cancelling", "two": "running"}
    requests.answer({"action": "retune", "search": "one", "settings": {"iterations": 3}})
    assert not driver.active["one"].task.done()
    saved.set()
    await ended(driver, "one")
    assert queue.entry("one").state is State.CANCELLED
    assert queue.entry("one").settings["iterations"] == 3
    assert "batch resume" in queue.entry("one").message


async def test_a_search_that_is_cancelling_can_be_brought_back(
    driver: BatchDriver, queue: Queue, saved: asyncio.Event
) -> None:
    requests = Requests(driver)
    requests.answer({"action": "cancel", "search": "one"})
    await asyncio.sleep(0)
    answer = requests.answer({"action": "resume", "search": "one"})
    assert answer["searches"]["one"] == "running"
    saved.set()
    await ended(driver, "one")
    assert queue.entry("one").state in (State.WAITING, State.RUNNING)


async def test_a_stop_says_what_it_waits_for(
    driver: BatchDriver, queue: Queue, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = Requests(driver).answer({"action": "stop"})
    _say_held(answer, "night")
    assert "it ends after 2 trainings under way" in capsys.readouterr().out
    assert "it ends after 2 trainings under way" in queue.last_events(1)[0].text


@pytest.mark.parametrize(
    ("search", "states", "after"),
    [
        ("one", ("cancelled", "finished"), ["waiting", "finished"]),
        ("one", ("cancelled", "cancelled"), ["waiting", "cancelled"]),
        (None, ("cancelled", "finished"), ["waiting", "finished"]),
        (None, ("cancelled", "stopped"), ["cancelled", "stopped"]),
        ("two", ("cancelled", "finished"), ["cancelled", "finished"]),
    ],
)
def test_a_cancelled_search_of_a_batch_at_rest_is_brought_back(
    queue: Queue, search: str | None, states: tuple[str, str], after: list[str]
) -> None:
    for entry, state in zip(queue.entries(), states, strict=True):
        queue.set_state(entry.name, State(state))
    answer = ask_batch(queue.folder, {"action": "resume", "search": search})
    assert list(answer["searches"].values()) == after
    assert [entry.state.value for entry in queue.entries()] == after
    assert str(queue.folder / BATCH_COPY) in answer["again"]


def test_other_requests_need_a_process_that_works_on_the_batch(queue: Queue) -> None:
    with pytest.raises(NobodyListensError, match="nobody works on the batch 'night'"):
        ask_batch(queue.folder, {"action": "cancel", "search": "one"})
    with pytest.raises(EurekaError, match="no search 'three'"):
        ask_batch(queue.folder, {"action": "resume", "search": "three"})
