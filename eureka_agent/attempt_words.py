"""Attempts and their scores in words."""

from __future__ import annotations

import json
from collections.abc import Iterable

from eureka_agent import wording
from eureka_agent.records import Attempt, Outcome, Proposal, RungScore, Score, Stage, ToolCall
from eureka_agent.text import clipped, one_line

TIME_OUT = "time_out"
"""Cause of an episode that ended by its time limit."""


def episode_length(attempt: Attempt) -> float | None:
    """Last known mean length of an episode in control steps."""
    lengths = attempt.diagnosis.episode_length_values if attempt.diagnosis is not None else ()
    return next((value for value in reversed(lengths) if value is not None), None)


def discard_reason(attempt: Attempt) -> str:
    """Reason of a discarded attempt."""
    error = first_error(attempt) if attempt.stage is Stage.REJECTED else ""
    return error or attempt.reason


def remark(attempt: Attempt) -> str:
    """Reason of a discarded attempt, or its first finding."""
    if attempt.stage is Stage.TRAINED:
        return first_finding(attempt)
    return attempt.reason or first_error(attempt)


def origin(proposal: Proposal) -> str:
    """`improve from 1-01`, `randomise from 1-01: mass=0.5..2`."""
    operator = wording.words(proposal.operator.value)
    parents = " and ".join(proposal.parents)
    under = "" if proposal.distribution is None else f": {proposal.distribution.text}"
    return f"{operator} from {parents}{under}" if parents else operator


def call_text(call: ToolCall) -> str:
    """`1-03: ball_speed where distance < 0.1`, or the tool's name with its arguments."""
    try:
        found = json.loads(call.arguments)
    except ValueError:
        found = None
    given = {name: str(each) for name, each in found.items()} if isinstance(found, dict) else {}
    given.pop("source", None)
    of, where = given.pop("attempt", ""), given.pop("where", "")
    rest = " ".join(given.values()) + (f" where {where}" if where else "")
    name = "" if call.name == "ask" else call.name
    text = f"{name} {of}".strip() + (f": {rest}" if rest else "")
    return one_line(clipped(text, 160), 160)


def fitness_per_seed(score: Score) -> str:
    """`2.00, failed, 1.90 (from the cache)`."""
    values = ("failed" if value is None else wording.number(value) for value in score.fitness)
    return ", ".join(values) + (f" ({score.origin})" if score.origin else "")


def measure_of(attempts: Iterable[Attempt]) -> str:
    """Title of what ranks these attempts: `strength` or `fitness`."""
    return "fitness" if all(each.strength is None for each in attempts) else "strength"


def merit_words(attempt: Attempt) -> str:
    """Strength of an attempt with its deviation, `+1.25 ± 0.50`, or its fitness."""
    if attempt.strength is None:
        return wording.number(attempt.fitness)
    return wording.strength(attempt.strength.mean, attempt.strength.deviation)


def fitness_words(attempt: Attempt, env_steps: int) -> str:
    """Strength or fitness of an attempt; without one its score at the last rung: `7.89 at 70 %`."""
    reached = rung_reached(attempt)
    if reached is None:
        return merit_words(attempt)
    share = round(100 * reached.env_steps / env_steps)
    return f"{wording.number(reached.fitness)} at {share} %"


def rung_reached(attempt: Attempt) -> RungScore | None:
    """Last score at a rung of an attempt without a fitness; None for other attempts."""
    known = [score for score in attempt.rungs if score.fitness is not None]
    return known[-1] if known and attempt.fitness is None else None


def early_ends(outcome: Outcome) -> str:
    """`12 of 32 ended early (torso_too_low 12)`; empty where episodes were not counted."""
    episodes = sum(outcome.ended_by.values())
    early = {cause: count for cause, count in outcome.ended_by.items() if cause != TIME_OUT}
    if not early:
        return f"none of {episodes} ended early" if episodes else ""
    causes = sorted(early.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{cause} {count}" for cause, count in causes)
    return f"{sum(early.values())} of {episodes} ended early ({named})"


def first_finding(attempt: Attempt) -> str:
    """The diagnosis's first finding; empty without one."""
    findings = attempt.diagnosis.findings if attempt.diagnosis is not None else ()
    return findings[0].message if findings else ""


def first_error(attempt: Attempt) -> str:
    """The critic's first error in one line; empty without one."""
    if attempt.verdict is None:
        return ""
    for finding in attempt.verdict.findings:
        if finding.severity == "error":
            place = f" line {finding.line}" if finding.line is not None else ""
            return f"{finding.code}{place}: {finding.message}"
    return ""
