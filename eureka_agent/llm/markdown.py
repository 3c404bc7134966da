"""The code blocks of a reply, and the objects in it, also careless JSON."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eureka_agent import syntax

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
    closed: bool
    """False where the text ended before the block."""


def split(text: str) -> list[Block | str]:
    """Split a text into code blocks and the prose between them, in their order. A fence with a
    language ends an open block."""
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
            parts.append(_block(opened[2], lines, closed=True))
            opened, lines = None, []
            if not language:
                continue
        parts.append("\n".join([*lines, *([before] if indent is None else [])]))
        glued = _GLUED.match(found["info"])
        lines = [] if glued is None else [found["info"][glued.end() :]]
        opened = indent or 0, fence, language
    parts.append("\n".join(lines) if opened is None else _block(opened[2], lines, closed=False))
    return [*parts, ""] if isinstance(parts[-1], Block) else parts


def _language(info: str) -> str:
    return (re.split(r"[\s{,:]", info.strip().lower().lstrip("{.")) or [""])[0].rstrip("}")


def _block(language: str, lines: list[str], *, closed: bool) -> Block:
    if all(line.lstrip().startswith(">") for line in lines):
        lines = [re.sub(r"^[ \t]*> ?", "", line) for line in lines]
    return Block(language, textwrap.dedent("\n".join(lines)) + "\n", closed)


def split_blocks(text: str) -> tuple[list[Block], str]:
    """The code blocks of a text, and the prose around them."""
    parts = split(text)
    return [part for part in parts if isinstance(part, Block)], joined_prose(parts)


def joined_prose(parts: list[Block | str]) -> str:
    """The prose of a text's parts, with a blank line for each block."""
    prose = "\n".join("" if isinstance(part, Block) else part for part in parts)
    return re.sub(r"\n{3,}", "\n\n", prose).strip()


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
    try:  # single quotes, a comma too many
        return syntax.literal(re.sub(r"\b(?:null|true|false)\b", lambda m: _WORDS[m[0]], text))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
