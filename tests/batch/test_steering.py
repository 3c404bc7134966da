"""What a person asks of a batch, under way and at rest, and what the answers say."""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from eureka_agent.batch import control
from eureka_agent.batch.control import NobodyListensError, ask_batch
from eureka_agent.batch.driver import Active, BatchDriver
from eureka_agent.batch.file import BatchSettings
from eureka_agent.batch.folder import BATCH_COPY, plan_searches, searches_of
from eureka_agent.batch.intents import IntentsFile
from eureka_agent.batch.matrix import PlannedSearch
from eureka_agent.cli.batch import _say_held
from eureka_agent.errors import EurekaError, SettingsError
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
def intents(tmp_path: Path) -> IntentsFile:
    (tmp_path / "night").mkdir()
    made = IntentsFile(tmp_path / "night", make=True)
    plan_searches(made, [PlannedSearch(name, {"env": "ant"}, {}) for name in ("one", "two")])
    made.record("started", limits={"max_cost": "20", "at_once": 8})
    return made


@pytest.fixture
def saved() -> asyncio.Event:
    """Set once the trainings of a cancelled search are saved."""
    return asyncio.Event()


@pytest.fixture
async def driver(
    intents: IntentsFile, saved: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[BatchDriver]:
    """A driver at work on searches that take some time to save what they have."""

    async def run(self: BatchDriver, active: Active) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await saved.wait()

    monkeypatch.setattr(BatchDriver, "_run", run)
    monkeypatch.setattr("eureka_agent.batch.driver.TICK_S", 0.02)
    settings = BatchSettings.model_validate(intents.now.limits)
    driver = BatchDriver(intents, settings, cast(Machine, BusyMachine()), [])
    with (intents.folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        working = asyncio.create_task(driver.run())
        yield driver
        saved.set()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def ask(driver: BatchDriver, action: str, search: str | None = None, **changes: Any) -> Any:
    """Ask the driver as another process does."""
    return await asyncio.to_thread(ask_batch, driver.folder, action, search, changes)


async def ended(driver: BatchDriver, search: str) -> None:
    """Wait until a search is not under way."""
    async with asyncio.timeout(10):
        while driver.intents.now.searches[search].under_way:
            await asyncio.sleep(0.01)


async def test_a_search_is_cancelling_until_it_is_saved_and_asking_twice_keeps_it_saving(
    driver: BatchDriver, saved: asyncio.Event
) -> None:
    for _ in range(2):
        answer = await ask(driver, "cancel", "one")
        assert answer["searches"] == {"one": "cancelling", "two": "running"}
    await ask(driver, "retune", "one", iterations=3)
    assert not driver.active["one"].task.done()
    saved.set()
    await ended(driver, "one")
    one, _ = searches_of(driver.intents, running=True)
    assert one.state.value == "cancelled"
    assert one.settings["iterations"] == 3
    assert "batch resume" in one.message


async def test_a_search_that_is_cancelling_can_be_brought_back(
    driver: BatchDriver, saved: asyncio.Event
) -> None:
    await ask(driver, "cancel", "one")
    answer = await ask(driver, "resume", "one")
    assert answer["searches"]["one"] == "running"
    cancelled = driver.active["one"]
    saved.set()
    async with asyncio.timeout(10):
        while driver.active.get("one") in (None, cancelled):
            await asyncio.sleep(0.01)
    assert searches_of(driver.intents, running=True)[0].state.value == "running"


async def test_a_pause_holds_trainings_and_requests_until_it_is_taken_back(
    driver: BatchDriver,
) -> None:
    assert (await ask(driver, "pause", "one"))["searches"] == {"one": "paused", "two": "running"}
    held = {name: active.share.held for name, active in driver.active.items()}
    assert held == {"one": True, "two": False}
    assert not driver.active["one"].may_ask.is_set()
    everything = await ask(driver, "pause")
    assert (everything["paused"], everything["trainings"]) == (True, 2)
    assert driver.active["two"].share.held
    assert not (await ask(driver, "resume"))["paused"]
    held = {name: active.share.held for name, active in driver.active.items()}
    assert held == {"one": True, "two": False}
    await ask(driver, "resume", "one")
    assert driver.active["one"].may_ask.is_set()


async def test_limits_of_the_batch_change_and_those_that_cannot_are_refused(
    driver: BatchDriver,
) -> None:
    await ask(driver, "retune", max_cost="30", at_once=1)
    assert driver._settings == BatchSettings(max_cost="30", at_once=1)
    for name, value in {"max_tokens": 5000, "workers": 2, "at_once": -1, "retres": 1}.items():
        with pytest.raises(SettingsError):
            await ask(driver, "retune", **{name: value})
    with pytest.raises(SettingsError, match="'seed' cannot change in a search"):
        await ask(driver, "retune", "one", seed=3)


async def test_a_stop_says_what_it_waits_for(
    driver: BatchDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = await ask(driver, "stop")
    _say_held(answer, "night")
    assert "it ends after 2 trainings under way" in capsys.readouterr().out
    assert "it ends after 2 trainings under way" in driver.intents.now.events[-1].text


def test_a_process_that_does_not_answer_is_told_of(
    intents: IntentsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_TIMEOUT_S", 0.0)
    with (intents.folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(NobodyListensError, match="has not answered"):
            ask_batch(intents.folder, "cancel", "one")
    intents.read()
    assert intents.now.searches["one"].cancelled


@pytest.mark.parametrize(
    ("search", "after"), [("one", ["waiting", "failed"]), ("two", ["cancelled", "waiting"]),
                          (None, ["cancelled", "failed"])],
)  # fmt: skip
def test_a_search_of_a_batch_at_rest_is_brought_back_by_its_name(
    intents: IntentsFile, search: str | None, after: list[str]
) -> None:
    intents.record("cancel", search="one", cancelled=True)
    intents.record("failed", search="two", failed=True)
    answer = ask_batch(intents.folder, "resume", search)
    assert list(answer["searches"].values()) == after
    intents.read()
    assert [each.state.value for each in searches_of(intents)] == after
    assert str(intents.folder / BATCH_COPY) in answer["again"]


def test_other_requests_need_a_process_that_works_on_the_batch(intents: IntentsFile) -> None:
    with pytest.raises(NobodyListensError, match="nobody works on the batch 'night'"):
        ask_batch(intents.folder, "cancel", "one")
    with pytest.raises(EurekaError, match="no search 'three'"):
        ask_batch(intents.folder, "resume", "three")
