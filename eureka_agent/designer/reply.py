"""Reward source and reasoning from a language model's reply of any form."""

from __future__ import annotations

import re
from dataclasses import dataclass

from eureka_agent.designer import salvage
from eureka_agent.designer.source_tools import ENTRY_POINT
from eureka_agent.llm.markdown import Block, joined_prose, split
from eureka_agent.llm.spoken import spoken
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

_MOST_PARTS = 200
"""Most blocks of a reply and texts between them, from the last one."""
_DISCARDED = re.compile(
    r"[\s#*_>-]*(?:for (?:comparison|reference)[,:]?|instead of|not)?\s*(?:the|an?|my)?\s*"
    r"(?:(?:earlier|previous|old|original|discarded|rejected|abandoned|alternative|unused|option|variant)\b"
    r"|(?:first|wrong|bad|naive) (?:try|attempt|draft|version|one|idea)\b|before\s*(?:[(:*]|$))",
    re.IGNORECASE,
)
"""Begin of a line about a reward that the model has left behind."""
_TAKEN_BACK = re.compile(
    r"\b(?:wait|oops|hmm|wrong|incorrect|mistaken?|corrected)\b|\breplace `", re.IGNORECASE
)
"""Words after a reward that take it back."""


@dataclass(frozen=True)
class Reply:
    """Content of a reply."""

    source: str
    """Empty without a `compute_reward`, and where it is not sure which one is the answer."""
    reasoning: str
    """The prose around the code."""
    problem: str = ""
    """The reason for an empty source, in words for the model."""


@dataclass(frozen=True)
class _Candidate:
    """A part of a reply that defines the reward."""

    source: str
    around: str
    """Prose in the part."""
    place: int
    """Index of the part."""
    is_excerpt: bool
    """True for a definition that leaves parts out, beside one that is whole."""


def parse_reply(text: str, thoughts: str = "", *, cut_off: bool = False) -> Reply:
    """Find the reward in a reply: the last definition of `compute_reward` in its answer, with the
    blocks that define what it calls.

    Helpers may be anywhere, in blocks of their own too. A block that was cut off counts, as does
    code without a fence, in JSON, in the new half of a replacement, or in a diff that holds all of
    it. Invalid code is returned unchanged, for the critic to judge. `thoughts`: those that the
    server sent apart. They count where there is no answer, they end with the only reward in them,
    and the reply was not `cut_off` at the bound on tokens.
    """
    answer = spoken(printable(text))
    if answer.text.strip() and not (answer.thoughts and cut_off):
        return _parse(answer.text, cut_off=cut_off)
    thought = (answer.thoughts or printable(thoughts)).strip()
    if cut_off or not thought:
        return Reply("", "", "the reply holds no answer")
    reply = _parse(thought)
    parts = split(thought)
    ends_with_it = isinstance(parts[-1], str) and not parts[-1].strip()
    is_only = len(_DEFINITION.findall(thought)) == 1
    if reply.source and ends_with_it and is_only:
        return reply
    return Reply("", "", "the reply holds thoughts, and no answer after them")


def _parse(text: str, *, cut_off: bool = False) -> Reply:
    text, new = salvage.replaced(text)
    parts = split(text)[-_MOST_PARTS:]
    codes = [_code(part) if isinstance(part, Block) else "" for part in parts]
    found = [
        candidate
        for place, part in enumerate(parts)
        if (candidate := _candidate(part, codes[place], place)) is not None
    ]
    whole = [each for each in found if salvage.is_whole(each.source, ENTRY_POINT)]
    if not found:
        problem = f"the reply holds no Python code block that defines `{ENTRY_POINT}`"
        return _wrapped(text) or Reply("", _reply("", text).reasoning, problem)
    main = whole[-1] if whole and found[-1].is_excerpt else found[-1]
    prose = joined_prose(
        [main.around if place == main.place else part for place, part in enumerate(parts)]
    )
    others = {each.source for each in whole if each.place < main.place} - {main.source}
    problem = ""
    if others and _is_discarded(parts[: main.place]):
        problem = "the reply holds several rewards, and it is not clear which one counts"
    problem = problem or _doubt(main, parts[main.place + 1 :], new, cut_off=cut_off)
    if problem:
        return Reply("", clipped(prose, LONGEST_REASONING), problem)
    codes[main.place] = main.source
    return _reply(_with_helpers(codes, main.place), prose)


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


