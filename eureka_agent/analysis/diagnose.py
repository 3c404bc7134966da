"""Diagnosis of a training from outcome, curves and episodes, also in words for the designer; and a
model's explanation of it, with advice (Li et al. 2023)."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from eureka_agent import records
from eureka_agent.analysis.coverage import visited
from eureka_agent.analysis.curves import (
    TIME_OUT,
    Evidence,
    gather,
    number,
    reflection,
    summarize_components,
)
from eureka_agent.analysis.findings import all_findings
from eureka_agent.analysis.standstill import standing_still
from eureka_agent.analysis.trajectories import episodes_text, read_trajectories
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import ChatMessage, FinishReason, ImagePart, Role
from eureka_agent.llm.prompts import render, system_message
from eureka_agent.llm.spoken import no_answer, spoken
from eureka_agent.rewards import RewardSpecification
from eureka_agent.settings import SearchSettings
from eureka_agent.text import printable, without_headings

_FINDINGS = "Findings:"
_LEAST_FOR_QUARTILES = 8


def designer_text(
    evidence: Evidence,
    components: Sequence[records.ComponentSummary],
    findings: Sequence[records.DiagnosisFinding],
    losses: str = "",
) -> str:
    """Reflection, fitness without noise, findings with advice, and losses of fitness if given."""
    parts = [reflection(evidence, components)]
    if policy := _policy_text(evidence):
        parts.append(policy)
    if evidence.failure:
        parts.append(f"The training broke off: {evidence.failure}")
    if findings:
        lines = [f"- {each.message} Advice: {each.advice}." for each in findings]
        parts.append("\n".join([_FINDINGS, *lines]))
    if losses:
        parts.append(losses)
    return "\n\n".join(parts)


def _policy_text(evidence: Evidence) -> str:
    """The policy's fitness without exploration noise: checkpoint, episodes, spread and ends."""
    if evidence.score is None:
        return ""
    unit = evidence.description.fitness_unit
    fitness = f"fitness {number(evidence.score)}" + (f" {unit}" if unit not in ("", "1") else "")
    if evidence.evaluation is None or not evidence.evaluation.episodes:
        which = "The policy at the last of these points"
        return f"{which}, acting without exploration noise: mean {fitness}."
    episodes = evidence.evaluation.episodes
    values = [episode.fitness for episode in episodes]
    spread = ""
    if len(values) > 1:
        deviation = number(statistics.stdev(values))
        spread = f" (standard deviation between episodes {deviation})"
    text = (
        f"The policy of checkpoint {(evidence.kept or 0) + 1}, which was kept, acting without"
        f" exploration noise in {len(episodes)} episodes: mean {fitness}{spread},"
        f" {_spread_text(values)};"
        f" {_early_ends(episodes, evidence.description.success_causes)}"
    )
    early = [episode for episode in episodes if episode.ended_by != TIME_OUT]
    if not early:
        return f"{text}."
    length = number(statistics.mean(episode.length for episode in early))
    text += f", after {length} steps on average"
    if len(early) == len(episodes):
        return f"{text}."
    early_mean = number(statistics.mean(episode.fitness for episode in early))
    others = [episode.fitness for episode in episodes if episode.ended_by == TIME_OUT]
    rest = f"the others have {number(statistics.mean(others))}"
    return f"{text}, with a mean fitness of {early_mean}; {rest}."


def _spread_text(values: Sequence[float]) -> str:
    """Range of values, with its quartiles where there are enough for them."""
    ends = f"{number(min(values))} to {number(max(values))}"
    if len(values) < _LEAST_FOR_QUARTILES or min(values) == max(values):
        return ends
    quartiles = ", ".join(map(number, statistics.quantiles(values, n=4)))
    return f"{ends}, a quarter of them below each of {quartiles} in turn"


def endings_text(evidence: Evidence) -> str:
    """Number and mean length of evaluated episodes, and early ends by cause, if any."""
    if evidence.evaluation is None or not evidence.evaluation.episodes:
        return ""
    episodes = evidence.evaluation.episodes
    length = statistics.mean(episode.length for episode in episodes)
    return (
        f"{len(episodes)} episodes of {number(length)} steps on average,"
        f" {_early_ends(episodes, evidence.description.success_causes)}"
    )


