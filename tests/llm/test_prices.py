from __future__ import annotations

import importlib.metadata
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from eureka_agent.errors import SettingsError
from eureka_agent.llm.prices import Price, find_prices, known_models
from eureka_agent.records import Cost


def table_entry(model: str) -> dict[str, Any]:
    """A model's line in litellm's own table, found through its package metadata, with numbers as
    they are written."""
    files = importlib.metadata.files("litellm") or []
    [table] = [
        each for each in files if each.name.startswith("model_prices") and each.suffix == ".json"
    ]
    return dict(json.loads(Path(str(table.locate())).read_text(), parse_float=str)[model])


def test_a_known_model_has_the_tables_price() -> None:
    """Looked up in the file that litellm ships, by another way than the code under test."""
    entry = table_entry("gpt-4o")
    price = find_prices(["openai/gpt-4o"], [])["openai/gpt-4o"]
    assert price.prompt == Decimal(entry["input_cost_per_token"])
    assert price.completion == Decimal(entry["output_cost_per_token"])
    assert price.cached == Decimal(entry["cache_read_input_token_cost"])
    assert price.origin.startswith("litellm ")


def test_a_model_is_found_under_its_provider_only() -> None:
    assert not find_prices(["openai/of-my-own", "mistral/gpt-4o"], [])
    assert "gemini/gemini-2.5-pro" in find_prices(["gemini/gemini-2.5-pro"], [])


def test_known_models_have_a_price_that_is_known() -> None:
    known = known_models()
    some = {"openai/gpt-4o", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro"}
    assert some <= set(known)
    assert "openai/container" not in known
    some = set(known[::50])
    assert set(find_prices(some, [])) == some


@pytest.mark.parametrize(("model", "line"), [("vertex_ai/gemini-2.5-pro", "gemini-2.5-pro")])
def test_a_provider_has_other_names_in_the_table(model: str, line: str) -> None:
    entry = table_entry(line)
    price = find_prices([model], [])[model]
    assert price.prompt == Decimal(entry["input_cost_per_token"])
    assert price.completion == Decimal(entry["output_cost_per_token"])
    assert not find_prices([f"mistral/{line}"], [])


def test_reasoning_may_have_a_price_of_its_own() -> None:
    model = "dashscope/qwen-plus-2025-04-28"
    entry = table_entry(model)
    plain, dear = (
        Decimal(entry[name])
        for name in ("output_cost_per_token", "output_cost_per_reasoning_token")
    )
    assert dear > 3 * plain
    price = find_prices([model], [])[model]
    cost = Cost(prompt_tokens=0, completion_tokens=1000, reasoning_tokens=900)
    assert price.money(cost) == 900 * dear + 100 * plain
    # a reply that is not made yet, and one whose server does not tell, may be reasoning alone
    unknown = cost.model_copy(update={"reasoning_tokens": None})
    assert price.money(unknown) == 1000 * dear
    assert price.money(cost.model_copy(update={"reasoning_tokens": 0})) == 1000 * plain
    assert price.money(cost.model_copy(update={"reasoning_tokens": 10**9})) == 1000 * dear


def test_what_a_person_says_counts_before_the_table() -> None:
    price = find_prices(["openai/gpt-4o"], ["openai/gpt-4o=0.25,2"])["openai/gpt-4o"]
    assert (price.prompt, price.completion, price.cached) == (
        Decimal("0.00000025"),
        Decimal("0.000002"),
        None,
    )


@pytest.mark.parametrize(
    "text", ["openai/x", "openai/x=1", "openai/x=a,b", "x=nan,1", "x=1,inf", "x=1e999999999,1"]
)
def test_a_price_that_cannot_be_read(text: str) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        find_prices([], [text])


def test_a_second_price_for_a_model_is_an_error() -> None:
    with pytest.raises(SettingsError, match="the second one for 'openai/x'"):
        find_prices(["openai/x"], ["openai/x=1,2", "openai/y=1,2", "openai/x=100,200"])


def test_cached_and_written_tokens_have_prices_of_their_own() -> None:
    price = Price(
        prompt=Decimal(3),
        completion=Decimal(15),
        cached=Decimal("0.3"),
        cache_write=Decimal("3.75"),
        origin="the test",
    )
    cost = Cost(prompt_tokens=1000, completion_tokens=10, cached_tokens=600, cache_write_tokens=200)
    # 200 plain x 3 + 600 x 0.3 + 200 x 3.75 + 10 x 15
    assert price.money(cost) == Decimal(600) + Decimal(180) + Decimal(750) + Decimal(150)
    plain = price.model_copy(update={"cached": None, "cache_write": None})
    assert plain.money(cost) == Decimal(3150)  # all 1,000 as any other
    assert price.money(Cost(prompt_tokens=None, completion_tokens=5)) is None
    assert price.money(Cost(prompt_tokens=5, completion_tokens=None)) is None


def test_a_batch_has_half_the_price_for_every_kind_of_token() -> None:
    price = Price(
        prompt=Decimal(8),
        completion=Decimal(16),
        cached=Decimal(2),
        cache_write=Decimal(10),
        origin="the test",
    )
    # a plain token, two from the cache, one into it, and one of the reply: 8 + 2 x 2 + 10 + 16
    cost = Cost(prompt_tokens=4, completion_tokens=1, cached_tokens=2, cache_write_tokens=1)
    assert price.money(cost) == 38
    assert price.money(cost.model_copy(update={"batched": True})) == 19
