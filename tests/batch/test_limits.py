"""Limits that searches of a batch share, with figures by hand."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from eureka_agent.batch.file import BatchSettings
from eureka_agent.batch.limits import TimeLeft, limits_on_models
from eureka_agent.llm.budget import Budget, BudgetSpentError, ModelLimits
from eureka_agent.llm.interface import ChatMessage, CompletionRequest
from eureka_agent.llm.prices import Price
from eureka_agent.records import Cost, Message
from eureka_agent.search.budget import TimeLimit


def test_time_ends_by_the_stopwatch_and_counts_from_the_begin_of_the_call() -> None:
    stopwatch = [50.0]
    left = TimeLeft("10m", lambda: stopwatch[0])
    limit = left.limit  # as a search under way has it
    stopwatch[0] += 400
    assert limit() == TimeLimit(limit().text, 200.0)
    assert left.is_up() == ""
    left.max_time = "20m"
    assert limit() == TimeLimit(limit().text, 800.0)
    stopwatch[0] += 801
    assert "20m from" in left.is_up()
    left.max_time = None
    assert limit() is None


PRICES = {"m": Price(prompt=Decimal(0), completion=Decimal(10), origin="test")}


def message(prompt: int, completion: int) -> Message:
    cost = Cost(prompt_tokens=prompt, completion_tokens=completion)
    return Message(role="designer", model="m", request="first", reply="reply", cost=cost)


def request(text: str) -> CompletionRequest:
    return CompletionRequest(messages=(ChatMessage("user", text),), max_tokens=1000)


async def test_two_searches_spend_from_one_budget() -> None:
    shared = Budget(limits_on_models(BatchSettings(max_tokens=3000)), PRICES, [])
    closed: list[str] = []
    one = Budget(ModelLimits(), PRICES, shared=shared)
    other = Budget(ModelLimits(tokens=10**9), PRICES, shared=shared, on_closed=closed.append)
    for budget in (one, other):
        reservation = await budget.reserve("m", request("first"))
        await budget.settle(reservation, message(400, 1000))
    assert shared.spent.tokens == 2800
    assert (one.spent.tokens, other.spent.tokens) == (1400, 1400)
    with pytest.raises(BudgetSpentError, match="max_tokens of the batch"):
        await other.reserve("m", request("second"))
    assert closed == [shared.closed]


async def test_a_raised_limit_has_room_again() -> None:
    shared = Budget(limits_on_models(BatchSettings(max_tokens=1000)), PRICES, [])
    spent = await shared.reserve("m", request("first"))
    await shared.settle(spent, message(400, 900))
    with pytest.raises(BudgetSpentError, match="max_tokens of the batch"):
        await shared.reserve("m", request("second"))
    shared.change_limits(limits_on_models(BatchSettings(max_tokens=9000)))
    await Budget(ModelLimits(), PRICES, shared=shared).reserve("m", request("second"))
    assert shared.spent.tokens == 1300  # what was spent stays


async def test_a_request_in_flight_counts_for_all_searches() -> None:
    shared = Budget(limits_on_models(BatchSettings(max_tokens=1000)), PRICES, [])
    one, other = (Budget(ModelLimits(), PRICES, shared=shared) for _ in range(2))
    reservation = await one.reserve("m", request("first"))
    waiting = asyncio.create_task(other.reserve("m", request("second")))
    await asyncio.sleep(0)
    assert not waiting.done()
    await one.release(reservation)  # it failed, and costs nothing
    async with asyncio.timeout(5):
        await other.release(await waiting)
