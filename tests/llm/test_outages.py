"""A model's server that is out, over real HTTP: its requests wait on a clock of the test's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from model_server import Asked, HttpFailure, ModelServer
from outage_clock import TRIES, Clock, Search
from scripted_models import DictionaryStore, ScriptedModel

from eureka_agent.llm.budget import Budget, ModelLimits
from eureka_agent.llm.gateway import Gateway
from eureka_agent.llm.interface import ChatMessage, CompletionRequest, LanguageModelError

REQUEST = CompletionRequest(messages=(ChatMessage("user", "a reward, please"),), attempt="1-01")
BUSY = HttpFailure(503, "overloaded")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def search(model_server: ModelServer, clock: Clock) -> AsyncIterator[Search]:
    found = Search(clock, clock.breakers(), model_server.base_url, store=DictionaryStore())
    yield found
    await found.model.close()


def numbered(count: int) -> list[CompletionRequest]:
    return [replace(REQUEST, sample=sample) for sample in range(count)]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


class Switch:
    """A server that is out until it is mended, and counts requests in flight."""

    def __init__(self, failure: Any = BUSY) -> None:
        self.failure = failure
        self.out_for = 10**9
        """Requests that fail from now on."""
        self.at_once = self.most_at_once = 0

    def __call__(self, asked: Asked) -> Any:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(0.005)  # long enough for a second one to be seen
        self.at_once -= 1
        self.out_for -= 1
        return self.failure if self.out_for >= 0 else "a reply"


async def test_requests_wait_one_tries_and_all_go_on(
    search: Search, model_server: ModelServer, clock: Clock
) -> None:
    model_server.answers = switch = Switch()
    switch.out_for = TRIES + 3
    first, *others = numbered(6)
    asking = [asyncio.create_task(search.gateway.ask(search.model, first))]
    await until(lambda: search.retries.is_out)
    switch.most_at_once = 0
    asking += [asyncio.create_task(search.gateway.ask(search.model, each)) for each in others]
    replies = await asyncio.gather(*asking)
    assert [each.reply for each in replies] == ["a reply"] * 6
    # two tries before the outage, three in it, and each request once
    assert len(model_server.requests) == TRIES + 3 + 6
    # 30 + 60 + 120 + 240 s, on a clock that nothing else moves
    assert clock.now == 1000 + 450
    assert search.told == [
        "openai/tiny does not answer (HTTP 503): its requests wait, at most 10 min (--outage),"
        " tried again in 30 s; trainings go on",
        "openai/tiny still does not answer (HTTP 503), tried again in 60 s",
        "openai/tiny still does not answer (HTTP 503), tried again in 120 s",
        "openai/tiny still does not answer (HTTP 503), tried again in 240 s",
        "openai/tiny answers again after 450 s: its requests go on",
    ]


async def test_at_the_limit_all_fail_with_the_servers_error_after_a_last_try(
    search: Search, model_server: ModelServer, clock: Clock
) -> None:
    model_server.answers = [BUSY]
    failed = await asyncio.gather(
        *(search.gateway.ask(search.model, each) for each in numbered(3)), return_exceptions=True
    )
    assert clock.now == 1600
    for error in failed:
        assert isinstance(error, LanguageModelError)
        assert "answers with HTTP 503: overloaded" in error.message
        assert error.message.endswith("; it has been out for 10 min")
        assert "a longer --outage waits more" in error.hint
    # one that comes later is made once, without a wait, and its reply ends the outage
    made = len(model_server.requests)
    with pytest.raises(LanguageModelError):
        await search.gateway.ask(search.model, REQUEST)
    assert len(model_server.requests) == made + 1
    model_server.answers = ["a reply"]
    assert (await search.gateway.ask(search.model, REQUEST)).reply == "a reply"
    assert clock.now == 1600
    assert not search.retries.is_out
    assert search.told[-1] == "openai/tiny answers again after 10 min: its requests go on"


async def test_other_models_have_places_and_room_in_the_budget_meanwhile(
    model_server: ModelServer, clock: Clock
) -> None:
    model_server.answers = [BUSY]
    store = DictionaryStore()
    search = Search(clock, clock.breakers(), model_server.base_url, store=store)
    # each reserves 16,000 tokens at most, so there is room for a single request in flight
    budget = Budget(ModelLimits(tokens=20_000), {})
    gateway = Gateway(store, budget, 1)
    clock.runs.clear()
    waiting = asyncio.create_task(gateway.ask(search.model, REQUEST))
    await until(lambda: search.retries.is_out and gateway.under_way == 0)
    async with asyncio.timeout(5):
        other = await gateway.ask(ScriptedModel("anthropic/other"), REQUEST)
    assert other.reply == "a reply"
    model_server.answers = ["late"]
    clock.runs.set()
    assert (await waiting).reply == "late"
    await search.model.close()


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (HttpFailure(401, "no such key"), "does not accept the key"),
        (HttpFailure(429, "no credit", code="insufficient_quota"), "refuses more requests"),
        (HttpFailure(429, "tomorrow", retry_after="90000"), "asks to wait 25 h"),
    ],
)
async def test_what_no_wait_mends_is_told_at_once(
    search: Search, model_server: ModelServer, clock: Clock, failure: HttpFailure, message: str
) -> None:
    model_server.answers = [failure]
    with pytest.raises(LanguageModelError, match=message):
        await search.gateway.ask(search.model, REQUEST)
    assert (len(model_server.requests), clock.now, search.told) == (1, 1000, [])


async def test_an_address_that_never_answered_is_no_outage_and_one_that_did_is(
    clock: Clock,
) -> None:
    with ModelServer(["a reply"]) as server:
        search = Search(clock, clock.breakers(), server.base_url, store=DictionaryStore())
        await search.gateway.ask(search.model, REQUEST)
        breakers = clock.breakers()
        known = Search(clock, breakers, server.base_url, store=DictionaryStore())
    unknown = Search(clock, clock.breakers(), server.base_url, store=DictionaryStore())
    with pytest.raises(LanguageModelError, match="cannot reach"):
        await unknown.gateway.ask(unknown.model, REQUEST)
    assert clock.now == 1000
    with pytest.raises(LanguageModelError, match=r"cannot reach .* out for 10 min"):
        await search.gateway.ask(search.model, replace(REQUEST, sample=1))
    assert clock.now == 1600
    # a search that shares its breaker with one that was answered takes its word
    known.retries.breaker.reached = True
    fresh = Search(clock, breakers, server.base_url, store=DictionaryStore(), limit_s=60)
    with pytest.raises(LanguageModelError, match="out for 60 s"):
        await fresh.gateway.ask(fresh.model, REQUEST)
    for each in (search, known, unknown, fresh):
        await each.model.close()


async def test_searches_share_an_outage_and_each_keeps_its_own_limit(
    model_server: ModelServer, clock: Clock
) -> None:
    model_server.answers = switch = Switch()
    breakers, store = clock.breakers(), DictionaryStore()
    patient = Search(clock, breakers, model_server.base_url, store=store)
    hasty = Search(clock, breakers, model_server.base_url, store=DictionaryStore(), limit_s=60)
    elsewhere = Search(clock, breakers, model_server.root, store=store, name="openai/other")
    clock.runs.clear()
    one = asyncio.create_task(patient.gateway.ask(patient.model, REQUEST))
    await until(lambda: patient.retries.is_out and patient.gateway.under_way == 0)
    assert hasty.retries.is_out
    assert not elsewhere.retries.is_out
    two = asyncio.create_task(hasty.gateway.ask(hasty.model, REQUEST))
    await until(lambda: bool(hasty.told))
    assert len(model_server.requests) == TRIES  # the second search need not find out
    switch.out_for = 2  # at 30 s and, for the hasty one, at 60 s
    clock.runs.set()
    with pytest.raises(LanguageModelError, match="out for 60 s"):
        await two
    assert (await one).reply == "a reply"
    assert clock.now == 1090
    assert [len(each.told) for each in (patient, hasty, elsewhere)] == [4, 2, 0]
    for each in (patient, hasty, elsewhere):
        await each.model.close()


async def test_a_stop_ends_requests_that_wait_and_another_one_tries(
    search: Search, model_server: ModelServer, clock: Clock
) -> None:
    model_server.answers = [BUSY]
    clock.runs.clear()
    first, second = (
        asyncio.create_task(search.gateway.ask(search.model, each)) for each in numbered(2)
    )
    await until(lambda: search.retries.is_out and search.gateway.under_way == 0)
    first.cancel()
    await asyncio.wait({first})
    assert first.cancelled()
    model_server.answers = ["a reply"]
    clock.runs.set()
    assert (await second).reply == "a reply"
    await search.gateway.finish()
