"""The code blocks of a reply, also badly fenced ones, in one pass over the lines."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field

_FENCE = re.compile(
    r"^(?P<indent>(?:[ \t]*(?:[-*+>]|\d{1,3}[.)])[ \t])?[ \t]*)(?P<fence>`{3,}|~{3,})"
    r"(?P<info>[^`\n]*)$"
)
_DEEPER = 4
"""Further indentation from which a fence with a language belongs to the content of a block."""
_DEEPEST = 3
_PROSE = ("", "markdown", "md", "text", "txt")
"""Languages of prose, which may hold further blocks."""
_THINKING = re.compile(r"<(?P<tag>think(?:ing)?)>.*?(?:</(?P=tag)>|\Z)", re.DOTALL | re.IGNORECASE)
_THINKING_TAG = re.compile(r"<(?P<end>/?)think(?:ing)?>", re.IGNORECASE)


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

    @property
    def language(self) -> str:
        return (re.split(r"[\s{,:]", self.info.strip().lower()) or [""])[0].lstrip("{.")

    def closes(self, fence: str, info: str) -> bool:
        return not info.strip() and self._counts(fence)

    def is_followed_by(self, indent: int, fence: str, info: str) -> bool:
        """True where the fence opens another block, although this one was not closed."""
        return bool(info.strip()) and self._counts(fence) and indent < self.indent + _DEEPER

    def _counts(self, fence: str) -> bool:
        return fence[0] == self.fence[0] and len(fence) >= len(self.fence)


def split_blocks(text: str, depth: int = 0) -> tuple[list[Block], str]:
    """Split a text into code blocks, also those within a prose block or cut off by the text's end,
    and prose. A fence with a language ends an open block."""
    blocks: list[Block] = []
    prose: list[str] = []
    block: _Open | None = None
    for line in text.split("\n"):
        match = _FENCE.match(line)
        fence = None
        if match is not None:
            fence = len(match["indent"].expandtabs(4)), match["fence"], match["info"]
        if block is None:
            if fence is None:
                prose.append(line)
            else:
                block = _Open(*fence)
        elif fence is not None and block.closes(*fence[1:]):
            _close(block, blocks, prose, depth, closed=True)
            block = None
        elif fence is not None and block.is_followed_by(*fence):
            if block.language in _PROSE:
                prose += block.lines
            else:
                _close(block, blocks, prose, depth, closed=True)
            block = _Open(*fence)
        else:
            block.lines.append(line)
    if block is not None:
        _close(block, blocks, prose, depth, closed=False)
    return blocks, re.sub(r"\n{3,}", "\n\n", "\n".join(prose)).strip()


def _close(
    block: _Open, blocks: list[Block], prose: list[str], depth: int, *, closed: bool
) -> None:
    prose.append("")
    lines = block.lines
    if all(line.lstrip().startswith(">") for line in lines):
        lines = [re.sub(r"^[ \t]*> ?", "", line) for line in lines]
    body = textwrap.dedent("\n".join(lines)) + "\n"
    has_blocks = re.search(r"^[ \t]*(?:```|~~~)", body, re.MULTILINE)
    if depth < _DEEPEST and block.language in _PROSE and has_blocks:
        inner, around = split_blocks(body, depth + 1)
        blocks += inner
        prose.append(around)
    else:
        blocks.append(Block(block.language, body, closed))


def without_thinking(text: str) -> str:
    """The text without thoughts in `<think>` tags; all of it if nothing else is left."""
    spoken = _THINKING.sub("", text)
    ends = [match.end() for match in _THINKING_TAG.finditer(spoken) if match["end"]]
    if ends:  # thoughts without an opening tag
        spoken = spoken[ends[-1] :]
    return spoken if spoken.strip() else _THINKING_TAG.sub("", text)
