"""A model with the desk and the bounds that it is asked with: what designers, reviewer, analyst and
fitness writer hold."""

from __future__ import annotations

from dataclasses import dataclass

from eureka_agent.llm.interface import Asks, ChatMessage, CompletionRequest, LanguageModel, Role
from eureka_agent.records import Message


@dataclass(frozen=True)
class Seat:
    """One model, always asked at the same desk, with the same temperature and the same bound on its
    replies."""

    model: LanguageModel
    desk: Asks
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
        return await self.desk.ask(self.model, request)
