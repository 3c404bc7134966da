"""Readings of a person's wish by a language model (Chen et al. 2026, ROSETTA: grounding before any
code)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from eureka_agent.feedback.measures import parse_measure
from eureka_agent.feedback_records import LONGEST_WORDS, Given, Reading, Wish
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import ChatMessage, Role
from eureka_agent.llm.markdown import objects
from eureka_agent.llm.prompts import render, system_message
from eureka_agent.llm.spoken import no_answer, spoken
from eureka_agent.records import Attempt, TaskDescription
from eureka_agent.settings import SearchSettings
from eureka_agent.text import clipped, printable

_MOST_PARTS = 20
_LONGEST_PART = 400


class Reads(Protocol):
    """A reader of wishes: a language model, or the offline designer's vocabulary."""

    async def read(
        self, wish: Wish, standing: Sequence[Given], about: Attempt | None, correction: str
    ) -> Reading:
        """The reading of a wish. `about`: the attempt that it is about; `correction`: what the
        person said of an earlier reading."""
        ...


class ModelReader:
    """Asks a model how it understands a wish, with `prompts/reading.md`."""

    def __init__(
        self,
        model: ConfiguredModel,
        description: TaskDescription,
        sentence: str,
        settings: SearchSettings,
    ) -> None:
        self._model = model
        self._description = description
        self._system = system_message("reading.md", description, sentence, settings)

    async def read(
        self, wish: Wish, standing: Sequence[Given], about: Attempt | None, correction: str
    ) -> Reading:
        """The reading. Raises LanguageModelError, also for a reply without one."""
        order = render(
            "reading_order.md",
            wish=wish,
            standing=standing,
            reward="" if about is None else about.proposal.reward.source,
            behaviour="" if about is None or about.diagnosis is None else about.diagnosis.text,
            correction=correction,
        )
        message = await self._model.ask(Role.READER, self._system, ChatMessage("user", order))
        reading = parse_reading(message.reply, message.model, self._description)
        if reading is None:
            error = no_answer(message, "reading of the wish")
            error.hint = error.hint or "say it in other words, or go on without a reading"
            raise error
        return reading


def parse_reading(reply: str, author: str, description: TaskDescription) -> Reading | None:
    """The last object in the reply that has a reading; None without one."""
    for value in objects(spoken(printable(reply)).text):
        if isinstance(value, dict):
            found = {str(key).strip().lower(): content for key, content in value.items()}
            text = found.get("reading")
            if isinstance(text, str) and text.strip():
                parts = {
                    name: tuple(_texts(found.get(name)))[:_MOST_PARTS]
                    for name in ("stays", "goes", "changes", "unread")
                }
                measure = parse_measure(found.get("measure"), description)
                text = text.strip()[:LONGEST_WORDS]
                return Reading(text=text, author=author, measure=measure, **parts)
    return None


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str() if value.strip():
            yield clipped(value.strip(), _LONGEST_PART)
        case list() | tuple():
            for each in value:
                yield from _texts(each) if isinstance(each, str | dict) else ()
        case dict():
            parts = (f"{name}: {text}" for name, text in value.items() if isinstance(text, str))
            yield from (clipped(part, _LONGEST_PART) for part in parts)
