"""What a model's tokens cost. A run keeps the prices that it began with, so its ledger never
changes."""

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
"""litellm's table as it came with the package. Read as a file: to import litellm takes seconds, and
it would fetch a newer one."""
_MILLION = Decimal(1_000_000)
_HIGHEST = Decimal(1_000)
"""US dollars for one token, beyond which a number is a slip of the hand."""


class Price(Record):
    """US dollars for one token."""

    prompt: Decimal
    completion: Decimal
    cached: Decimal | None = None
    """Of a prompt's token that came from the provider's cache; None: as any other."""
    cache_write: Decimal | None = None
    """Of one that went into it; None: as any other."""
    origin: str
    """Where the price comes from."""

    def money(self, cost: Cost) -> Decimal | None:
        """What these tokens cost; None where their numbers are not known."""
        if cost.prompt_tokens is None or cost.completion_tokens is None:
            return None
        cached, written = cost.cached_tokens or 0, cost.cache_write_tokens or 0
        plain = max(0, cost.prompt_tokens - cached - written)
        return (
            plain * self.prompt
            + cached * (self.prompt if self.cached is None else self.cached)
            + written * (self.prompt if self.cache_write is None else self.cache_write)
            + cost.completion_tokens * self.completion
        )


def find_prices(models: Iterable[str], given: Iterable[str]) -> dict[str, Price]:
    """Prices of these models, by name: those that a person gave (`<model>=<prompt>,<completion>`),
    else the table's. Unknown ones are missing.

    Raises SettingsError for a price that cannot be read, and for a second one of the same model.
    """
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
    except (ArithmeticError, ValueError):  # no number, or one beyond all numbers
        prompt = completion = Decimal(-1)
    if not model or not all(
        value.is_finite() and 0 <= value <= _HIGHEST for value in (prompt, completion)
    ):
        raise SettingsError(
            f"the price {text!r} cannot be read",
            "write <provider>/<model>=<US dollars for a million tokens of prompts>,<of replies>,"
            " such as openai/mine=0.25,2",
        )
    return model, Price(prompt=prompt, completion=completion, origin="given by --price")


def _from_table(model: str) -> Price | None:
    """The table names a model by itself or with its provider."""
    provider, _, name = model.partition("/")
    entry = _table().get(model)
    if entry is None and (_table().get(name) or {}).get("litellm_provider") == provider:
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
        origin=f"litellm {importlib.metadata.version('litellm')}",
    )


def known_models() -> list[str]:
    """Models in the table that answer in words at a known price, as `<provider>/<model>`."""
    found = (
        (str(entry.get("litellm_provider")), name)
        for name, entry in _table().items()
        if isinstance(entry, dict) and _writes(name, entry)
    )
    return sorted(
        {
            name if name.startswith(f"{provider}/") else f"{provider}/{name}"
            for provider, name in found
        }
    )


def _writes(name: str, entry: Mapping[str, Any]) -> bool:
    """True for a model whose replies are text alone, and that neither searches the web nor works a
    computer for them."""
    replies = entry.get("supported_output_modalities") or ["text"]
    return (
        entry.get("mode") in ("chat", "responses")
        and all(
            _number(entry.get(key)) is not None
            for key in ("input_cost_per_token", "output_cost_per_token")
        )
        and replies == ["text"]
        and re.search(r"^ft:|audio|-search-|deep-research|computer-use", name) is None
    )


def _number(value: object) -> Decimal | None:
    return (
        Decimal(str(value))
        if isinstance(value, int | float) and not isinstance(value, bool)
        else None
    )


@cache
def _table() -> Mapping[str, Any]:
    """Empty where litellm is missing or has moved its table: prices are unknown then, not wrong."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    try:
        table = json.loads((Path(spec.origin).parent / _TABLE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}
