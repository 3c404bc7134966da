"""Requests and tokens of a search before it starts; no model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest

from eureka_agent.records import ParameterSpec, TaskDescription
from eureka_agent.report.plan import RoleEstimate
from eureka_agent.search.estimator import (
    LATER_TOKENS,
    REPLY_TOKENS,
    count_requests,
)
from eureka_agent.search.models import models_of
from eureka_agent.settings import SearchSettings

PRICES = ("openai/one=1,10", "openai/two=2,20")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


async def counted(description: TaskDescription, **values: object) -> Sequence[RoleEstimate]:
    given = {"model": ("openai/one",), "reviewer": "off", "analyst": "off", "price": PRICES[:1]}
    settings = SearchSettings.model_validate({"samples": 8, "iterations": 3, **given, **values})
    models = models_of(settings, lambda reason: None)
    assert models is not None
    try:
        return await count_requests(models, settings, description)
    finally:
        await models.close()


async def test_later_prompts_hold_what_was_learned(description: TaskDescription) -> None:
    (first,) = await counted(description, iterations=1)
    (all_,) = await counted(description)
    (fresh,) = await counted(description, strategy="best-of-n")
    assert (first.requests, all_.requests, fresh.requests) == (8, 24, 24)
    prompt = first.prompt_tokens // 8
    # sixteen of the 24 prompts are longer
    assert all_.prompt_tokens // 24 == prompt + LATER_TOKENS * 16 // 24
    assert fresh.prompt_tokens == 24 * prompt
    assert all_.reply_tokens == 24 * REPLY_TOKENS["designer"]


async def test_money_is_tokens_at_their_price(description: TaskDescription) -> None:
    (found,) = await counted(description, iterations=1, reply_tokens=100)
    assert found.reply_tokens == 800  # the bound is below the usual length
    assert found.money == Decimal(found.prompt_tokens + 10 * 800) / 1_000_000
    (unpriced,) = await counted(description, model=("openai/mine",), price=())
    assert unpriced.money is None


async def test_models_share_the_proposals(description: TaskDescription) -> None:
    found = await counted(description, model=("openai/one", "openai/two"), price=PRICES, samples=7)
    assert [(each.model, each.requests) for each in found] == [
        ("openai/one", 10),
        ("openai/two", 11),
    ]


async def test_every_role_counts(description: TaskDescription) -> None:
    found = await counted(description, reviewer="openai/one", analyst="auto")
    requests = {each.role: each.requests for each in found}
    # a named reviewer reads every reward, the analyst the best attempt before a later generation
    assert requests == {"designer": 24, "reviewer": 24, "analyst": 2}
    reviewer = next(each for each in found if each.role == "reviewer")
    designer = next(each for each in found if each.role == "designer")
    # a reward of 1,500 characters beside what a first design request has
    assert (
        reviewer.prompt_tokens // 24
        == (designer.prompt_tokens // 24 - LATER_TOKENS * 16 // 24) + 375
    )
    doubted = await counted(description, reviewer="auto")
    assert {each.role: each.requests for each in doubted} == {"designer": 24, "reviewer": 3}
    judged = await counted(description, fitness="judged", iterations=1)
    # two comparisons for each of eight attempts, and the question if the model sees
    assert {each.role: each.requests for each in judged} == {"designer": 8, "judge": 17}
    written = await counted(description, fitness="written", sentence="wave", iterations=1)
    assert {each.role: each.requests for each in written} == {"metric": 1, "designer": 8}
    mass = ParameterSpec(name="mass", default=1.0, low=0.5, high=2.0)
    with_mass = description.model_copy(update={"parameters": (mass,)})
    randomised = await counted(with_mass, randomise=4, iterations=1)
    assert {each.role: each.requests for each in randomised} == {"designer": 8, "randomiser": 1}
