"""The answer in a reply's text, without the thoughts that a server left in it, its code blocks, and
the objects in it, also careless JSON. Servers know the thoughts of a model by its special tokens
and send them apart. Where one does not know the model, they stand in the text, in the form that the
model was trained with. A reply without an answer has a reason, for the log, for errors and for the
next prompt."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eureka_agent import syntax
from eureka_agent.llm.interface import FinishReason, LanguageModelError
from eureka_agent.records import Message, Proposal
from eureka_agent.text import one_line, printable

_INDENT = re.compile(r"(?:[ \t]*(?:[-*+>]|\d{1,3}[.)])[ \t])?[ \t]*")
_FENCE = re.compile(rf"(?P<before>{_INDENT.pattern})(?P<fence>`{{3,}}|~{{3,}})(?P<info>[^`]*)")
_BEHIND = re.compile(r"(?P<before>[^`]+)(?P<fence>`{3,})(?P<info>[\w+.#-]*)[ \t]*")
"""A fence behind words or code in its line."""
_GLUED = re.compile(r"\w*[ \t]+(?=(?:import|from|def)[ \t])")
"""The language before a first line of code that stands beside it."""
_DEEPER = 4
"""Further indentation from which a fence belongs to the content of a block."""
_PROSE = ("markdown", "md", "text", "txt")
"""Languages of prose, whose blocks are read as the text around them."""
LONGEST_OBJECT = 20_000
"""Most characters of an object's text."""
_MOST_OBJECTS = 10
"""Opening braces, from the last one, that are tried as the start of an object."""
_WORDS = {"null": "None", "true": "True", "false": "False"}


@dataclass(frozen=True)
class Block:
    """A code block."""

    language: str
    """Declared language in lower case, or empty."""
    body: str


def split(text: str) -> list[Block | str]:
    """Split a text into code blocks and prose. A fence with a language ends an open block."""
    parts: list[Block | str] = []
    lines: list[str] = []
    opened: tuple[int, str, str] | None = None  # indentation, fence, language
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line) or _BEHIND.fullmatch(line)
        if found is None:
            lines.append(line)
            continue
        before, fence, language = found["before"], found["fence"], _language(found["info"])
        indent = len(before.expandtabs(4)) if _INDENT.fullmatch(before) else None
        if language in _PROSE:
            continue
        if opened is not None:
            deeper = indent is not None and indent >= opened[0] + _DEEPER
            behind = indent is None and (language or "#" in before)
            if deeper or behind or not fence.startswith(opened[1]):
                lines.append(line)
                continue
            lines += [before] if indent is None else []
            parts.append(_block(opened[2], lines))
            opened, lines = None, []
            if not language:
                continue
        parts.append("\n".join([*lines, *([before] if indent is None else [])]))
        glued = _GLUED.match(found["info"])
        lines = [] if glued is None else [found["info"][glued.end() :]]
        opened = indent or 0, fence, language
    parts.append("\n".join(lines) if opened is None else _block(opened[2], lines))
    return [*parts, ""] if isinstance(parts[-1], Block) else parts


def _language(info: str) -> str:
    return (re.split(r"[\s{,:]", info.strip().lower().lstrip("{.")) or [""])[0].rstrip("}")


def _block(language: str, lines: list[str]) -> Block:
    if all(line.lstrip().startswith(">") for line in lines):
        lines = [re.sub(r"^[ \t]*> ?", "", line) for line in lines]
    return Block(language, textwrap.dedent("\n".join(lines)) + "\n")


def split_blocks(text: str) -> tuple[list[Block], str]:
    """The code blocks of a text, and the prose around them."""
    parts = split(text)
    return [part for part in parts if isinstance(part, Block)], joined_prose(parts)


def joined_prose(parts: list[Block | str]) -> str:
    """The prose of a text's parts, with a blank line for each block."""
    prose = "\n".join("" if isinstance(part, Block) else part for part in parts)
    return re.sub(r"\n{3,}", "\n\n", prose).strip()


def objects(text: str) -> Iterator[Any]:
    """JSON values, or Python's nearest: of the blocks, last first, then from the last braces."""
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
    try:  # single quotes, a comma too many
        return syntax.literal(re.sub(r"\b(?:null|true|false)\b", lambda m: _WORDS[m[0]], text))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


# ── the answer ────────────────────────────────────────────────────────────────────────────────────


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
_HARMONY = re.compile(
    r"<\|channel\|>\s*(\w*)[^<]{0,100}(?:<\|constrain\|>[^<]{0,100})?<\|message\|>"
    r"(.*?)(?=<\|(?:start|channel|end|return|call)\|>|\Z)",
    re.DOTALL,
)
"""Channel and text of a message of gpt-oss; the answer is in the channel `final`."""

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
    if messages := _HARMONY.findall(reply):
        final = [text for channel, text in messages if channel.casefold() == "final"]
        return Spoken(_bare("\n".join(final)), "" if final else reply)
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
    """True where blanks or a tag alone stand before a place. `last`: end of the last thought."""
    start = max(last, place - 200)
    before = text[max(start, text.rfind("\n", start, place) + 1) : place].rstrip()
    return not before or before.endswith((">", "]"))


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
