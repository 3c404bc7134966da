"""Reward source and reasoning from a language model's reply of any form."""

from __future__ import annotations

import re
from dataclasses import dataclass

from eureka_agent.designer import salvage
from eureka_agent.designer.source_tools import ENTRY_POINT
from eureka_agent.llm.markdown import Block, split_blocks, without_thinking
from eureka_agent.text import clipped, printable

LONGEST_REASONING = 10_000
"""Most characters of a proposal's reasoning. The whole reply is stored apart."""
_DEFINITION = re.compile(rf"^(?P<indent>[ \t]*)(?:async )?def\s+{ENTRY_POINT}\b", re.MULTILINE)
_CODE_START = re.compile(
    r"^(?:import [\w.]+|from [\w.]+ import\b|def \w+|@\w|[A-Za-z_]\w*(?: *: *[\w.]+)? *= *\S)",
    re.MULTILINE,
)
_AFTER_A_BODY = re.compile(r"(?<=\n)(?=[^\s)#@])(?!def )")
_OTHER_LANGUAGES = (
    "json",
    "diff",
    "patch",
    "text",
    "txt",
    "markdown",
    "md",
    "bash",
    "sh",
    "shell",
    "console",
)
_MOST_TRIES = 8
"""Parts of a text without fences that are tried as source."""

_MOST_BLOCKS = 100
"""Most blocks of a reply, from the last one."""


@dataclass(frozen=True)
class Reply:
    """Content of a reply."""

    source: str
    """Empty without a `compute_reward`."""
    reasoning: str
    """The prose around the code."""


def parse_reply(text: str) -> Reply:
    """Find the reward in a reply: the last code block with `compute_reward`, with the blocks that
    define what it calls.

    Helpers may be anywhere, in blocks of their own too. A block that was cut off counts, as does
    code without a fence, in JSON, or in a diff that holds all of it. Invalid code is returned
    unchanged, for the critic to judge.
    """
    return _parse(without_thinking(printable(text)))


def _parse(text: str) -> Reply:
    blocks, prose = split_blocks(text)
    blocks = blocks[-_MOST_BLOCKS:]
    codes = [_code(block) for block in blocks]
    main = _main(blocks, codes)
    if main is not None:
        return _reply(_with_helpers(codes, main), prose)
    for part in (*(block.body for block in blocks), text):
        wrapped = salvage.from_json(part, ENTRY_POINT)
        if wrapped is not None:
            source, around = wrapped
            inner = _parse(source) if "```" in source else Reply(source, "")
            return _reply(
                inner.source, _joined("" if part is text else prose, around, inner.reasoning)
            )
    return _unfenced(text)


def _reply(source: str, reasoning: str) -> Reply:
    source = source.strip("\n").rstrip()
    return Reply(f"{source}\n" if source else "", clipped(reasoning.strip(), LONGEST_REASONING))


def _code(block: Block) -> str:
    """A block as Python, taken out of a diff; empty for JSON."""
    body = block.body
    if ENTRY_POINT not in body or salvage.parses(body):
        return body
    if salvage.from_json(body, ENTRY_POINT) is not None:
        return ""
    return salvage.mended(salvage.from_diff(body) or body)


def _main(blocks: list[Block], codes: list[str]) -> int | None:
    """Index of the block with the reward: the last definition, unless it is an excerpt of a whole
    one before it."""
    defining = [index for index, code in enumerate(codes) if _DEFINITION.search(code)]
    if not defining:
        return None
    last = defining[-1]
    whole = [index for index in defining if salvage.is_whole(codes[index], ENTRY_POINT)]
    if not whole or last in whole:
        return last
    excerpt = salvage.is_excerpt(codes[last]) or blocks[last].language in _OTHER_LANGUAGES
    return whole[-1] if excerpt and blocks[last].closed else last


def _with_helpers(codes: list[str], main: int) -> str:
    """The main block, after the blocks that define names which it needs."""
    source = codes[main]
    others = {
        index: salvage.names_defined(code)
        for index, code in enumerate(codes)
        if index != main and not _DEFINITION.search(code)
    }
    needed: set[int] = set()
    missing = salvage.names_missing(source)
    while missing:
        found = next(
            (index for index in sorted(others, reverse=True) if missing & others[index]), None
        )
        if found is None:
            break
        needed.add(found)
        missing = (missing | salvage.names_missing(codes[found])) - others.pop(found)
    return "\n\n\n".join([*(codes[index].strip("\n").rstrip() for index in sorted(needed)), source])


def _unfenced(text: str) -> Reply:
    """Code without a fence, from the first line that looks like code to the last that parses."""
    definition = _DEFINITION.search(text)
    if definition is None:
        return _reply("", text)
    before, code = _indented_part(text, definition) if definition["indent"] else ("", text)
    place = _DEFINITION.search(code)
    assert place is not None  # the part was cut out around it
    starts = [
        match.start() for match in _CODE_START.finditer(code) if match.start() < place.start()
    ]
    for start in [*starts[: _MOST_TRIES - 1], place.start()]:
        length = salvage.leading_code(code[start:], ENTRY_POINT)
        if length:
            return _reply(
                code[start : start + length], _joined(before, code[:start], code[start + length :])
            )
    body = code[place.start() :]
    after = _AFTER_A_BODY.search(body)
    length = len(body) if after is None else after.start()
    return _reply(body[:length], _joined(before, code[: place.start()], body[length:]))


def _indented_part(text: str, definition: re.Match[str]) -> tuple[str, str]:
    """The text before an indented definition and the lines above it, and the rest without that
    indent."""
    indent = definition["indent"]
    lines, line = text.split("\n"), text.count("\n", 0, definition.start())
    first = line
    while first > 0 and (lines[first - 1].startswith(indent) or not lines[first - 1].strip()):
        first -= 1
    return "\n".join(lines[:first]), "\n".join(each.removeprefix(indent) for each in lines[first:])


def _joined(*parts: str) -> str:
    return "\n\n".join(part.strip() for part in parts if part.strip())
