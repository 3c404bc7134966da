"""A model with the temperature and the bound on replies that a run asks it with."""

from __future__ import annotations

from dataclasses import dataclass

from eureka_agent.llm.interface import Asks, ChatMessage, CompletionRequest, LanguageModel, Role
from eureka_agent.records import Message


@dataclass(frozen=True)
class ConfiguredModel:
    """One model and the gateway that its requests pass."""

    model: LanguageModel
    gateway: Asks
    temperature: float | None = None
    """None: the model's own."""
    reply_tokens: int | None = None
    """None: no bound but the model's own."""

    @property
    def name(self) -> str:
        """The model's."""
        return self.model.name

    async def ask(
        self, role: Role, *messages: ChatMessage, sample: int = 0, attempt: str = ""
    ) -> Message:
        """The stored reply to a conversation. Raises BudgetSpentError or LanguageModelError where
        there is none to be had.

        `sample` tells apart the replies drawn from one prompt; `attempt`: id of the one that the
        reply is for.
        """
        request = CompletionRequest(
            messages=messages,
            temperature=self.temperature,
            max_tokens=self.reply_tokens,
            sample=sample,
            role=role,
            attempt=attempt,
        )
        return await self.gateway.ask(self.model, request)
