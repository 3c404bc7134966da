"""Requests in batches: the real SDKs against a server with the batch endpoints of both providers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from batch_server import Batch, BatchServer, send_page
from model_server import Asked, HttpFailure, Reply
from scripted_models import DictionaryStore

from eureka_agent.journal.entries import BaseEntry, Notice
from eureka_agent.journal.progress import (
    RequestBatchAwaited,
    RequestBatchEnded,
    RequestBatchPlanned,
    RequestBatchSent,
)
from eureka_agent.journal.state import Recorded, RunState
from eureka_agent.llm.access import ModelAccess
from eureka_agent.llm.batches import RequestBatches
from eureka_agent.llm.breaker import Breaker, RetryPolicy
from eureka_agent.llm.budget import Budget, BudgetSpentError, ModelLimits
from eureka_agent.llm.clients import language_model
from eureka_agent.llm.gateway import Gateway
from eureka_agent.llm.interface import ChatMessage, CompletionRequest, LanguageModelError, Role
from eureka_agent.llm.prices import Price
from eureka_agent.records import Message

WAIT_S = 0.04
PRICE = Price(
    prompt=Decimal("0.01"),
    completion=Decimal("0.1"),
    cached=Decimal("0.001"),
    cache_write=Decimal("0.02"),
    origin="the test",
)
REPLY = Reply(
    text="a reply", prompt_tokens=100, completion_tokens=10, cached_tokens=40, cache_write_tokens=0
)
HALF = Decimal("0.82")
"""Half of 60 x 0.01 + 40 x 0.001 + 10 x 0.1."""
MODELS = {"chat": "openai/tiny", "responses": "openai/tiny", "messages": "anthropic/tiny"}


def request(number: int = 0, role: Role = Role.DESIGNER) -> CompletionRequest:
    return CompletionRequest(
        messages=(ChatMessage("system", "you design"), ChatMessage("user", f"reward {number}")),
        temperature=0.5,
        max_tokens=200,
        role=role,
    )


@dataclass
class Driver:
    """A process of a run: what it stores outlives it."""

    server: BatchServer
    api: str = "chat"
    store: DictionaryStore = field(default_factory=DictionaryStore)
    entries: list[BaseEntry] = field(default_factory=list)
    limits: ModelLimits = field(default_factory=ModelLimits)
    tries: int = 6

    @property
    def state(self) -> RunState:
        state = RunState()
        for number, entry in enumerate(self.entries):
            state.apply(Recorded(number, "", 0.0, entry))
        return state

    @asynccontextmanager
    async def process(
        self, *, collects: bool = True, outage_s: float = 3600.0
    ) -> AsyncIterator[Any]:
        """Gives a function that asks for a request's reply."""
        policy = RetryPolicy(tries=self.tries, first_wait_s=0.01, random=lambda: 0.0)
        name = MODELS[self.api]
        api: Any = self.api if self.api != "messages" else "auto"
        access = ModelAccess(base_url=self.server.base_url, api=api, breaker=Breaker(policy))
        model = language_model(name, access)
        budget = Budget(self.limits, {name: PRICE}, self.store.messages.values())
        known = self.state.open_batches()
        for key, batch in known.items():
            if key not in self.store.messages:
                each = next(each for each in batch.requests if each.key == key)
                budget.owe(name, each)
        batches = RequestBatches(
            self.entries.append,
            known,
            collects=collects,
            wait_s=WAIT_S,
            outage_s=outage_s,
            policy=policy,
        )
        gateway = Gateway(self.store, budget, 1, batches=batches)

        async def ask(request: CompletionRequest) -> Message:
            return await gateway.ask(model, request)

        try:
            yield ask
        finally:
            await gateway.finish(5.0)
            await model.close()

    def of(self, kind: type[BaseEntry]) -> list[Any]:
        return [entry for entry in self.entries if isinstance(entry, kind)]

    async def until(self, kind: type[BaseEntry]) -> None:
        async with asyncio.timeout(10):
            while not self.of(kind):
                await asyncio.sleep(0.01)


@pytest.fixture
def batch_server() -> Iterator[BatchServer]:
    with BatchServer([REPLY]) as server:
        yield server


@pytest.fixture(params=MODELS)
def driver(request: pytest.FixtureRequest, batch_server: BatchServer) -> Driver:
    return Driver(batch_server, request.param)


