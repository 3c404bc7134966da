"""A model with a run's temperature and bound on replies."""

from __future__ import annotations

from dataclasses import dataclass

from eureka_agent.llm.interface import Asks, ChatMessage, CompletionRequest, LanguageModel, Role
from eureka_agent.records import Message


@dataclass(frozen=True)
class ConfiguredModel:
    """A model and the gateway of its requests."""

    model: LanguageModel
    gateway: Asks
    temperature: float | None = None
    """None: the model's own."""
    reply_tokens: int | None = None
    """None: the model's own."""

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model.name

    async def ask(
        self, role: Role, *messages: ChatMessage, sample: int = 0, attempt: str = ""
    ) -> Message:
        """Return the stored reply to a conversation. `sample`: number of the reply to one prompt;
        `attempt`: its attempt's id. Raises BudgetSpentError, LanguageModelError."""
        request = CompletionRequest(
            messages=messages,
            temperature=self.temperature,
            max_tokens=self.reply_tokens,
            sample=sample,
            role=role,
            attempt=attempt,
        )
        return await self.gateway.ask(self.model, request)
