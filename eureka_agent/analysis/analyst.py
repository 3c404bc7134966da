"""The trajectory analyst: a language model explains a training, with advice (Li et al. 2023)."""

from __future__ import annotations

import re

from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import ChatMessage, FinishReason, ImagePart, Role
from eureka_agent.llm.prompts import render, system_message
from eureka_agent.llm.spoken import no_answer, spoken
from eureka_agent.records import Diagnosis, TaskDescription
from eureka_agent.rewards import RewardSpecification
from eureka_agent.settings import SearchSettings
from eureka_agent.text import printable, without_headings

LONGEST_ANALYSIS = 3_000
"""Most characters that are kept; the 250 words asked for have about 1700."""
CUT_OFF_NOTE = "(cut off here)"


class Analyst:
    """Asks a model to explain a training, with `prompts/analyse.md`."""

    def __init__(
        self,
        model: ConfiguredModel,
        description: TaskDescription,
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
        diagnosis: Diagnosis,
        pictures: tuple[ImagePart, ...] = (),
    ) -> str:
        """Explain a training; empty for a spent budget. `pictures`: of its episodes. Raises
        LanguageModelError, also for a reply without an explanation."""
        text = render(
            "analyse_order.md",
            source=reward.source,
            diagnosis=diagnosis.text,
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