async def test_requests_go_in_one_batch_at_half_the_price(driver: Driver) -> None:
    async with driver.process() as ask:
        # more than the one request at a time that the gateway allows without batches
        messages = await asyncio.gather(*(ask(request(number)) for number in range(3)))
    server = driver.server
    assert (len(server.batches), len(server.requests)) == (1, 0)
    assert sorted(server.made.values()) == [1, 1, 1]
    assert [message.reply for message in messages] == ["a reply"] * 3
    assert {message.cost.money for message in messages} == {HALF}
    assert all(message.cost.batched for message in messages)
    asked = next(iter(server.batches[0].requests.values()))
    assert (asked.system, asked.prompt) == ("you design", "reward 0")
    assert asked.body["temperature"] == 0.5
    assert "timeout" not in asked.body
    (awaited,) = driver.of(RequestBatchAwaited)
    assert (awaited.model, awaited.requests) == (MODELS[driver.api], 3)
    assert driver.of(RequestBatchEnded)[0].unanswered == ()


async def test_a_person_does_not_wait_for_a_batch(driver: Driver) -> None:
    async with driver.process() as ask:
        message = await ask(request(role=Role.READER))
    assert (len(driver.server.batches), len(driver.server.requests)) == (0, 1)
    assert (message.cost.money, message.cost.batched) == (2 * HALF, False)


@pytest.mark.parametrize("undone", ["expired", "canceled", "missing"])
async def test_requests_that_a_batch_did_not_get_to_go_into_the_next(
    driver: Driver, undone: Any
) -> None:
    def fate(asked: Asked, batch: int) -> Any:
        return undone if batch == 0 and asked.prompt != "reward 1" else None

    driver.server.fate = fate
    driver.server.at_end = {"canceled": "cancelled", "missing": "completed"}.get(undone, undone)
    async with driver.process() as ask:
        messages = await asyncio.gather(*(ask(request(number)) for number in range(3)))
    # the finished reply of the first batch is used, the two others are asked for again
    assert [len(batch.requests) for batch in driver.server.batches] == [3, 2]
    assert sorted(driver.server.made.values()) == [1, 1, 1]
    assert sum(message.cost.money or 0 for message in messages) == 3 * HALF


async def test_a_passing_error_of_one_request_is_tried_again_and_given_up_at_last(
    driver: Driver,
) -> None:
    failure = HttpFailure(529, "too busy", "overloaded_error")
    driver.tries = 3
    driver.server.fate = lambda asked, batch: failure if asked.prompt == "reward 0" else None
    async with driver.process() as ask:
        results = await asyncio.gather(ask(request(0)), ask(request(1)), return_exceptions=True)
    assert isinstance(results[0], LanguageModelError)
    assert "too busy (3 tries)" in results[0].message
    assert isinstance(results[1], Message)
    assert [len(batch.requests) for batch in driver.server.batches] == [2, 1, 1]


async def test_a_lasting_error_is_not_repeated_but_asked_anew_by_a_resumed_run(
    driver: Driver,
) -> None:
    failure = HttpFailure(400, "temperature is not supported", "invalid_request_error")
    driver.server.fate = lambda asked, batch: failure if batch == 0 else None
    async with driver.process() as ask:
        with pytest.raises(LanguageModelError, match="temperature is not supported") as caught:
            await ask(request())
    assert "--temperature" in (caught.value.hint or "")
    assert len(driver.server.batches) == 1
    async with driver.process() as ask:
        assert (await ask(request())).reply == "a reply"


@pytest.mark.parametrize("resumed_with_batches", [True, False])
async def test_a_stopped_run_leaves_its_batch_and_takes_the_replies_when_resumed(
    driver: Driver, resumed_with_batches: bool
) -> None:
    driver.server.held = True
    async with driver.process() as ask:
        asking = [asyncio.create_task(ask(request(number))) for number in range(2)]
        await driver.until(RequestBatchSent)
        stopped = time.monotonic()
    assert time.monotonic() - stopped < 2
    await asyncio.gather(*asking, return_exceptions=True)
    assert not driver.store.messages
    driver.server.end()
    async with driver.process(collects=resumed_with_batches) as ask:
        messages = await asyncio.gather(*(ask(request(number)) for number in range(2)))
        later = await ask(request(2))
    assert {message.cost.money for message in messages} == {HALF}
    assert later.cost.batched is resumed_with_batches
    assert sorted(driver.server.made.values()) == [1] * (3 if resumed_with_batches else 2)
    assert len(driver.server.requests) == (0 if resumed_with_batches else 1)
    # what is stored is not looked for again
    polls = driver.server.polls.copy()
    async with driver.process() as ask:
        assert await ask(request(0)) == messages[0]
    assert driver.server.polls == polls


