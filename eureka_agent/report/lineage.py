"""Lineage of attempts as a tree in text: which one was made from which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eureka_agent import wording
from eureka_agent.attempt_words import discard_reason
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt
from eureka_agent.text import one_line

MOST_NODES = 60
"""Attempts of one tree."""
LONGEST_REMARK = 60


def lineage(
    attempts: Sequence[Attempt], best: str = "", unit_note: str = "", most: int = MOST_NODES
) -> tuple[str, int]:
    """A line for each attempt below its first parent, and the number of attempts left out. Shown
    are the best one with its ancestors, then the others by rank, each with its ancestors, then
    those without a fitness."""
    parents = _parents(attempts)
    chosen: dict[str, None] = {}
    for name in (*([best] if best in parents else []), *(a.id for a in ranked(attempts)), *parents):
        line = [each for each in _with_ancestors(name, parents)[:most] if each not in chosen]
        if len(chosen) + len(line) <= most:
            chosen.update(dict.fromkeys(line))
    children: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.id in chosen:
            first = next((each for each in parents[attempt.id] if each in chosen), "")
            children.setdefault(first, []).append(attempt)

    def label(attempt: Attempt) -> str:
        made = "revision" if attempt.revision else wording.words(attempt.proposal.operator.value)
        result = f"{wording.number(attempt.merit)}{unit_note}"
        if attempt.merit is None:
            remark = one_line(discard_reason(attempt), LONGEST_REMARK)
            result = ": ".join(filter(None, (attempt.stage.value, remark)))
        others = parents[attempt.id][1:]
        also = f", also from {' and '.join(others)}" if others else ""
        mark = "   ← the best" if attempt.id == best else ""
        return f"{attempt.id}  {made} · {result}{also}{mark}"

    def below(parent: str, indent: str) -> Iterator[str]:
        members = children.get(parent, [])
        for attempt in members:
            last = attempt is members[-1]
            yield f"{indent}{'└─ ' if last else '├─ '}{label(attempt)}"
            yield from below(attempt.id, indent + ("   " if last else "│  "))

    lines = [line for root in children.get("", []) for line in (label(root), *below(root.id, ""))]
    return "\n".join(lines), len(attempts) - len(chosen)


def _parents(attempts: Sequence[Attempt]) -> dict[str, tuple[str, ...]]:
    """Known parents of each attempt, which come before it; a revision's is what it revises."""
    found: dict[str, tuple[str, ...]] = {}
    last: dict[tuple[int, int], str] = {}
    for attempt in attempts:
        place = attempt.iteration, attempt.sample
        revised = (last[place],) if attempt.revision and place in last else ()
        last[place] = attempt.id
        made_from = dict.fromkeys(revised or attempt.proposal.parents)
        found[attempt.id] = tuple(each for each in made_from if each in found)
    return found


def _with_ancestors(name: str, parents: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The attempt and its known ancestors, nearest first."""
    found = {name: None}
    ahead = [name]
    for each in ahead:
        ahead += [parent for parent in parents[each] if parent not in found]
        found.update(dict.fromkeys(parents[each]))
    return list(found)
