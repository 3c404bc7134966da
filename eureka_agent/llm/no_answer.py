"""The reason why a reply holds no answer, for the log, for errors and for the next prompt."""

from __future__ import annotations

from typing import Protocol

from eureka_agent.llm.interface import FinishReason, LanguageModelError
from eureka_agent.llm.spoken import spoken
from eureka_agent.records import Message
from eureka_agent.text import one_line, printable

LONGEST_REFUSAL = 200
"""Most characters of a refusal's words that are shown."""
_WHY = {
    FinishReason.CUT_OFF: (
        "the reply was cut off at the bound on tokens (--reply-tokens)",
        "allow more with --reply-tokens, a larger context at your own server, or let the model"
        " reason less",
    ),
    FinishReason.REFUSED: (
        "the model refused to answer",
        "say it in other words, or ask another --model",
    ),
    FinishReason.TOOL_CALL: (
        "the model called a tool in place of an answer, though it was offered none",
        "ask another --model, or turn tools off at your own server",
    ),
    FinishReason.REASONING_ALONE: (
        "the reply holds reasoning alone, and no answer after it",
        "turn the model's reasoning off, or the parser of reasoning at your own server; the"
        " reasoning is kept in messages.jsonl",
    ),
}
_EMPTY = "the reply is empty", "ask another --model, or look at the log of your own server"


class Replied(Protocol):
    """A message or a proposal."""

    @property
    def reply(self) -> str:
        """The text of the reply."""
        ...

    @property
    def finish_reason(self) -> str:
        """`FinishReason`."""
        ...


def ending_of(replied: Replied) -> FinishReason:
    """The reason for the reply's end; thoughts within its text are reasoning, too."""
    ending = FinishReason(replied.finish_reason)
    thinks_alone = replied.reply.strip() and not _answer(replied)
    is_open = ending in (FinishReason.STOP, FinishReason.OTHER)
    return FinishReason.REASONING_ALONE if thinks_alone and is_open else ending


def why_no_answer(replied: Replied, wanted: str = "answer") -> tuple[str, str]:
    """The reason why a reply does not hold what was `wanted`, and what could help."""
    ending = ending_of(replied)
    if ending not in _WHY:
        return (f"the reply holds no {wanted}", "") if _answer(replied) else _EMPTY
    what, help_ = _WHY[ending]
    if ending is FinishReason.CUT_OFF and not _answer(replied):
        what += " before any answer"
    if ending is FinishReason.REFUSED and (words := _answer(replied)):
        what = f"{what}: {one_line(words, LONGEST_REFUSAL)!r}"
    return what, help_


def no_answer(message: Message, wanted: str = "answer") -> LanguageModelError:
    """The error for a reply without what was `wanted`."""
    what, help_ = why_no_answer(message, wanted)
    return LanguageModelError(f"{message.model} gave no {wanted}: {what}", help_)


def _answer(replied: Replied) -> str:
    return spoken(printable(replied.reply)).text.strip()
