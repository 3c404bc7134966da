"""The answer in a reply's text, without the thoughts that a server left in it. Servers know the
thoughts of a model by its special tokens and send them apart. Where one does not know the model,
they stand in the text, in the form that the model was trained with. A reply without an answer has a
reason, for the log, for errors and for the next prompt."""

from __future__ import annotations

import re
from dataclasses import dataclass

from eureka_agent.llm.interface import FinishReason, LanguageModelError
from eureka_agent.records import Message, Proposal
from eureka_agent.text import one_line, printable

_TAG = re.compile(
    r"<[|｜]?(?P<end>/?)(?P<name>[\w:-]{0,30}(?:think|thought|reason|scratch)[\w:-]{0,30})[|｜]?>"
    r"|\[(?P<bracket_end>/?)THINK\]",
    re.IGNORECASE,
)
"""Begin or end of thoughts: `<think>`, `<seed:think>`, `<|START_THINKING|>`, `[THINK]`."""
_DEEPEST = 20
"""Most tags of thoughts within each other."""
_MARK = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|<(?:end|start)_of_turn>|<eos>|</s>\s*\Z"
    r"|</?(?:final[_ ]?)?(?:answer|response|output|solution|result)>",
    re.IGNORECASE,
)
"""Tokens and tags around an answer."""
_OTHER_TURN = re.compile(
    r"(?:<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>)\s*user\b|<\|user\|>|\[INST\]"
)
"""Begin of a user's turn, with which a model goes on that nothing stopped."""
_HARMONY = re.compile(r"<\|(start|channel|constrain|message|end|return|call)\|>")
_IS_HARMONY = re.compile(r"<\|(?:channel|message)\|>")

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
Replied = Message | Proposal


@dataclass(frozen=True)
class Spoken:
    """The parts of a reply's text."""

    text: str
    """The answer, without its tags; empty if the reply holds thoughts alone."""
    thoughts: str = ""
    """Thoughts that never end, to the reply's end."""


def spoken(reply: str) -> Spoken:
    """Take the answer out of a reply's text. Text before an end of thoughts is thought, also where
    their begin is missing, since chat templates may give it to the model."""
    if _IS_HARMONY.search(reply):
        return _harmony(reply)
    pieces: list[str] = []
    depth = place = begin = 0  # place: end of the last thought; begin: of the open one
    for tag in _TAG.finditer(reply):
        ends = tag["end"] or tag["bracket_end"] or (tag["name"] or "").casefold().startswith("end")
        if ends and not _is_quoted(reply, tag):
            if not depth:
                pieces.clear()
            depth = max(0, depth - 1)
            place = place if depth else tag.end()
        elif not ends and depth < _DEEPEST and _begins_line(reply, tag.start(), place):
            if not depth:
                pieces.append(reply[place : tag.start()])
                begin = tag.end()
            depth += 1
    if depth:
        return Spoken(_bare("".join(pieces)), reply[begin:])
    return Spoken(_bare("".join([*pieces, reply[place:]])))


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    """True for a tag in quotation marks or in a comment, which is spoken of."""
    start = max(0, tag.start() - 200)
    before = text[max(start, text.rfind("\n", start, tag.start()) + 1) : tag.start()]
    quotes = before[-1:] + text[tag.end() : tag.end() + 1]
    return quotes in ("``", '""', "''") or "  # " in before


def _begins_line(text: str, place: int, last: int) -> bool:
    """True where only blanks or another tag stand before a place in its line. `last`: the end of
    the last thought."""
    start = max(last, place - 200)
    before = text[max(start, text.rfind("\n", start, place) + 1) : place].rstrip()
    return not before or before.endswith((">", "]"))


def _harmony(reply: str) -> Spoken:
    """The messages of Harmony's channel `final` (gpt-oss), or those without a channel."""
    final: list[str] = []
    bare: list[str] = []
    header, state, place = "", "message", 0
    named = False
    for token in [*_HARMONY.finditer(reply), None]:
        text = reply[place : len(reply) if token is None else token.start()]
        if state == "message" and header == "final":
            final.append(text)
        elif state == "message" and not header and place:
            bare.append(text)
        elif state == "channel":
            header, named = (text.split() or [""])[0].casefold(), True
        if token is not None:
            place, state = token.end(), token[1]
            header = "" if state in ("start", "end", "return", "call") else header
    found = final if named else bare
    return Spoken(_bare("\n".join(found))) if found else Spoken("", reply)


def _bare(text: str) -> str:
    """The text of the first turn without marks."""
    return _MARK.sub("\n", _OTHER_TURN.split(text, maxsplit=1)[0])


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
    what, help_ = why_no_answer(message, wanted)
    return LanguageModelError(f"{message.model} gave no {wanted}: {what}", help_)


def _answer(replied: Replied) -> str:
    return spoken(printable(replied.reply)).text.strip()
