"""Models and stores without a network, for what lies above the clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from eureka_agent.llm.interface import Completion, CompletionRequest, FinishReason
from eureka_agent.records import Cost, Message


class ScriptedModel:
    """Answers with the text that a function makes of the request, when it is let to."""

    def __init__(
        self,
        name: str = "openai/tiny",
        reply: Callable[[CompletionRequest], str] = lambda request: "a reply",
        *,
        prompt_tokens: int | None = 100,
        completion_tokens: int | None = 50,
        held: bool = False,
    ) -> None:
        """`held`: replies wait for `let_go`."""
        self.name = name
        self.retries = None
        self.requests: list[CompletionRequest] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self._reply = reply
        self._tokens = (prompt_tokens, completion_tokens)
        self._open = asyncio.Event()
        if not held:
            self._open.set()

    def let_go(self) -> None:
        self._open.set()

    async def close(self) -> None:
        """It has nothing to give back."""

    async def complete(self, request: CompletionRequest) -> Completion:
        self.requests.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(0)
            await self._open.wait()
            return Completion(
                text=self._reply(request),
                finish_reason=FinishReason.STOP,
                cost=Cost(prompt_tokens=self._tokens[0], completion_tokens=self._tokens[1]),
            )
        finally:
            self.in_flight -= 1


class DictionaryStore:
    """Messages by key."""

    def __init__(self) -> None:
        self.messages: dict[str, Message] = {}

    def find(self, key: str) -> Message | None:
        return self.messages.get(key)

    def put(self, key: str, message: Message) -> None:
        self.messages[key] = message
