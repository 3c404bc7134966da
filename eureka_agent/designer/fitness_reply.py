"""Fitnesses from a language model's replies: the function, and a JSON block with the words."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from eureka_agent.designer.reply import parse_reply
from eureka_agent.llm.spoken import spoken
from eureka_agent.records import Finding
from eureka_agent.task import FitnessReduction
from eureka_agent.text import printable

KEYS = ("doc", "unit", "reduction", "success")
LONGEST_DOC, LONGEST_UNIT = 300, 20
_REDUCTIONS: tuple[FitnessReduction, ...] = get_args(FitnessReduction)
_OBJECT_STARTS = re.compile(r"^[ \t]*(?=\{)", re.MULTILINE)
_MOST_OBJECTS = 50
_UNSEEN = ("Cc", "Cf", "Co", "Cs")
"""Unicode categories of invisible characters."""
_FORM = 'end with one JSON block: {"doc": "…", "unit": "…", "reduction": "sum", "success": null}'


@dataclass(frozen=True)
class FitnessWords:
    """Content of the JSON block."""

    doc: str
    unit: str
    reduction: FitnessReduction
    success: float | None


@dataclass(frozen=True)
class FitnessReply:
    """Content of a reply."""

    source: str
    """Empty without a `compute_reward`."""
    reasoning: str
    words: FitnessWords | None
    """None if they cannot be used; `findings` tell why."""
    findings: tuple[Finding, ...]
    """Findings on the words, and on invisible characters in the source."""


def parse_fitness_reply(text: str) -> FitnessReply:
    """Find function and words in a reply of any form."""
    block = _last_object(spoken(printable(text)).text)
    reply = parse_reply(block.text_without)  # a JSON object is valid Python too
    findings = list(_unseen(reply.source))
    if not reply.source:
        said = _line(text)
        excerpt = f"; it begins: {said[:200]!r}" if said else ", it is empty"
        message = f"the reply holds no function `compute_reward`{excerpt}"
        findings.append(_finding("F701", message, "write the function"))
    words, found = _words(block)
    return FitnessReply(reply.source, reply.reasoning, words, (*findings, *found))


def _unseen(source: str) -> Iterator[Finding]:
    """Find invisible characters. The user decides by reading the source, so it must hold nothing
    else."""
    for number, line in enumerate(source.split("\n"), 1):
        unseen = (each for each in line if each != "\t" and unicodedata.category(each) in _UNSEEN)
        if (character := next(unseen, None)) is not None:
            message = f"the character U+{ord(character):04X} cannot be seen"
            yield _finding("F702", message, "write the source in visible characters", number)
            return


@dataclass(frozen=True)
class _Block:
    value: dict[str, Any] | None
    """None if it cannot be read."""
    text_without: str
    problem: str = ""
    """The reason why it cannot be read."""


def _words(block: _Block) -> tuple[FitnessWords | None, list[Finding]]:
    found = block.value
    if found is None:
        missing = "the reply holds no JSON block with its words"
        message = f"the JSON block cannot be read: {block.problem}" if block.problem else missing
        return None, [_finding("F703", message, _FORM)]
    findings = [
        _finding("F704", f"the JSON block has no {key!r}", _FORM)
        for key in KEYS
        if key not in found and key != "success"
    ]
    doc, unit, success = found.get("doc"), found.get("unit"), found.get("success")
    reduction = next((known for known in _REDUCTIONS if known == found.get("reduction")), None)
    if "doc" in found and not (isinstance(doc, str) and 0 < len(_line(doc)) <= LONGEST_DOC):
        expected = f"the episode's fitness in words, a text of at most {LONGEST_DOC} characters"
        findings.append(_wrong("doc", doc, expected))
    if "unit" in found and not (isinstance(unit, str) and len(_line(unit)) <= LONGEST_UNIT):
        findings.append(
            _wrong(
                "unit", unit, f'a unit such as "s", at most {LONGEST_UNIT} characters, "1" for none'
            )
        )
    if "reduction" in found and reduction is None:
        findings.append(_wrong("reduction", found["reduction"], f"one of {', '.join(_REDUCTIONS)}"))
    if success is not None and _number(success) is None:
        findings.append(
            _wrong("success", success, "a number, or null where no episode counts as solved")
        )
    if findings or reduction is None:
        return None, findings
    return FitnessWords(_line(doc), _line(unit) or "1", reduction, _number(success)), []


def _number(value: object) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer of hundreds of digits
        return None


def _last_object(text: str) -> _Block:
    """The last JSON object with one of the keys, fenced or not."""
    problem = ""
    for match in list(_OBJECT_STARTS.finditer(text))[: -_MOST_OBJECTS - 1 : -1]:
        start = match.end()
        try:
            value, end = json.JSONDecoder().raw_decode(text, start)
        except json.JSONDecodeError as error:
            if not problem and any(f'"{key}"' in text[start:] for key in KEYS):
                problem = f"{error.msg} at {text[error.pos : error.pos + 20]!r}"
        except (RecursionError, ValueError):  # absurd nesting, a number of thousands of digits
            problem = problem or "it is no plain object"
        else:
            if isinstance(value, dict) and any(key in value for key in KEYS):
                return _Block(value, text[:start] + text[end:])
    return _Block(None, text, problem)


def _line(text: Any) -> str:
    return " ".join(printable(str(text)).split())


def _wrong(key: str, value: object, expected: str) -> Finding:
    return _finding(
        "F705", f"{key!r} in the JSON block is {json.dumps(value)[:80]}, expected {expected}", _FORM
    )


def _finding(code: str, message: str, hint: str, line: int | None = None) -> Finding:
    return Finding(code=code, severity="error", message=message, hint=hint, line=line)
