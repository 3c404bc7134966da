"""A gateway whose replies were written beforehand."""

from __future__ import annotations

from dataclasses import dataclass

from eureka_agent.llm.interface import (
    Completion,
    CompletionRequest,
    FinishReason,
    LanguageModel,
    transcript,
)
from eureka_agent.records import Cost, Message


@dataclass(frozen=True)
class NamedModel:
    """A model that is never reached: the gateway answers for it."""

    name: str = "openai/scripted"

    async def complete(self, request: CompletionRequest) -> Completion:
        raise AssertionError("every request goes to the gateway")

    async def close(self) -> None:
        """It has nothing to give back."""


@dataclass(frozen=True)
class Cut:
    """A reply that is not whole."""

    text: str
    reason: FinishReason


class ScriptedGateway:
    """Answers with its replies in order, raises those that are exceptions, and remembers what it
    was asked by whom."""

    def __init__(self, *replies: str | Cut | Exception) -> None:
        self.replies = list(replies)
        self.requests: list[CompletionRequest] = []
        self.models: list[str] = []
        self.stored = 0
        """Replies of earlier runs, which come first."""

    def knows(self, model: LanguageModel, request: CompletionRequest) -> bool:
        return len(self.requests) < self.stored

    async def ask(self, model: LanguageModel, request: CompletionRequest) -> Message:
        self.requests.append(request)
        self.models.append(model.name)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        cut = reply if isinstance(reply, Cut) else Cut(reply, FinishReason.STOP)
        return Message(
            role=request.role.value,
            attempt=request.attempt,
            model=model.name,
            request=transcript(request.messages),
            reply=cut.text,
            finish_reason=cut.reason.value,
            cost=Cost(prompt_tokens=100, completion_tokens=20),
        )
