from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from decimal import Decimal

import pytest
from model_server import Asked, HttpFailure, ModelServer
from scripted_models import DictionaryStore, ScriptedModel

from eureka_agent.journal.progress import RequestEnded, RequestStarted
from eureka_agent.llm.access import ModelAccess
from eureka_agent.llm.budget import Budget, BudgetSpentError, ModelLimits
from eureka_agent.llm.clients import language_model
from eureka_agent.llm.gateway import Gateway
from eureka_agent.llm.interface import (
    ChatMessage,
    Completion,
    CompletionRequest,
    LanguageModelError,
    Role,
)
from eureka_agent.llm.prices import Price

REQUEST = CompletionRequest(
    messages=(ChatMessage("user", "a reward, please"),), role=Role.REVIEWER, attempt="1-01"
)


def gateway(
    store: DictionaryStore, *, concurrency: int = 8, budget: Budget | None = None
) -> Gateway:
    return Gateway(store, budget or Budget(ModelLimits(), {}), concurrency)


async def until(condition: object, model: ScriptedModel) -> None:
    """Let the loop run until the model has as many requests in flight."""
    async with asyncio.timeout(5):
        while model.in_flight != condition:
            await asyncio.sleep(0)


async def test_a_reply_is_stored_with_who_asked_and_what_it_cost() -> None:
    store = DictionaryStore()
    price = Price(prompt=Decimal("0.001"), completion=Decimal("0.01"), origin="the test")
    message = await gateway(store, budget=Budget(ModelLimits(), {"openai/tiny": price})).ask(
        ScriptedModel(), REQUEST
    )
    assert list(store.messages.values()) == [message]
    assert (message.role, message.attempt, message.reply) == ("reviewer", "1-01", "a reply")
    assert message.cost.money == Decimal("0.6")  # 100 x 0.001 + 50 x 0.01
    assert "a reward, please" in message.request


async def test_the_same_request_is_made_once_also_by_two_at_the_same_time() -> None:
    store, model = DictionaryStore(), ScriptedModel(held=True)
    shared = gateway(store)
    both = asyncio.gather(
        shared.ask(model, REQUEST), shared.ask(model, replace(REQUEST, attempt="1-02"))
    )
    await until(1, model)
    model.let_go()
    first, second = await both
    assert first == second
    assert await gateway(store).ask(model, REQUEST) == first  # another process
    assert len(model.requests) == 1


async def test_no_more_requests_at_a_time_than_were_asked_for() -> None:
    model, shared = ScriptedModel(), gateway(DictionaryStore(), concurrency=3)
    await asyncio.gather(
        *(shared.ask(model, replace(REQUEST, sample=sample)) for sample in range(20))
    )
    assert (len(model.requests), model.most_in_flight) == (20, 3)


async def test_who_goes_away_still_has_the_reply_stored() -> None:
    store, model = DictionaryStore(), ScriptedModel(held=True)
    shared = gateway(store)
    asking = asyncio.create_task(shared.ask(model, REQUEST))
    await until(1, model)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert shared.under_way == 1
    again = asyncio.create_task(shared.ask(model, REQUEST))
    await asyncio.sleep(0)
    model.let_go()
    await shared.finish(5.0)
    assert (len(store.messages), shared.under_way) == (1, 0)
    assert (await again).reply == "a reply"
    assert len(model.requests) == 1


async def test_a_failure_is_told_stored_nowhere_and_may_be_tried_again() -> None:
    class Failing:
        name = "openai/tiny"
        retries = None

        async def complete(self, request: CompletionRequest) -> Completion:
            raise LanguageModelError("no such model")

    store = DictionaryStore()
    shared = gateway(store, concurrency=1)
    for _ in range(3):  # its place is free again
        with pytest.raises(LanguageModelError, match="no such model"):
            await shared.ask(Failing(), REQUEST)
    assert not store.messages
    assert (await shared.ask(ScriptedModel(), REQUEST)).reply == "a reply"


async def test_what_is_stored_is_had_even_when_the_budget_is_spent() -> None:
    store, model = DictionaryStore(), ScriptedModel()
    await gateway(store).ask(model, REQUEST)
    poor = gateway(store, budget=Budget(ModelLimits(), {}, closed="spent"), concurrency=1)
    assert (await poor.ask(model, REQUEST)).reply == "a reply"
    for _ in range(2):
        with pytest.raises(BudgetSpentError):
            await poor.ask(model, replace(REQUEST, sample=1))


async def test_keys_are_struck_from_what_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-key")
    monkeypatch.setenv("EUREKA_TEST_TOKEN", "sk-very-secret-key-and-more")
    store = DictionaryStore()
    model = ScriptedModel(
        reply=lambda request: "your key is sk-very-secret-key, and sk-very-secret-key-and-more"
    )
    message = await gateway(store).ask(
        model, replace(REQUEST, messages=(ChatMessage("user", "sk-very-secret-key"),))
    )
    assert message.reply == "your key is <key>, and <key>"
    assert "secret" not in next(iter(store.messages.values())).model_dump_json()


async def test_a_request_is_told_of_when_it_is_sent_and_when_its_reply_is_stored() -> None:
    store, told = DictionaryStore(), []

    def observer(entry: RequestStarted | RequestEnded) -> None:
        if isinstance(entry, RequestStarted):
            told.append(("sent", entry.model, entry.purpose))
        else:
            told.append(("ended", entry.cost, len(store.messages)))

    model = ScriptedModel(held=True)
    watched = Gateway(store, Budget(ModelLimits(), {}), 1, observer)
    both = asyncio.gather(
        *(watched.ask(model, replace(REQUEST, sample=sample)) for sample in range(2))
    )
    await until(1, model)
    sent = ("sent", "openai/tiny", "review of 1-01")
    assert told == [sent]  # the other one waits for a place
    model.let_go()
    first, second = await both
    assert told[1:] == [("ended", first.cost, 1), sent, ("ended", second.cost, 2)]
    await watched.ask(model, REQUEST)  # it is in the store
    assert len(told) == 4


async def test_only_what_is_under_way_is_waited_for_and_nothing_is_tried_again(
    model_server: ModelServer,
) -> None:
    asked, answer = threading.Event(), threading.Event()

    def fails_late(request: Asked) -> HttpFailure:
        asked.set()
        answer.wait(10)
        return HttpFailure(500)

    told: list[str] = []
    model = language_model(
        "openai/tiny", ModelAccess(base_url=model_server.base_url, on_retry=told.append)
    )
    shared, late = gateway(DictionaryStore()), gateway(DictionaryStore())
    # one pauses for 2 to 6 s by now, the other is under way when the gateway is left, and fails then
    model_server.answers = [HttpFailure(500), fails_late]
    pausing = asyncio.create_task(shared.ask(model, REQUEST))
    async with asyncio.timeout(10):
        while not told:
            await asyncio.sleep(0.01)
    assert shared.under_way == 0
    under_way = asyncio.create_task(late.ask(model, REQUEST))
    await asyncio.to_thread(asked.wait, 10)
    assert late.under_way == 1
    asyncio.get_running_loop().call_later(0.1, answer.set)
    async with asyncio.timeout(1.5):  # less than the shortest pause
        await shared.finish()
        await late.finish()
    assert len(model_server.requests) == 2
    for task in (pausing, under_way):
        with pytest.raises(asyncio.CancelledError):
            await task
    await model.close()
