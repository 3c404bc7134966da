"""Requests that the budget lets pass, with amounts worked out by hand: a prompt costs $1 and a
reply $10 for a million tokens."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from eureka_agent.llm.budget import Budget, BudgetSpentError, ModelLimits
from eureka_agent.llm.interface import ChatMessage, CompletionRequest
from eureka_agent.llm.prices import Price
from eureka_agent.records import Cost, Message

MILLION = Decimal(1_000_000)
PRICES = {"openai/tiny": Price(prompt=1 / MILLION, completion=10 / MILLION, origin="the test")}


def request(characters: int = 4000, max_tokens: int | None = None) -> CompletionRequest:
    return CompletionRequest(
        messages=(ChatMessage("user", "x" * characters),), max_tokens=max_tokens
    )


def cost(prompt: int | None, completion: int | None) -> Cost:
    return Cost(prompt_tokens=prompt, completion_tokens=completion)


def message(prompt: int | None, completion: int | None, **texts: str) -> Message:
    spent = {"role": "designer", "model": "openai/tiny", "request": "", "reply": ""}
    return Message(**{**spent, **texts}, cost=cost(prompt, completion))


async def spend(budget: Budget, prompt: int | None, completion: int | None, **texts: str) -> None:
    reservation = await budget.reserve("openai/tiny", request())
    await budget.settle(reservation, message(prompt, completion, **texts))


async def test_the_first_request_beyond_the_limit_is_turned_down_and_all_after_it() -> None:
    told: list[str] = []
    budget = Budget(ModelLimits(money=Decimal("0.0100")), PRICES, on_closed=told.append)
    for _ in range(3):
        await spend(budget, 1000, 200)  # $0.003 each; what the fourth is expected to cost too
    with pytest.raises(BudgetSpentError, match=r"\$0\.0090 of \$0\.0100 \(--max-cost\) are spent"):
        await budget.reserve("openai/tiny", request())
    assert len(told) == 1
    with pytest.raises(BudgetSpentError):  # though a short one would have fitted
        await budget.reserve("openai/tiny", request(4, max_tokens=1))
    assert len(told) == 1


async def test_tokens_are_limited_without_any_price() -> None:
    budget = Budget(ModelLimits(tokens=2_500), {})
    await spend(budget, 900, 100)
    await spend(budget, 900, 100)
    with pytest.raises(
        BudgetSpentError,
        match=(
            r"2,000 of 2,500 tokens \(--max-tokens\) are spent, and the next one takes about 1,000"
        ),
    ):
        await budget.reserve("openai/tiny", request())


async def test_near_the_limit_requests_wait_for_those_in_flight() -> None:
    # each takes 1,000 tokens of prompt and at most 1,000 of reply: 2,000 at most in flight, so the
    # second one waits
    budget = Budget(ModelLimits(tokens=4_500), {})
    first = await budget.reserve("openai/tiny", request(3_996, max_tokens=1_000))
    second = await budget.reserve("openai/tiny", request(3_996, max_tokens=1_000))
    waiting = asyncio.create_task(budget.reserve("openai/tiny", request(3_996, max_tokens=1_000)))
    await asyncio.sleep(0)
    assert not waiting.done()  # 2,000 + 2,000 set aside, and the third's prompt alone takes 1,000
    await budget.settle(
        first, message(1_000, 100)
    )  # 1,100 in place of 2,000: now 1,100 + 2,000 + 1,100 fit
    assert await asyncio.wait_for(waiting, 1)
    await budget.release(second)


@pytest.mark.parametrize("reply_tokens", [1_000])
async def test_with_many_at_a_time_the_limit_is_passed_by_less_than_one_request(
    reply_tokens: int,
) -> None:
    limit, one = 40_000, 1_000 + reply_tokens
    budget = Budget(ModelLimits(tokens=limit), {})

    async def ask() -> None:
        reservation = await budget.reserve("openai/tiny", request())
        for _ in range(3):
            await asyncio.sleep(0)
        await budget.settle(reservation, message(1_000, reply_tokens))

    results = await asyncio.gather(*(ask() for _ in range(100)), return_exceptions=True)
    assert any(isinstance(result, BudgetSpentError) for result in results)
    assert limit - one < budget.spent.tokens < limit + one


async def test_a_model_that_has_reasoned_for_long_may_do_so_again() -> None:
    """Replies of 60,000 tokens, which no bound forbids, after one such and nine short ones: eight
    in flight, each taken for 16,000, would fit."""
    replies = [60_000, *[100] * 9]
    spent = [
        Message(role="designer", model="openai/tiny", request="", reply="", cost=cost(1_000, n))
        for n in replies
    ]
    budget = Budget(ModelLimits(tokens=200_000), {}, spent)

    async def ask() -> None:
        reservation = await budget.reserve("openai/tiny", request())
        for _ in range(3):
            await asyncio.sleep(0)
        await budget.settle(reservation, message(1_000, 60_000))

    results = await asyncio.gather(*(ask() for _ in range(20)), return_exceptions=True)
    assert any(isinstance(result, BudgetSpentError) for result in results)
    assert budget.spent.tokens < 200_000 + 61_000
    another = await Budget(ModelLimits(tokens=200_000), {}, spent).reserve(
        "openai/other", request()
    )
    assert another.most.tokens == 1_001 + 16_000


async def test_tokens_that_a_server_did_not_count_are_estimated_for_the_limit() -> None:
    budget = Budget(ModelLimits(tokens=10_000), PRICES)
    await spend(
        budget, None, None, request="x" * 8_000, reply="y" * 2_000
    )  # four characters a token
    assert (budget.spent.tokens, budget.spent.money) == (2_500, Decimal("0.007"))


async def test_a_run_that_was_turned_down_before_asks_nobody() -> None:
    budget = Budget(ModelLimits(tokens=10_000_000), {}, closed="it was spent")
    with pytest.raises(BudgetSpentError, match="it was spent"):
        await budget.reserve("openai/tiny", request())


async def test_no_request_after_the_time_is_up() -> None:
    up = ""
    budget = Budget(ModelLimits(), {}, time_is_up=lambda: up)
    await spend(budget, 1, 1)
    up = "8 h have passed"
    with pytest.raises(BudgetSpentError, match="8 h have passed"):
        await budget.reserve("openai/tiny", request())
