"""Repair of source that a model wrapped or wrote with wrong characters. Nothing is run here."""

from __future__ import annotations

import ast
import builtins
import itertools
import json
import re
import warnings
from typing import Any

from eureka_agent import syntax
from eureka_agent.critic.allow_list import names_bound, names_used
from eureka_agent.text import printable

LONGEST_SOURCE = 50_000
"""Most characters of a source, as for the critic."""
_MOST_TRIES = 20
"""Times that a text is cut before the parser's error and parsed again."""
_MOST_OBJECTS = 5
"""Opening brackets that are tried as the start of JSON."""
_MENDED = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " "),
        **dict.fromkeys("“”„‟″＂", '"'),
        **dict.fromkeys("‘’‚‛′＇", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212－", "-"),
        **dict(zip("（）［］｛｝：；，．＝＋＊／＜＞", "()[]{}:;,.=+*/<>", strict=True)),
        "×": "*",
    }
)
_OLD_BEGINS = re.compile(
    r"[ \t]*(?:<{5,9}(?: .*)?|\|{5,9}(?: .*)?|<(?:search|old\w{0,20}|original|before)>)[ \t]*",
    re.IGNORECASE,
)
_OLD_ENDS = re.compile(
    r"[ \t]*(?:={5,9}|</(?:search|old\w{0,20}|original|before)>)[ \t]*", re.IGNORECASE
)
_DIFF_HEADER = re.compile(
    r"^(?:@@.*|---.*|\*\*\* .*|\+\+\+.*|diff .*|index [0-9a-f]+.*|\\ No newline.*)$"
)
BEGIN_OF_DIFF = re.compile(
    r"^(?:\*\*\* (?:Begin|Update|Add)\b|--- \S.*\n\+\+\+ |@@ .*@@|@@$|diff --git )", re.MULTILINE
)
# it has no ambiguous part, since a model may write a line of 50,000 hashes
_ELISION = re.compile(
    r"^[ \t]*+#?[ \t]*+(?:\.{3}|…)|\([ \t]*+(?:\.{3}|…)|^[^#\n]*+#[^\n]*\b(?:unchanged|(?:same )?as"
    r" (?:before|above))\b",
    re.MULTILINE | re.IGNORECASE,
)


def statements(source: str) -> list[ast.stmt]:
    """The top-level statements; empty if the source does not parse or is too long."""
    try:
        return _parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def parses(source: str) -> bool:
    """True if the text is Python with a statement in it."""
    return bool(statements(source))


def is_whole(source: str, function: str) -> bool:
    """True if the source defines the whole function at its top level."""
    functions = [node for node in statements(source) if isinstance(node, ast.FunctionDef)]
    found = [node for node in functions if node.name == function]
    if not found or _ELISION.search(source):
        return False
    returned = (node.value for node in ast.walk(found[-1]) if isinstance(node, ast.Return))
    return any(value is not None for value in returned)


def is_excerpt(source: str) -> bool:
    """True if an incomplete definition was meant as an excerpt or a stub."""
    return parses(source) or _ELISION.search(source) is not None


def names_defined(source: str) -> set[str]:
    """Names that the top level binds; none if the source does not parse."""
    names: set[str] = set()
    for each in statements(source):
        names |= {each.name} if isinstance(each, ast.FunctionDef) else names_bound(each)
    return names


def names_assigned(source: str, function: str) -> set[str]:
    """Names that the function at the source's top level binds."""
    found = [node for node in statements(source) if isinstance(node, ast.FunctionDef)]
    return {name for node in found if node.name == function for name in names_used(node, ast.Store)}


def names_missing(source: str) -> set[str]:
    """Names that are read but bound nowhere in the source."""
    tree = ast.Module(statements(source), [])
    return set(names_used(tree)) - names_bound(tree) - set(dir(builtins))


