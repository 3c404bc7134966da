"""The diagnosis in words: what the designer is told, and one short line for tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from eureka_agent.analysis.curves import Evidence
from eureka_agent.analysis.reflection import number, reflection
from eureka_agent.records import ComponentSummary, Diagnosis, DiagnosisFinding

_SHORT = {
    "dead-component": "dead: {component}",
    "dominant-component": "dominated by {component}",
    "reward-hacking": "reward up, fitness down",
    "early-termination": "ends early: {cause}",
    "saturated-actions": "actions at their bounds",
    "not-a-number": "not a number",
    "no-learning": "learns nothing",
    "still-improving": "still improving",
    "collapsed": "collapsed",
    "exploration-lost": "stopped exploring",
}


def designer_text(
    evidence: Evidence, components: Sequence[ComponentSummary], findings: Sequence[DiagnosisFinding], episodes: str = ""
) -> str:
    """Reflection, evaluation, findings with advice, and the episodes where there are any."""
    parts = [reflection(evidence, components)]
    if evidence.evaluation is not None and evidence.evaluation.episodes:
        parts.append(_evaluation_line(evidence))
    if evidence.failure:
        parts.append(f"The training broke off: {evidence.failure}")
    if findings:
        parts.append(
            "\n".join(["Findings:", *(f"- {finding.message} Advice: {finding.advice}." for finding in findings)])
        )
    if episodes:
        parts.append(episodes)
    return "\n\n".join(parts)


def _evaluation_line(evidence: Evidence) -> str:
    evaluation = evidence.evaluation
    assert evaluation is not None
    ends = Counter(episode.ended_by for episode in evaluation.episodes)
    count = len(evaluation.episodes)
    ended = ", ".join(
        f"{cause} {number / count:.0%}" for cause, number in sorted(ends.items(), key=lambda item: (-item[1], item[0]))
    )
    return (
        f"Best policy without exploration noise, {count} episodes: fitness {number(evaluation.fitness_mean())} {evidence.description.fitness_unit}; "
        f"ended by {ended}."
    )


def one_line(diagnosis: Diagnosis) -> str:
    """The findings in a few words, the most telling first; empty where there are none."""
    words = [
        _SHORT[finding.code].format(component=finding.component, cause=finding.cause) for finding in diagnosis.findings
    ]
    return "; ".join(dict.fromkeys(words))
