"""A model that sees, as a judge of pictures of two attempts (Wang et al. 2024, RL-VLM-F)."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from eureka_agent.feedback_records import MOST_SUB_GOALS, Grade
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
_FEWEST_SUB_GOALS = 2
_LONGEST_SUB_GOAL = 200
_SCALE = (0, 1, 2)
"""Grades of a policy by a sub-goal: not, partly, from most start states."""
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
    """Ask a model once what it sees. A wrong answer of an earlier run does not count, since another
    model may have the name by now. Raises BlindModelError where it sees nothing, and the model's
    own errors, such as of a server that takes no pictures."""
    question = "Which colour has the square in this picture? Answer with one word."
    order = Role.JUDGE, ChatMessage("user", question, (_YELLOW,))
    try:
        for sample in itertools.count():
            is_known = model.gateway.knows(model.model, model.request(*order, sample=sample))
            message = await model.ask(*order, sample=sample)
            if _COLOUR in spoken(message.reply).text.casefold():
                return
            if not is_known:
                break
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

    @property
    def name(self) -> str:
        return self._model.name

    async def sub_goals(self, picture: bytes) -> tuple[tuple[str, ...], str]:
        """Ask for the steps towards the task that show in such a picture (JPEG), in order; and why
        there are none where the reply cannot be read. Raises as `compare`."""
        asked = render("sub_goals_order.md", fewest=_FEWEST_SUB_GOALS, most=MOST_SUB_GOALS)
        shown = (ImagePart(picture, "moments of a policy"),)
        order = ChatMessage("user", asked, shown)
        return _sub_goals(await self._model.ask(Role.JUDGE, self._system, order))

    async def compare(
        self, first: bytes, second: bytes, sub_goals: Sequence[str] = ()
    ) -> tuple[Grade | None, str]:
        """Compare two pictures (JPEG) by sub-goals: the grade, and why there is none where the
        reply cannot be read or contradicts itself. Raises BudgetSpentError, LanguageModelError."""
        named = (("first", first), ("second", second))
        pictures = tuple(ImagePart(data, f"moments of the {name} policy") for name, data in named)
        order = ChatMessage("user", render("judge_order.md", sub_goals=sub_goals), pictures)
        message = await self._model.ask(Role.JUDGE, self._system, order)
        return _judgement(message, len(sub_goals))


def _objects(message: Message) -> Iterator[dict[str, Any]]:
    """The objects in a reply by lower-case names, in the order of `objects`; none of a refusal."""
    if message.finish_reason != FinishReason.REFUSED:
        for value in objects(spoken(printable(message.reply)).text):
            if isinstance(value, dict):
                yield {str(name).strip().casefold(): content for name, content in value.items()}


def _sub_goals(message: Message) -> tuple[tuple[str, ...], str]:
    """The sub-goals in a reply, and what is wrong with a reply that has none."""
    for found in _objects(message):
        if isinstance(told := found.get("sub_goals", found.get("subgoals")), list):
            lines = (one_line(each, _LONGEST_SUB_GOAL) for each in told if isinstance(each, str))
            goals = tuple(filter(None, lines))
            if _FEWEST_SUB_GOALS <= len(goals) <= MOST_SUB_GOALS:
                return goals, ""
            wanted = f"expected {_FEWEST_SUB_GOALS} to {MOST_SUB_GOALS}"
            return (), f"the reply holds {len(goals)} sub-goals, {wanted}"
    return (), why_no_answer(message, "sub-goals")[0]


def _judgement(message: Message, many: int) -> tuple[Grade | None, str]:
    """The grade in a reply, and what is wrong with a reply that has none. `many`: sub-goals."""
    for found in _objects(message):
        answer = " ".join(str(found.get("better", "")).casefold().split()).strip(" .")
        answer = answer.removeprefix("the ").removesuffix(" policy").removesuffix(" one")
        if answer in _GRADES:
            grade, first, second = _GRADES[answer], found.get("first"), found.get("second")
            if grade and _is_behind(*((first, second) if grade > 0 else (second, first)), many):
                return None, f"it grades them {first} and {second}, and calls {answer!r} better"
            return grade, ""
    return None, why_no_answer(message, "grade: first, second, alike or cannot tell")[0]


def _is_behind(better: object, other: object, many: int) -> bool:
    """True where grades contradict a verdict: the better one is nowhere ahead by them, and
    somewhere behind. Grades that cannot be read contradict nothing."""
    if not (isinstance(better, list) and isinstance(other, list)):
        return False
    if any(len(each) != many or any(it not in _SCALE for it in each) for each in (better, other)):
        return False
    return better != other and all(one <= two for one, two in zip(better, other, strict=True))
