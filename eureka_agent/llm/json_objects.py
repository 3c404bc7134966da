"""Objects in a model's reply, also careless JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from eureka_agent import syntax
from eureka_agent.llm.markdown import split_blocks

LONGEST_OBJECT = 20_000
"""Most characters of an object's text."""
_MOST_OBJECTS = 10
"""Opening braces, from the last one, that are tried as the start of an object."""
_WORDS = re.compile(r"\b(?:null|true|false)\b")


def objects(text: str) -> Iterator[Any]:
    """JSON values, or Python's nearest to them: of the blocks, last first, then from the last
    braces."""
    blocks, _ = split_blocks(text)
    for block in reversed(blocks[-_MOST_OBJECTS:]):
        yield _value(block.body)
    end = text.rfind("}") + 1
    begins = [match.start() for match in re.finditer(r"\{", text[:end])]
    for begin in reversed(begins[-_MOST_OBJECTS:]):
        yield _value(text[begin:end])


def _value(text: str) -> Any:
    text = text.strip()
    if not text.startswith("{") or len(text) > LONGEST_OBJECT:
        return None
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        pass
    try:  # single quotes, a comma too many, None for null
        literal = _WORDS.sub(
            lambda match: {"null": "None"}.get(match[0], match[0].capitalize()), text
        )
        return syntax.literal(literal)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
