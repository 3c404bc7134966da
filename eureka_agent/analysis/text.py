"""The diagnosis in words: what the designer is told, and one short line for tables."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Sequence

from eureka_agent.analysis.curves import TIME_OUT, Evidence
from eureka_agent.analysis.reflection import number, reflection
from eureka_agent.records import ComponentSummary, Diagnosis, DiagnosisFinding, EpisodeSummary

_FINDINGS = "Findings:"
_SHORT = {
    "dead-component": "dead: {component}",
    "dominant-component": "dominated by {component}",
    "reward-hacking": "reward up, fitness down",
    "early-termination": "ends early: {cause}",
    "saturated-actions": "actions at their bounds",
    "not-a-number": "not a number",
    "no-learning": "learns nothing",
    "still-improving": "rose late",
    "collapsed": "collapsed",
    "exploration-lost": "stopped exploring",
}


def designer_text(
    evidence: Evidence,
    components: Sequence[ComponentSummary],
    findings: Sequence[DiagnosisFinding],
    episodes: str = "",
) -> str:
    """Reflection, the policy's fitness without noise, findings with advice, and the episodes where
    there are any."""
    parts = [reflection(evidence, components)]
    if policy := _policy_text(evidence):
        parts.append(policy)
    if evidence.failure:
        parts.append(f"The training broke off: {evidence.failure}")
    if findings:
        parts.append("\n".join([_FINDINGS, *(_finding_line(finding) for finding in findings)]))
    if episodes:
        parts.append(episodes)
    return "\n\n".join(parts)


def without_findings(diagnosis: Diagnosis, dropped: Sequence[DiagnosisFinding]) -> Diagnosis:
    """The diagnosis as if these had not been found, in its text too."""
    if not dropped:
        return diagnosis
    left = tuple(finding for finding in diagnosis.findings if finding not in dropped)
    text = diagnosis.text
    for finding in dropped:
        text = text.replace(f"\n{_finding_line(finding)}", "")
    if not left:
        text = text.replace(f"\n\n{_FINDINGS}", "")
    return diagnosis.model_copy(update={"findings": left, "text": text})


def _finding_line(finding: DiagnosisFinding) -> str:
    return f"- {finding.message} Advice: {finding.advice}."


def _policy_text(evidence: Evidence) -> str:
    """The policy's fitness without exploration noise: of which policy, over how many episodes, with
    what spread, and how they ended."""
    if evidence.score is None:
        return ""
    unit = evidence.description.fitness_unit
    fitness = f"fitness {number(evidence.score)}" + (f" {unit}" if unit not in ("", "1") else "")
    if evidence.evaluation is None or not evidence.evaluation.episodes:
        return (
            "The policy at the last of these points, acting without exploration noise: mean"
            f" {fitness}."
        )
    episodes = evidence.evaluation.episodes
    values = [episode.fitness for episode in episodes]
    spread = (
        f" (standard deviation between episodes {number(statistics.stdev(values))})"
        if len(values) > 1
        else ""
    )
    kept = f"The policy of checkpoint {(evidence.kept or 0) + 1}, which was kept"
    which = "The policy at the last of these points" if evidence.kept is None else kept
    text = (
        f"{which}, acting without exploration noise in {len(episodes)} episodes: mean"
        f" {fitness}{spread}, {number(min(values))} to {number(max(values))};"
        f" {_early_ends(episodes, evidence.description.success_causes)}"
    )
    early = [episode for episode in episodes if episode.ended_by != TIME_OUT]
    if not early:
        return f"{text}."
    text += (
        f", after {number(statistics.mean(episode.length for episode in early))} steps on average"
    )
    if len(early) == len(episodes):
        return f"{text}."
    others = statistics.mean(
        episode.fitness for episode in episodes if episode.ended_by == TIME_OUT
    )
    return (
        f"{text}, with a mean fitness of"
        f" {number(statistics.mean(episode.fitness for episode in early))}; the others have"
        f" {number(others)}."
    )


def endings_text(evidence: Evidence) -> str:
    """Number and mean length of the evaluated episodes, and how many ended early, by cause; empty
    where none was evaluated."""
    if evidence.evaluation is None or not evidence.evaluation.episodes:
        return ""
    episodes = evidence.evaluation.episodes
    length = statistics.mean(episode.length for episode in episodes)
    return (
        f"{len(episodes)} episodes of {number(length)} steps on average,"
        f" {_early_ends(episodes, evidence.description.success_causes)}"
    )


def _early_ends(episodes: Sequence[EpisodeSummary], good: Collection[str]) -> str:
    causes = Counter(episode.ended_by for episode in episodes if episode.ended_by != TIME_OUT)
    ended = ", ".join(
        f"{cause} {count}{', a success' if cause in good else ''}"
        for cause, count in sorted(causes.items(), key=lambda item: (-item[1], item[0]))
    )
    return f"{causes.total()} ended early ({ended})" if causes else "none ended early"


def one_line(diagnosis: Diagnosis) -> str:
    """The findings in a few words, the most telling first; empty where there are none."""
    words = [
        _SHORT[finding.code].format(component=finding.component, cause=finding.cause)
        for finding in diagnosis.findings
    ]
    return "; ".join(dict.fromkeys(words))
