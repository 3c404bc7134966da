"""Untrusted text, made safe to parse, to store, and to show in a terminal, a report or a prompt."""

from __future__ import annotations

import json
import re

_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_ESCAPE_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    # titles, links, the clipboard
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_NO_WIDTH = dict.fromkeys((0x0B, 0x0C, 0x0D, 0x2028, 0x2029))
"""Line ends that no terminal should see."""
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f"  # controls but tab and line feed
    # what turns the direction of text, or has no width
    "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff"  # halves of characters, which no file can take
    "\U000e0000-\U000e007f]"  # letters that nobody sees
)

LONGEST_TEXT = 8000
"""Characters of any text from a worker that a person, a report or a prompt gets."""


def printable(text: str) -> str:
    """Text with `\\n` as its only line end, without escape sequences and invisible characters."""
    return _INVISIBLE.sub("", _ESCAPE_SEQUENCES.sub("", _LINE_ENDS.sub("\n", text)))


def visible(text: str) -> str:
    """Text of the same width without invisible characters; rests of escape sequences stay."""
    return _INVISIBLE.sub("", text.translate(_NO_WIDTH))


def escaped(json_text: str) -> str:
    """JSON with those characters as escapes; JSON itself escapes only those below 32."""
    return _INVISIBLE.sub(lambda found: json.dumps(found[0])[1:-1], json_text)


def one_line(text: str, limit: int) -> str:
    """Text in one line of at most `limit` characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def escape_unprintable(text: str, keep: str = "") -> str:
    """Write characters that are not printable, but those in `keep`, as in Python source."""
    if text.isprintable():
        return text
    return "".join(
        each
        if each.isprintable() or each in keep
        else each.encode("unicode_escape", "backslashreplace").decode()
        for each in text
    )


def plain_text(text: str) -> str:
    """Text from a worker, bounded, with control characters escaped as in source code."""
    if len(text) > LONGEST_TEXT:
        text = f"{text[: LONGEST_TEXT - 3]}..."
    return escape_unprintable(text, keep="\t\n")[: 2 * LONGEST_TEXT]


def plain_line(text: str, limit: int) -> str:
    """`plain_text` in one line of at most `limit` characters."""
    return one_line(plain_text(" ".join(text.split())), limit)


def clipped(text: str, limit: int) -> str:
    """First `limit` characters of a text of several lines, and the number of the others."""
    left = len(text) - limit
    return text if left <= 0 else f"{text[:limit].rstrip()}\n[… {left} more characters]"


def without_headings(text: str) -> str:
    """Text without the marks of headings and code blocks, so that it can stand in any prompt."""
    return re.sub(
        r"^[ \t]*(?:#{1,6}(?=\s)|`{3,}\w*[ \t]*$|~{3,}\w*[ \t]*$)[ \t]*",
        "",
        text,
        flags=re.MULTILINE,
    )
