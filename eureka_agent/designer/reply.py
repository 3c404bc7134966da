"""Reward source and reasoning from a language model's reply. Nothing is run here. Models write
prose and Python in fences, at times without fences, with a draft before the answer. A reply of
which it is not sure what counts has no source: the model is asked again."""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from eureka_agent import syntax
from eureka_agent.critic.allow_list import names_bound, names_used
from eureka_agent.designer.source_tools import ENTRY_POINT
from eureka_agent.llm.spoken import Block, joined_prose, split, spoken
from eureka_agent.text import clipped, printable

LONGEST_REASONING = 10_000
"""Most characters of a proposal's reasoning. The whole reply is stored apart."""
LONGEST_SOURCE = 50_000
_MOST_PARTS = 200
"""Most blocks of a reply and texts between them, from the last one."""
_CODE_LINE = re.compile(
    r"\s*$|[ \t#@)\]}]|import [\w.]+|from [\w.]+ import\b|def \w"
    r"|[A-Za-z_]\w*(?: *: *[\w.]+)? *= *\S"
)
_PATCH = re.compile(r"^(?:\*\*\* (?:Begin|Update)\b|<{5,9} |@@|\+\+\+ |--- \S)", re.MULTILINE)
"""Lines of a diff, or of a replacement such as between `<<<<<<< SEARCH` and `>>>>>>> REPLACE`."""
# it has no ambiguous part, since a model may write a line of 50,000 hashes
_ELISION = re.compile(
    r"^[ \t]*+#?[ \t]*+(?:\.{3}|…)|\([ \t]*+(?:\.{3}|…)|^[^#\n]*+#[^\n]*\b(?:unchanged|(?:same )?as"
    r" (?:before|above))\b",
    re.MULTILINE | re.IGNORECASE,
)
_DISCARDED = re.compile(
    r"[\s#*_>-]*(?:for (?:comparison|reference)[,:]?|instead of|not)?\s*(?:the|an?|my)?\s*"
    r"(?:(?:earlier|previous|old|original|discarded|rejected|abandoned|alternative|unused|option|variant)\b"
    r"|(?:first|wrong|bad|naive) (?:try|attempt|draft|version|one|idea)\b|before\s*(?:[(:*]|$))",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\b(?:wait|oops|hmm|wrong|incorrect|mistaken?|corrected)\b|\breplace `", re.IGNORECASE
)
_PARTIAL = "the reply changes a part of its reward, and does not show the whole"


@dataclass(frozen=True)
class Reply:
    """Content of a reply."""

    source: str
    """Empty without a `compute_reward`, and where it is not sure which one is the answer."""
    reasoning: str
    problem: str = ""
    """The reason for an empty source, in words for the model."""


def parse_reply(text: str, *, cut_off: bool = False, entry: str = ENTRY_POINT) -> Reply:
    """Find the reward in a reply: the last definition of `compute_reward`, or of another `entry`,
    in its answer, with the blocks that define what it calls. Invalid code is returned unchanged,
    for the critic to judge."""
    definition = re.compile(rf"^(?:async )?def\s+{entry}\b", re.MULTILINE)
    answer = spoken(printable(text))
    if not answer.text.strip() or (answer.thoughts and cut_off):
        why = "thoughts, and no answer after them" if answer.thoughts else "no answer"
        return Reply("", "", f"the reply holds {why}")
    parts = split(answer.text)[-_MOST_PARTS:]
    codes = [part.body if isinstance(part, Block) and _is_python(part) else "" for part in parts]
    found = [place for place, code in enumerate(codes) if definition.search(code)]
    prose = clipped(joined_prose(parts), LONGEST_REASONING)
    if found:
        if problem := _doubt(parts, codes, found, entry, cut_off=cut_off):
            return Reply("", prose, problem)
        return _reply(_joined(codes, found[-1], definition), prose)
    if not definition.search(
        prose_only := "\n".join(each for each in parts if isinstance(each, str))
    ):
        problem = f"the reply holds no Python code block that defines `{entry}`"
        return Reply("", prose, problem)
    if _PATCH.search(prose_only):
        return Reply("", prose, _PARTIAL)
    return _unfenced(prose_only, definition)


def _reply(source: str, reasoning: str) -> Reply:
    source = source.strip("\n").rstrip()
    return Reply(f"{source}\n", clipped(reasoning.strip(), LONGEST_REASONING))


def _is_python(block: Block) -> bool:
    return not block.language or block.language.startswith("py")


def _doubt(
    parts: Sequence[Block | str],
    codes: Sequence[str],
    found: Sequence[int],
    entry: str,
    *,
    cut_off: bool,
) -> str:
    """The reason why the last of the found rewards may not be the answer; empty for none."""
    place, code = found[-1], codes[found[-1]]
    blocks = [part for part in parts[place + 1 :] if isinstance(part, Block)]
    prose = "\n".join(part for part in parts[place + 1 :] if isinstance(part, str)).strip()
    if cut_off and (blocks or prose):
        return "the reply was cut off while it went on after a reward"
    if _PATCH.search("\n".join([code, prose, *(each.body for each in blocks)])):
        return _PARTIAL
    own = {name for each in _statements(code) for name in names_used(each, ast.Store)}
    later = [each.body for each in blocks if entry not in each.body]  # no example of usage
    if (len(found) > 1 and _is_excerpt(code)) or any(own & _defined(each) for each in later):
        return _PARTIAL
    before = [part for part in parts[place - 1 : place] if isinstance(part, str)]
    lines = [line for part in before for line in part.split("\n") if line.strip()]
    if len(found) > 1 and lines and _DISCARDED.match(lines[-1]):
        return "the reply holds several rewards, and it is not clear which one counts"
    is_missing = any(not each.body.strip() and each.language.startswith("py") for each in blocks)
    is_promised = not blocks and prose.endswith(":")
    unread = "\n".join([prose, *(each.body for each in blocks)])
    is_unread = re.search(rf"def\s+{entry}\b", unread) is not None
    if is_unread or is_missing or is_promised or _TAKEN_BACK.search(prose):
        return "the reply goes on after its reward, as if another one followed"
    return ""


def _is_excerpt(source: str) -> bool:
    """True for a definition that leaves parts out, or returns nothing."""
    nodes = [node for each in _statements(source) for node in ast.walk(each)]
    returns = any(isinstance(node, ast.Return) and node.value is not None for node in nodes)
    return _ELISION.search(source) is not None or (bool(nodes) and not returns)


def _joined(codes: Sequence[str], main: int, definition: re.Pattern[str]) -> str:
    """The main block, after the blocks that define names which it needs."""
    others = {
        place: _defined(code)
        for place, code in enumerate(codes)
        if code and place != main and not definition.search(code)
    }
    needed: set[int] = set()
    missing = _missing(codes[main])
    while found := [place for place, names in others.items() if missing & names]:
        needed.add(found[-1])
        missing = (missing | _missing(codes[found[-1]])) - others.pop(found[-1])
    helpers = (codes[place].strip("\n").rstrip() for place in sorted(needed))
    return "\n\n\n".join([*helpers, codes[main]])


def _unfenced(text: str, definition: re.Pattern[str]) -> Reply:
    """Code without a fence: the lines around the last definition that look like code."""
    lines = text.split("\n")
    place = max(number for number, line in enumerate(lines) if definition.match(line))
    first, last = place, place + 1
    while first and _CODE_LINE.match(lines[first - 1]):
        first -= 1
    while last < len(lines) and (not lines[last].strip() or lines[last][0] in " \t#)]}"):
        last += 1
    first = first if _statements("\n".join(lines[first:last])) else place
    around = ("\n".join(lines[:first]).strip(), "\n".join(lines[last:]).strip())
    return _reply("\n".join(lines[first:last]), "\n\n".join(filter(None, around)))


def _statements(source: str) -> list[ast.stmt]:
    """The top-level statements; empty if the source does not parse or is too long."""
    if len(source) > LONGEST_SOURCE:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as a backslash in a string
            return syntax.parsed(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _defined(source: str) -> set[str]:
    """Names that the top level binds; none if the source does not parse."""
    names: set[str] = set()
    for each in _statements(source):
        names |= {each.name} if isinstance(each, ast.FunctionDef) else names_bound(each)
    return names


def _missing(source: str) -> set[str]:
    """Names that are read but bound nowhere in the source."""
    tree = ast.Module(_statements(source), [])
    return set(names_used(tree)) - names_bound(tree) - set(dir(builtins))