async def test_killed_before_all_replies_of_a_batch_are_stored_it_reads_them_again(
    driver: Driver,
) -> None:
    async with driver.process() as ask:
        await asyncio.gather(*(ask(request(number)) for number in range(2)))
    driver.store.messages.popitem()
    async with driver.process() as ask:
        await asyncio.gather(*(ask(request(number)) for number in range(2)))
    assert len(driver.store.messages) == 2
    assert len(driver.server.batches) == 1


async def test_answers_that_are_no_batches_are_named_and_the_batch_is_kept(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.server.held = True
    async with driver.process() as ask:
        asking = asyncio.create_task(ask(request()))
        await driver.until(RequestBatchSent)
        monkeypatch.setattr(BatchServer, "_show", lambda self, handler, path: send_page(handler))
        with pytest.raises(LanguageModelError, match="answers, but not as"):
            await asking
    monkeypatch.undo()
    driver.server.end()
    driver.entries = driver.of(RequestBatchPlanned)
    monkeypatch.setattr(BatchServer, "_list", lambda self, handler, path: send_page(handler))
    async with driver.process() as ask:
        with pytest.raises(LanguageModelError, match="answers, but not as"):
            await ask(request())
    assert len(driver.server.batches) == 1
    assert len(driver.state.open_batches()) == 1


async def test_a_batch_whose_creation_has_no_answer_is_found_and_not_sent_again(
    driver: Driver,
) -> None:
    driver.server.on_creation = "lose"
    async with driver.process() as ask:
        messages = await asyncio.gather(*(ask(request(number)) for number in range(2)))
    assert [message.reply for message in messages] == ["a reply"] * 2
    assert len(driver.server.batches) == 1


async def test_a_batch_that_was_sent_but_not_noted_is_found_by_a_resumed_run(
    driver: Driver,
) -> None:
    driver.server.held = True
    async with driver.process() as ask:
        asking = [asyncio.create_task(ask(request(number))) for number in range(2)]
        await driver.until(RequestBatchSent)
    await asyncio.gather(*asking, return_exceptions=True)
    driver.entries = driver.of(RequestBatchPlanned)  # the kill came before the others
    driver.server.page_size = 1
    later = Batch("later", driver.server.batches[0].kind, {})
    driver.server.batches.append(later)
    async with driver.process() as ask:
        again = [asyncio.create_task(ask(request(number))) for number in range(2)]
        # another run's batch of as many requests is no reason to think that this one is there
        if driver.api == "messages":
            await driver.until(Notice)
        driver.server.end()
        await asyncio.gather(*again)
    assert len(driver.server.batches) == 2
    assert sorted(driver.server.made.values()) == [1, 1]


async def test_a_batch_that_was_planned_but_never_sent_is_sent_by_a_resumed_run(
    driver: Driver,
) -> None:
    other = Driver(driver.server, driver.api)
    async with other.process() as ask:  # of another run, at the same time
        await ask(request(7))
    async with driver.process() as ask:
        await ask(request())
    driver.entries = driver.of(RequestBatchPlanned)
    driver.store.messages.clear()
    del driver.server.batches[1:]
    async with driver.process() as ask:
        assert (await ask(request())).reply == "a reply"
    assert [len(batch.requests) for batch in driver.server.batches] == [1, 1]
    assert len(driver.of(RequestBatchPlanned)) == 2


async def test_a_server_without_batches_is_named_with_the_next_step(driver: Driver) -> None:
    driver.server.on_creation = HttpFailure(404, "no such path")
    async with driver.process() as ask:
        with pytest.raises(LanguageModelError, match="no such path") as caught:
            await ask(request())
    assert "--no-llm-batch" in (caught.value.hint or "")
    assert driver.state.open_batches() == {}


async def test_the_budget_counts_half_the_price_and_what_a_batch_owes(
    batch_server: BatchServer,
) -> None:
    # the first request may take half of 5 x 0.01 + 200 x 0.1 = 10.025 dollars, and is owed then;
    # another prompt of 0.025 dollars does not fit any more
    driver = Driver(batch_server, limits=ModelLimits(money=Decimal("10.03")))
    batch_server.held = True
    async with driver.process() as ask:
        asking = asyncio.create_task(ask(request()))
        await driver.until(RequestBatchSent)
    await asyncio.gather(asking, return_exceptions=True)
    async with driver.process() as ask:
        with pytest.raises(BudgetSpentError):
            await ask(request(1))
        batch_server.end()
        assert (await ask(request())).cost.money == HALF  # it is paid for, so it is not refused