def leading_code(text: str, function: str) -> int:
    """Length of the Python at the text's start that defines the whole function; 0 without it.

    The text from a parser's error on is prose, as are the bare words before it, unless the error
    is in the function.
    """
    lines = whole = text[:LONGEST_SOURCE].split("\n")
    for _ in range(_MOST_TRIES):
        try:
            body = _parse("\n".join(lines)).body
        except SyntaxError as error:
            end = min(error.lineno or len(lines), len(lines)) - 1
            lines = lines[: max(end, 0)]
            continue
        except (ValueError, RecursionError, MemoryError):
            return 0
        while body and isinstance(body[-1], ast.Expr):
            body.pop()
        if not any(isinstance(node, ast.FunctionDef) and node.name == function for node in body):
            return 0
        last = body[-1]
        if isinstance(last, ast.FunctionDef) and lines != whole and not _returns(last):
            return 0
        return len("\n".join(lines[: body[-1].end_lineno]))
    return 0


def _returns(function: ast.FunctionDef) -> bool:
    """True if the function's last statement may be its end."""
    return isinstance(function.body[-1], ast.Return | ast.If | ast.Raise)


def replaced(text: str) -> tuple[str, list[str]]:
    """The text without the old halves of its replacements, such as between `<<<<<<< SEARCH`,
    `=======` and `>>>>>>> REPLACE`, and the lines of the new halves."""
    kept: list[str] = []
    new: list[str] = []
    is_old = in_block = False
    for line in text.split("\n"):
        if _OLD_BEGINS.fullmatch(line):
            is_old, in_block = True, line.lstrip().startswith(("<<<", "|||"))
        elif is_old and _OLD_ENDS.fullmatch(line):
            is_old = False
        elif in_block and line.startswith(">>>>>"):
            is_old = in_block = False
        elif not is_old:
            kept.append(line)
            new += [line] if in_block else []
    return "\n".join(kept), new


def from_json(text: str, function: str) -> tuple[str, str] | None:
    """The longest string in a JSON text that defines the function, and the other strings; None
    without one."""
    if not re.search(rf"def\s+{function}\b", text):
        return None
    decoder = json.JSONDecoder(strict=False)
    for match in itertools.islice(re.finditer(r"(?=[{\[]\s*[{\[\"])", text), _MOST_OBJECTS):
        try:
            value, _ = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        strings = [printable(each) for each in _strings(value)]
        sources = [
            each for each in strings if re.search(rf"^[ \t]*def\s+{function}\b", each, re.MULTILINE)
        ]
        if sources:
            whole = [each for each in sources if is_whole(each, function)]
            source = whole[-1] if whole else max(sources, key=len)
            return source, "\n\n".join(each for each in strings if each != source)
    return None


def from_diff(text: str) -> str | None:
    """The new file of a diff that shows all of it; else None."""
    lines = [line for line in text.split("\n") if not _DIFF_HEADER.match(line)]
    if not any(line.startswith("+") for line in lines):
        return None
    source = "\n".join(
        line[1:] if line[:1] in ("+", " ") else line for line in lines if not line.startswith("-")
    )
    return source if parses(source) else None


def added_lines(text: str) -> list[str]:
    """Lines that a diff in the text adds."""
    lines = text.split("\n")
    if not any(_DIFF_HEADER.match(line) or line.startswith("-") for line in lines):
        return []
    return [line[1:] for line in lines if line.startswith("+") and not _DIFF_HEADER.match(line)]


def mended(source: str) -> str:
    """The source with typographic characters and tabs replaced if that makes it valid Python."""
    plain = source.translate(_MENDED)
    return next(
        (
            each
            for each in (source, plain, plain.expandtabs(4), plain.expandtabs(8))
            if parses(each)
        ),
        source,
    )


def _parse(source: str) -> ast.Module:
    if len(source) > LONGEST_SOURCE:
        raise ValueError("too long to be source")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as a backslash in a string
        return syntax.parsed(source)


def _strings(value: Any) -> list[str]:
    found: list[str] = []
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                found.append(text)
            case list() as values if all(isinstance(each, str) for each in values):
                found.append("".join(values))  # lines, as in a notebook
            case list() as values:
                waiting += reversed(values)
            case dict() as values:
                waiting += reversed(list(values.values()))
    return found
