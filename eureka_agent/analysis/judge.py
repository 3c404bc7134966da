"""A model that sees, as a judge of pictures of two attempts (Wang et al. 2024, RL-VLM-F)."""

from __future__ import annotations

import base64

from eureka_agent.feedback_records import Grade
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import (
    ChatMessage,
    FinishReason,
    ImagePart,
    LanguageModelError,
    Role,
)
from eureka_agent.llm.prompts import render
from eureka_agent.llm.spoken import ending_of, no_answer, objects, spoken, why_no_answer
from eureka_agent.records import Message, TaskDescription
from eureka_agent.text import clipped, one_line, printable

STARTS, MOMENTS = 3, 6
"""Rows and columns of an attempt's picture."""
_GRADES: dict[str, Grade | None] = {
    "first": 1,
    "second": -1,
    "alike": 0,
    "cannot tell": None,
    # as models say it, too
    "1": 1,
    "2": -1,
    "both": 0,
    "equal": 0,
    "same": 0,
    "tie": 0,
    "unclear": None,
    "unsure": None,
}
_LONGEST_ANSWER = 200
_HINT = "--fitness judged needs a model that takes pictures: --judge <provider>/<model> names it"
_COLOUR = "yellow"
_YELLOW = ImagePart(
    base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAATklEQVR42u3PQQkAAAgEsOsf1BpeBN/CYAWWnbwWAQEB"
        "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAYFLAfz8UcNcZvE9AAAAAElFTkSuQmCC"
    ),
    "a yellow square",
    "image/png",
)


class BlindModelError(LanguageModelError):
    """A model that is to judge pictures and does not see them."""


async def check_sight(model: ConfiguredModel) -> None:
    """Ask a model once what it sees. Raises BlindModelError where it sees nothing, and the model's
    own errors, such as of a server that takes no pictures."""
    question = "Which colour has the square in this picture? Answer with one word."
    try:
        message = await model.ask(Role.JUDGE, ChatMessage("user", question, (_YELLOW,)))
        if _COLOUR in spoken(message.reply).text.casefold():
            return
        answer = clipped(one_line(message.reply, _LONGEST_ANSWER), _LONGEST_ANSWER)
        if not answer or ending_of(message) is not FinishReason.STOP:
            raise no_answer(message, "name of the colour that it is shown")
        raise BlindModelError(
            f"{model.name} does not see: shown a {_COLOUR} square and asked for its colour, it"
            f" answers {answer!r}"
        )
    except LanguageModelError as error:
        error.hint = f"{error.hint}; {_HINT}" if error.hint else _HINT
        raise


class ModelJudge:
    """Compares pictures of two attempts with a model, by `prompts/judge.md`."""

    def __init__(self, model: ConfiguredModel, description: TaskDescription, sentence: str) -> None:
        self._model = model
        values = {"description": description, "sentence": sentence}
        system = render("judge.md", starts=STARTS, moments=MOMENTS, **values)
        self._system = ChatMessage("system", system)
        self._order = render("judge_order.md")

    @property
    def name(self) -> str:
        return self._model.name

    async def compare(self, first: bytes, second: bytes) -> tuple[Grade | None, str]:
        """Compare two pictures (JPEG): the grade, and why there is none where the reply cannot be
        read. Raises BudgetSpentError, LanguageModelError."""
        named = (("first", first), ("second", second))
        pictures = tuple(ImagePart(data, f"moments of the {name} policy") for name, data in named)
        order = ChatMessage("user", self._order, pictures)
        return _judgement(await self._model.ask(Role.JUDGE, self._system, order))


def _judgement(message: Message) -> tuple[Grade | None, str]:
    """The grade in a reply, and what is wrong with a reply that has none."""
    if message.finish_reason == FinishReason.REFUSED:
        return None, why_no_answer(message)[0]
    for value in objects(spoken(printable(message.reply)).text):
        if isinstance(value, dict):
            found = {str(name).strip().casefold(): content for name, content in value.items()}
            answer = " ".join(str(found.get("better", "")).casefold().split()).strip(" .")
            answer = answer.removeprefix("the ").removesuffix(" policy").removesuffix(" one")
            if answer in _GRADES:
                return _GRADES[answer], ""
    return None, why_no_answer(message, "grade: first, second, alike or cannot tell")[0]
