"""The writer of distributions: a language model that knows reward, prior and safe ranges (Ma et al.
2024, DrEureka)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eureka_agent.designer.distribution_reply import DistributionReply, parse_distributions
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import ChatMessage, FinishReason, LanguageModelError, Role
from eureka_agent.llm.prompts import render, system_message
from eureka_agent.llm.spoken import ending_of, why_no_answer
from eureka_agent.randomisation_records import Prior, RandomisedParameters
from eureka_agent.records import TaskDescription
from eureka_agent.rewards import RewardSpecification
from eureka_agent.settings import SearchSettings


@dataclass(frozen=True)
class DistributionRequest:
    """Distributions that are asked for."""

    attempt: str
    reward: RewardSpecification
    prior: Prior
    known: tuple[RandomisedParameters, ...]
    """Distributions that are there already."""
    count: int
    """Number of further ones."""


class DistributionWriter:
    """Writes distributions with a language model, from `prompts/randomise*.md`."""

    def __init__(
        self,
        model: ConfiguredModel,
        description: TaskDescription,
        sentence: str,
        settings: SearchSettings,
    ) -> None:
        self._model = model
        self._parameters = description.parameters
        self._system = system_message("randomise.md", description, sentence, settings)

    async def write(
        self, request: DistributionRequest
    ) -> tuple[tuple[RandomisedParameters, ...], tuple[str, ...]]:
        """The distributions that could be read, at most as many as were asked for, and the faults
        of the others. Where some are missing the model is asked once more. Raises the errors of
        the gateway for the first request."""
        messages = self.opening(request)
        answer, first = await self._ask(request, (), messages)
        found = first.distributions
        if len(found) == request.count:
            return found, first.faults
        missing = request.count - len(found)
        again = render("randomise_again.md", faults=first.faults, found=found, count=missing)
        try:
            messages = (*messages, answer, ChatMessage("user", again))
            _, second = await self._ask(request, found, messages)
        except (BudgetSpentError, LanguageModelError) as error:
            return found, (*first.faults, error.message)
        return (*found, *second.distributions), second.faults

    def opening(self, request: DistributionRequest) -> tuple[ChatMessage, ...]:
        """The messages that ask for distributions."""
        scores = {each.name: each for each in request.prior.parameters}
        order = render(
            "randomise_order.md",
            request=request,
            parameters=[(each, scores[each.name]) for each in self._parameters],
        )
        return self._system, ChatMessage("user", order)

    async def _ask(
        self,
        request: DistributionRequest,
        found: Sequence[RandomisedParameters],
        messages: Sequence[ChatMessage],
    ) -> tuple[ChatMessage, DistributionReply]:
        message = await self._model.ask(Role.RANDOMISER, *messages, attempt=request.attempt)
        reply = parse_distributions(
            message.reply,
            self._parameters,
            self._model.name,
            (*request.known, *found),
            request.count - len(found),
        )
        if not reply.distributions and ending_of(message) is not FinishReason.STOP:
            reply = replace(reply, faults=(why_no_answer(message)[0],))
        return ChatMessage("assistant", message.reply.strip() or "(no answer)"), reply
