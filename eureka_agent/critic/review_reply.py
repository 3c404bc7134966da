"""Reviews from a reviewer's replies, even with careless JSON."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eureka_agent.llm.markdown import split_blocks, without_thinking
from eureka_agent.text import printable

LONGEST_OBJECT = 20_000
"""Most characters of a text that is read as a review."""
_MOST_OBJECTS = 10
"""Opening braces, from the last one, that are tried as the start of the review."""
_NOTHING = {
    "",
    "none",
    "null",
    "no",
    "false",
    "n/a",
    "na",
    "nothing",
    "no contradiction",
    "none found",
    "-",
    "none.",
}
_WORDS = re.compile(r"\b(?:null|true|false)\b")


@dataclass(frozen=True)
class Contradiction:
    """A contradiction with the task in a reviewer's words."""

    term: str
    """Quoted from the reward."""
    task: str
    """Quoted from the task."""
    why: str


@dataclass(frozen=True)
class Review:
    """A reviewer's findings. All of it is text from a model."""

    contradiction: Contradiction | None
    exploits: tuple[str, ...]


def read_review(reply: str) -> Review | None:
    """The last object in the reply with the form of a review; None without one."""
    text = without_thinking(printable(reply))
    for value in _objects(text):
        if isinstance(value, dict):
            found = {str(key).strip().lower(): content for key, content in value.items()}
            if {"term", "why"} <= found.keys():  # the contradiction alone
                found = {"contradiction": found}
            if "contradiction" in found or "exploits" in found:
                return Review(
                    _contradiction(found.get("contradiction")),
                    tuple(_sentences(found.get("exploits"))),
                )
    return None


def _objects(text: str) -> Iterator[Any]:
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
        return ast.literal_eval(literal)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def _contradiction(value: Any) -> Contradiction | None:
    match value:
        case [first, *_]:
            return _contradiction(first)
        case dict():
            found = {str(key).strip().lower(): content for key, content in value.items()}
            term = (
                _text(found.get("term"))
                or _text(found.get("component"))
                or _text(found.get("line"))
            )
            contradiction = Contradiction(term, _text(found.get("task")), _text(found.get("why")))
            empty = all(
                _says_nothing(part)
                for part in (contradiction.term, contradiction.task, contradiction.why)
            )
            return None if empty else contradiction
        case str() if not _says_nothing(value):
            return Contradiction("", "", value.strip())
    return None


def _sentences(value: Any) -> Iterator[str]:
    match value:
        case str() if not _says_nothing(value):
            yield value.strip()
        case list() | tuple():
            for item in value:
                if isinstance(item, (str, dict)):
                    yield from _sentences(item)
        case dict():
            text = ": ".join(
                part.strip() for part in value.values() if isinstance(part, str) and part.strip()
            )
            if not _says_nothing(text):
                yield text


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _says_nothing(text: str) -> bool:
    return text.strip().strip(".").lower() in _NOTHING