def _early_ends(episodes: Sequence[records.EpisodeSummary], good: Collection[str]) -> str:
    causes = Counter(episode.ended_by for episode in episodes if episode.ended_by != TIME_OUT)
    ended = ", ".join(
        f"{cause} {count}{', a success' if cause in good else ''}"
        for cause, count in sorted(causes.items(), key=lambda item: (-item[1], item[0]))
    )
    return f"{causes.total()} ended early ({ended})" if causes else "none ended early"


def diagnose(
    outcome: records.Outcome | None,
    points: Sequence[records.CurvePoint],
    evaluation: records.Evaluation | None,
    description: records.TaskDescription,
    failure: str = "",
    trajectories: Path | None = None,
    reads: Collection[str] = (),
) -> records.Diagnosis:
    """Diagnose a training. `outcome`: None for one that broke off (see `failure`); `trajectories`:
    npz of worst and best episode; `reads`: variables that the reward reads. Raises
    RunFolderError."""
    episodes = read_trajectories(trajectories) if trajectories is not None else {}
    seen = visited(episodes, description)
    evidence = gather(outcome, points, evaluation, description, failure, seen)
    components = summarize_components(evidence)
    findings = (*all_findings(evidence), *standing_still(episodes, description))
    fitness = evidence.score
    if fitness is None and outcome is not None:
        fitness = outcome.training_fitness
    losses, tables = episodes_text(episodes, evaluation, description, reads)
    ends = () if evaluation is None else (each.ended_by for each in evaluation.episodes)
    return records.Diagnosis(
        fitness=fitness,
        fitness_values=tuple(each.fitness for each in evidence.checkpoints),
        episode_length_values=tuple(each.episode_length for each in evidence.checkpoints),
        components=components,
        findings=findings,
        visited=seen,
        endings=endings_text(evidence),
        early_ends=sum(each in description.failure_causes for each in ends),
        text=designer_text(evidence, components, findings, losses),
        tables=tables,
    )


LONGEST_ANALYSIS = 3_000
"""Most characters that are kept; the 250 words asked for have about 1700."""
CUT_OFF_NOTE = "(cut off here)"


class Analyst:
    """Asks a model to explain a training, with `prompts/analyse.md`."""

    def __init__(
        self,
        model: ConfiguredModel,
        description: records.TaskDescription,
        sentence: str,
        settings: SearchSettings | None = None,
    ) -> None:
        """`sentence`: the task in the user's words. `settings`: of the run; None: the task's."""
        self._model = model
        self._system = system_message("analyse.md", description, sentence, settings)

    async def analyse(
        self,
        attempt: str,
        reward: RewardSpecification,
        diagnosis: records.Diagnosis,
        pictures: tuple[ImagePart, ...] = (),
    ) -> str:
        """Explain a training; empty for a spent budget. `pictures`: of its episodes. Raises
        LanguageModelError, also for a reply without an explanation."""
        text = render(
            "analyse_order.md",
            source=reward.source,
            diagnosis=diagnosis.whole,
            pictures=[each.description for each in pictures],
        )
        order = ChatMessage("user", text, pictures)
        try:
            message = await self._model.ask(Role.ANALYST, self._system, order, attempt=attempt)
        except BudgetSpentError:
            return ""
        cut_off = message.finish_reason == FinishReason.CUT_OFF
        analysis = clean_analysis(message.reply, cut_off=cut_off)
        if not analysis or message.finish_reason == FinishReason.REFUSED:
            raise no_answer(message)
        return analysis


def clean_analysis(reply: str, *, cut_off: bool = False) -> str:
    """The reply as plain text of bounded length, without headings and code blocks."""
    text = without_headings(spoken(printable(reply)).text)
    # a pattern would take quadratic time in spaces that end no line
    text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    if len(text) > LONGEST_ANALYSIS:
        text, cut_off = text[:LONGEST_ANALYSIS].rpartition(" ")[0] or text[:LONGEST_ANALYSIS], True
    return f"{text} {CUT_OFF_NOTE}" if text and cut_off else text
