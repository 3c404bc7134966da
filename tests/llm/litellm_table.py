"""litellm's own table of prices, found through its package metadata."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any


def path() -> Path:
    """The table's file."""
    files = importlib.metadata.files("litellm") or []
    [found] = [
        each for each in files if each.name.startswith("model_prices") and each.suffix == ".json"
    ]
    return Path(str(found.locate()))


def entry(model: str) -> dict[str, Any]:
    """A model's line, with numbers as they are written."""
    table: dict[str, Any] = json.loads(path().read_text(), parse_float=str)
    return dict(table[model])
