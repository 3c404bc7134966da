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
from eureka_agent.records import Cost, Record

_TABLE = "model_prices_and_context_window_backup.json"
"""litellm's table in its package, read as a file: an import takes seconds and may fetch one."""
_FIELDS = {
    "prompt": "input_cost_per_token",
    "completion": "output_cost_per_token",
    "cached": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "reasoning": "output_cost_per_reasoning_token",
}
"""Names of a price's parts in the table."""
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
        if cost.prompt_tokens is None or cost.completion_tokens is None:
            return None
        cached, written = cost.cached_tokens or 0, cost.cache_write_tokens or 0
        plain = max(0, cost.prompt_tokens - cached - written)
        reply = cost.completion_tokens
        reasoning = self.completion if self.reasoning is None else self.reasoning
        # where it is unknown how much of it is reasoning, the higher price counts
        most = reply if reasoning > self.completion else 0
        thought = most if cost.reasoning_tokens is None else min(reply, cost.reasoning_tokens)
        share = BATCH_SHARE if cost.batched else Decimal(1)
        return share * (
            plain * self.prompt
            + cached * (self.prompt if self.cached is None else self.cached)
            + written * (self.prompt if self.cache_write is None else self.cache_write)
            + thought * reasoning
            + (reply - thought) * self.completion
        )


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
    found = {field: _number(entry.get(key)) for field, key in _FIELDS.items()}
    if found["prompt"] is None or found["completion"] is None:
        return None
    origin = f"litellm {importlib.metadata.version('litellm')}"
    return Price.model_validate({**found, "origin": origin})


def known_models() -> list[str]:
    """The table's models for conversations at a known price, as `<provider>/<model>`."""
    known = {
        f"{provider}/{name.removeprefix(f'{provider}/')}"
        for name, entry in _table().items()
        if (provider := _provider(entry))
        and entry.get("mode") in ("chat", "responses")
        and all(_number(entry.get(_FIELDS[part])) is not None for part in ("prompt", "completion"))
    }
    return sorted(known)


def _provider(entry: object) -> str:
    """The provider of an entry, by the name that requests have: the table's tells more."""
    name = str(entry.get("litellm_provider", "")) if isinstance(entry, dict) else ""
    return re.sub(r"^vertex_ai-.*", "vertex_ai", name).removesuffix("_converse")


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
