"""From a language model's reply to reward source and reasoning, whatever the reply looks like."""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from dataclasses import dataclass

FUNCTION_NAME = "compute_reward"
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[^\n`]*\n(?P<body>.*?)(?:^[ \t]*(?P=fence)[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
_DEFINITION = re.compile(rf"^[ \t]*def\s+{FUNCTION_NAME}\b", re.MULTILINE)
_CODE_START = re.compile(r"^(?:import |from \w|def |@)", re.MULTILINE)


@dataclass(frozen=True)
class Reply:
    """What a reply holds."""

    source: str
    """Empty where there is no `compute_reward` in it."""
    reasoning: str
    """The prose around the code."""


def parse_reply(text: str) -> Reply:
    """Find the reward in a reply: the last code block with `compute_reward`, with the blocks that define what it calls.

    Helpers may stand before the function or in blocks of their own; a block that was cut off counts; code without a fence
    is found too.
    """
    text = _THINKING.sub("", text.replace("\r\n", "\n"))
    blocks = [textwrap.dedent(match["body"]) for match in _FENCE.finditer(text)]
    prose = re.sub(r"\n{3,}", "\n\n", _FENCE.sub("", text)).strip()
    main = next((index for index in reversed(range(len(blocks))) if _DEFINITION.search(blocks[index])), None)
    if main is not None:
        return Reply(_with_helpers(blocks, main), prose)
    return _unfenced(text)


def _with_helpers(blocks: list[str], main: int) -> str:
    """The main block below those other blocks that define a name which it needs."""
    source = blocks[main]
    others = [block for index, block in enumerate(blocks) if index != main and not _DEFINITION.search(block)]
    missing = _names_missing(source)
    for block in reversed(others):
        if missing & _names_defined(block):
            source = f"{block.rstrip()}\n\n\n{source}"
            missing = _names_missing(source)
    return source.strip() + "\n"


def _names_defined(source: str) -> set[str]:
    """Names that the top level binds; none where the source does not parse."""
    names: set[str] = set()
    for statement in _statements(source):
        match statement:
            case ast.FunctionDef():
                names.add(statement.name)
            case ast.Import() | ast.ImportFrom():
                names |= {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
            case _:
                names |= {
                    node.id
                    for node in ast.walk(statement)
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                }
    return names


def _names_missing(source: str) -> set[str]:
    """Names that are read and bound nowhere in the source."""
    bound = _names_defined(source) | set(dir(builtins))
    read: set[str] = set()
    for statement in _statements(source):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
            elif isinstance(node, ast.arg):
                bound.add(node.arg)
            elif isinstance(node, ast.FunctionDef):
                bound.add(node.name)
    return read - bound


def _statements(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _unfenced(text: str) -> Reply:
    """Code that stands in the reply without a fence, from its first line that looks like code to its last that parses."""
    definition = _DEFINITION.search(text)
    if definition is None:
        return Reply("", text.strip())
    start = next(
        (match.start() for match in _CODE_START.finditer(text) if match.start() <= definition.start()),
        definition.start(),
    )
    lines = text[start:].splitlines()
    for end in range(len(lines), 0, -1):
        source = textwrap.dedent("\n".join(lines[:end])) + "\n"
        if _DEFINITION.search(source) and _statements(source):
            around = (text[:start].strip(), "\n".join(lines[end:]).strip())
            return Reply(source.strip() + "\n", "\n\n".join(part for part in around if part))
    return Reply(text[start:].strip() + "\n", text[:start].strip())