def _candidate(part: Block | str, code: str, place: int) -> _Candidate | None:
    """The definition in a part of a reply; None without one."""
    if isinstance(part, str):
        reply = _wrapped(part) or _unfenced(part)
        if not reply.source:
            return None
        return _Candidate(reply.source, reply.reasoning, place, salvage.is_excerpt(reply.source))
    if _DEFINITION.search(code):
        excerpt = salvage.is_excerpt(code) or part.language in _OTHER_LANGUAGES
        return _Candidate(code, "", place, excerpt and part.closed)
    wrapped = _wrapped(part.body)
    if wrapped is None:
        return None
    return _Candidate(wrapped.source, wrapped.reasoning, place, is_excerpt=False)


def _wrapped(text: str) -> Reply | None:
    """The reward in a JSON text."""
    wrapped = salvage.from_json(text, ENTRY_POINT)
    if wrapped is None:
        return None
    source, around = wrapped
    inner = _parse(source) if "```" in source else Reply(source, "")
    return _reply(inner.source, _joined(around, inner.reasoning))


def _doubt(main: _Candidate, after: list[Block | str], new: list[str], *, cut_off: bool) -> str:
    """The reason why a reward may not be the model's answer, by the parts after it; empty if there
    is none. `new`: lines of replacements."""
    blocks = [part for part in after if isinstance(part, Block)]
    prose = "\n".join(part for part in after if isinstance(part, str)).strip()
    if cut_off and (blocks or prose):
        return "the reply was cut off while it went on after a reward"
    changes = [line for block in blocks for line in _changes(block, main)]
    for line in (*new, *changes, *salvage.added_lines(prose)):
        if line.strip() and line.strip() not in main.source:
            return "the reply changes a part of its reward, and does not show the whole"
    is_unread = re.search(rf"def\s+{ENTRY_POINT}\b", prose) is not None
    is_missing = any(not each.body.strip() and each.language.startswith("py") for each in blocks)
    is_promised = not blocks and prose.endswith(":")
    if is_unread or is_missing or is_promised or _TAKEN_BACK.search(prose):
        return "the reply goes on after its reward, as if another one followed"
    return ""


def _is_discarded(parts: list[Block | str]) -> bool:
    """True where the prose before a definition tells it as an earlier one."""
    lines = [line for part in parts[-1:] if isinstance(part, str) for line in part.split("\n")]
    last = next((line for line in reversed(lines) if line.strip()), "")
    return _DISCARDED.match(last) is not None


def _changes(block: Block, main: _Candidate) -> list[str]:
    """Lines of a later block that replace some of the reward's: those that a diff adds, and
    assignments to names of the function."""
    if ENTRY_POINT in block.body and block.language not in ("diff", "patch", ""):
        return []
    names = salvage.names_assigned(main.source, ENTRY_POINT) & salvage.names_defined(block.body)
    return salvage.added_lines(block.body) or (block.body.split("\n") if names else [])


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
    """Code without a fence, from the first line that looks like code to the last that parses, or
    in a diff that holds all of it."""
    if (patch := salvage.BEGIN_OF_DIFF.search(text)) and salvage.added_lines(text[patch.start() :]):
        source = salvage.from_diff(text[patch.start() :]) or ""
        return _reply(source if _DEFINITION.search(source) else "", text[: patch.start()])
    definitions = list(_DEFINITION.finditer(text))
    if not definitions:
        return _reply("", text)
    last = definitions[-1]
    before, code = _indented_part(text, last) if last["indent"] else ("", text)
    *older, place = _DEFINITION.finditer(code)
    begin = older[-1].end() if older else 0
    starts = [each.start() for each in _CODE_START.finditer(code, 0, place.start())]
    starts = [*starts[:1], *(start for start in starts[1:] if start > begin)]
    for start in [*starts[: _MOST_TRIES - 1], place.start()]:
        length = salvage.leading_code(code[start:], ENTRY_POINT)
        if start + length > place.start():
            break
    else:  # the critic tells what is wrong with it
        above = (each for each in starts if salvage.parses(code[each : place.start()]))
        start = next(above, place.start())
        after = _AFTER_A_BODY.search(code, place.end())
        length = (len(code) if after is None else after.start()) - start
    end = start + length
    return _reply(code[start:end], _joined(before, code[:start], code[end:]))


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
