"""Prices of models' tokens. A run keeps its first prices, so that its ledger never changes."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from eureka_agent.errors import SettingsError
from eureka_agent.llm.litellm_client import providers
from eureka_agent.records import Cost, Record

_TABLE = "model_prices_and_context_window_backup.json"
"""litellm's table in its package, read as a file: an import takes seconds and may fetch one."""
_MILLION = Decimal(1_000_000)
_HIGHEST = Decimal(1_000)
"""Highest price of a token in US dollars; a larger number is a mistake."""


BATCH_SHARE = Decimal("0.5")
"""Price in a batch, at OpenAI and at Anthropic, as a share of the price of a single request. It
holds for all tokens: prompt, reply, read from the cache and written to it."""


class Price(Record):
    """Prices of one model in US dollars per token."""

    prompt: Decimal
    completion: Decimal
    cached: Decimal | None = None
    """Price of a prompt token read from the provider's cache; None: as any other."""
    cache_write: Decimal | None = None
    """Price of a prompt token written to the cache; None: as any other."""
    reasoning: Decimal | None = None
    """Price of a token of the reasoning; None: as any other of the reply."""
    origin: str

    def money(self, cost: Cost) -> Decimal | None:
        """Cost of these tokens; None where their numbers are unknown."""
        if cost.prompt_tokens is None or cost.completion_tokens is None:
            return None
        cached, written = cost.cached_tokens or 0, cost.cache_write_tokens or 0
        plain = max(0, cost.prompt_tokens - cached - written)
        share = BATCH_SHARE if cost.batched else Decimal(1)
        return share * (
            plain * self.prompt
            + cached * (self.prompt if self.cached is None else self.cached)
            + written * (self.prompt if self.cache_write is None else self.cache_write)
            + self._reply(cost.completion_tokens, cost.reasoning_tokens)
        )

    def _reply(self, tokens: int, reasoning_tokens: int | None) -> Decimal:
        """Cost of a reply, at the higher price if it is unknown how much of it is reasoning."""
        reasoning = self.completion if self.reasoning is None else self.reasoning
        if reasoning_tokens is None:
            return tokens * max(reasoning, self.completion)
        thought = min(tokens, reasoning_tokens)
        return thought * reasoning + (tokens - thought) * self.completion


def find_prices(models: Iterable[str], given: Iterable[str]) -> dict[str, Price]:
    """Prices by model: given ones (`<model>=<prompt>,<completion>`), else the table's, if any.
    Raises SettingsError for an invalid or second price of a model."""
    prices: dict[str, Price] = {}
    for text in given:
        name, price = _parse(text)
        if name in prices:
            raise SettingsError(
                f"--price {text!r} is the second one for {name!r}", "give each model one price"
            )
        prices[name] = price
    for model in models:
        if model not in prices and (listed := _from_table(model)) is not None:
            prices[model] = listed
    return prices


def _parse(text: str) -> tuple[str, Price]:
    model, _, numbers = text.rpartition("=")
    parts = numbers.split(",")
    try:
        prompt, completion = (Decimal(part.strip()) / _MILLION for part in parts)
    except (ArithmeticError, ValueError):  # no number, or an overflow
        prompt = completion = Decimal(-1)
    values = (prompt, completion)
    if not model or not all(value.is_finite() and 0 <= value <= _HIGHEST for value in values):
        raise SettingsError(
            f"the price {text!r} cannot be read",
            "write <provider>/<model>=<US dollars for a million tokens of prompts>,<of replies>,"
            " such as openai/mine=0.25,2",
        )
    return model, Price(prompt=prompt, completion=completion, origin="given by --price")


def _from_table(model: str) -> Price | None:
    """The table's price of a model, listed with or without its provider."""
    provider, _, name = model.partition("/")
    entry = _table().get(model)
    if entry is None and _provider(_table().get(name)) == provider:
        entry = _table()[name]
    if entry is None:
        return None
    prompt, completion = (
        _number(entry.get(key)) for key in ("input_cost_per_token", "output_cost_per_token")
    )
    if prompt is None or completion is None:
        return None
    return Price(
        prompt=prompt,
        completion=completion,
        cached=_number(entry.get("cache_read_input_token_cost")),
        cache_write=_number(entry.get("cache_creation_input_token_cost")),
        reasoning=_number(entry.get("output_cost_per_reasoning_token")),
        origin=f"litellm {importlib.metadata.version('litellm')}",
    )


def known_models() -> list[str]:
    """The table's models that reply in text at a known price, as `<provider>/<model>`, of providers
    that litellm can ask."""
    can_ask = providers()
    found = (
        (provider, name)
        for name, entry in _table().items()
        if (provider := _provider(entry)) in can_ask and _writes(name, entry)
    )
    starts = ((f"{provider}/", name) for provider, name in found)
    return sorted({name if name.startswith(start) else start + name for start, name in starts})


def _provider(entry: object) -> str:
    """The provider of an entry, by the name that requests have: the table's tells more."""
    name = str(entry.get("litellm_provider")) if isinstance(entry, dict) else ""
    return re.sub(r"^vertex_ai-.*", "vertex_ai", name).removesuffix("_converse")


def _writes(name: str, entry: Mapping[str, Any]) -> bool:
    """True for a model whose replies are text alone, without web search and computer use."""
    replies = entry.get("supported_output_modalities") or ["text"]
    prices = (entry.get(key) for key in ("input_cost_per_token", "output_cost_per_token"))
    return (
        entry.get("mode") in ("chat", "responses")
        and all(_number(price) is not None for price in prices)
        and replies == ["text"]
        and re.search(r"^ft:|audio|-search-|deep-research|computer-use", name) is None
    )


def _number(value: object) -> Decimal | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Decimal(str(value)) if is_number else None


@cache
def _table() -> Mapping[str, Any]:
    """litellm's table; empty if it is missing or has moved: prices are unknown then."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    try:
        table = json.loads((Path(spec.origin).parent / _TABLE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}
