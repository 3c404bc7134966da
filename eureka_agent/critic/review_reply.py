"""Reviews from a reviewer's replies, even with careless JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eureka_agent.llm.markdown import objects
from eureka_agent.llm.spoken import spoken
from eureka_agent.text import printable

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
    text = spoken(printable(reply)).text
    for value in objects(text):
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
