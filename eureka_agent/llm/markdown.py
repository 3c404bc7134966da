"""The code blocks of a reply, also badly fenced ones, and the objects in it, also careless JSON."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from eureka_agent import syntax

_INDENT = re.compile(r"(?:[ \t]*(?:[-*+>]|\d{1,3}[.)])[ \t])?[ \t]*")
_FENCE = re.compile(rf"(?P<before>{_INDENT.pattern})(?P<fence>`{{3,}}|~{{3,}})(?P<info>[^`]*)")
_DEEPER = 4
"""Further indentation from which a fence with a language belongs to the content of a block."""
_DEEPEST = 3
_PROSE = ("", "markdown", "md", "text", "txt")
"""Languages of prose, which may hold further blocks."""
_LANGUAGE = re.compile(r"\s*(?:[\w+.#-]*|\{[^}]*\})(?:\s*[{:=(,].*|\s+\w+=.*)?\s*")
_CODE_AFTER_LANGUAGE = re.compile(r"[ \t]*(?:\w*[ \t]+)?(?=(?:import|from|def)[ \t]|@)")

LONGEST_OBJECT = 20_000
"""Most characters of an object's text."""
_MOST_OBJECTS = 10
"""Opening braces, from the last one, that are tried as the start of an object."""
_WORDS = re.compile(r"\b(?:null|true|false)\b")


@dataclass(frozen=True)
class Block:
    """A code block."""

    language: str
    """Declared language in lower case, or empty."""
    body: str
    closed: bool
    """False where the text ended before the block."""


@dataclass
class _Open:
    indent: int
    fence: str
    info: str
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        code = _CODE_AFTER_LANGUAGE.match(self.info)
        if code is not None:  # the first line of code stands beside the language
            self.lines.append(self.info[code.end() :])

    @property
    def language(self) -> str:
        return (re.split(r"[\s{,:]", self.info.strip().lower()) or [""])[0].lstrip("{.")

    def closes(self, fence: str, info: str) -> bool:
        return not info.strip() and self._counts(fence)

    def is_followed_by(self, indent: int, fence: str, info: str) -> bool:
        """True where the fence opens another block, although this one was not closed."""
        opens = _LANGUAGE.fullmatch(info) or _CODE_AFTER_LANGUAGE.match(info)
        return opens is not None and self._counts(fence) and indent < self.indent + _DEEPER

    def ends_with(self, before: str, fence: str) -> bool:
        """True where the fence ends the block beside code or prose."""
        is_comment = "#" in before
        return self._counts(fence) and self.language not in _PROSE[1:] and not is_comment

    def _counts(self, fence: str) -> bool:
        return fence[0] == self.fence[0] and len(fence) >= len(self.fence)


def split(text: str, depth: int = 0) -> list[Block | str]:
    """Split a text into code blocks and the prose between them, in their order.

    A block may stand within a prose block, begin behind words or end behind code in their line, or
    be cut off by the text's end. A fence with a language ends an open block.
    """
    parts: list[Block | str] = []
    prose: list[str] = []
    block: _Open | None = None

    def close(*, closed: bool) -> None:
        nonlocal block
        assert block is not None
        parts.append("\n".join(prose))
        prose.clear()
        parts.extend(_closed(block, depth, closed=closed))
        block = None

    for line in text.split("\n"):
        before, fence, info = _fence(line)
        is_first = _INDENT.fullmatch(before) is not None
        indent = len(before.expandtabs(4)) if is_first else 0
        if block is not None and fence == 2 * block.fence:  # an end, and a begin glued to it
            fence = block.fence
        if not fence:
            (prose if block is None else block.lines).append(line)
        elif block is None and (is_first or re.fullmatch(r"[\w+.#-]*\s*", info)):
            prose += [] if is_first else [before]
            block = _Open(indent, fence, info)
        elif block is None:
            prose.append(line)
        elif is_first and block.closes(fence, info):
            close(closed=True)
        elif is_first and block.is_followed_by(indent, fence, info):
            if block.language in _PROSE:
                prose += block.lines
            else:
                close(closed=True)
            block = _Open(indent, fence, info)
        elif block.ends_with(before, fence):
            block.lines += [] if is_first else [before]
            close(closed=True)
            prose.append(info)
        else:
            block.lines.append(line)
    if block is not None:
        close(closed=False)
    return [*parts, "\n".join(prose)]


def split_blocks(text: str) -> tuple[list[Block], str]:
    """The code blocks of a text, and the prose around them."""
    parts = split(text)
    return [part for part in parts if isinstance(part, Block)], joined_prose(parts)


def joined_prose(parts: list[Block | str]) -> str:
    """The prose of a text's parts, with a blank line for each block."""
    prose = "\n".join("" if isinstance(part, Block) else part for part in parts)
    return re.sub(r"\n{3,}", "\n\n", prose).strip()


def _fence(line: str) -> tuple[str, str, str]:
    """The only fence of a line with the text before and after it; all empty without one. Tildes
    count at the line's start alone."""
    match = _FENCE.fullmatch(line)
    if match is not None:
        return match["before"], match["fence"], match["info"]
    before, fence, after = line.partition("```")
    info = after.lstrip("`")
    if not fence or "`" in info:
        return "", "", ""
    return before, fence + "`" * (len(after) - len(info)), info


def _closed(block: _Open, depth: int, *, closed: bool) -> list[Block | str]:
    """A block, or the parts of a prose block that holds others."""
    lines = block.lines
    if all(line.lstrip().startswith(">") for line in lines):
        lines = [re.sub(r"^[ \t]*> ?", "", line) for line in lines]
    body = textwrap.dedent("\n".join(lines)) + "\n"
    has_blocks = "```" in body or "~~~" in body
    if depth < _DEEPEST and block.language in _PROSE and has_blocks:
        return split(body, depth + 1)
    return [Block(block.language, body, closed)]


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
