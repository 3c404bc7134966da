"""Keys of the tests, and access to a model that waits for nobody."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from eureka_agent.llm.access import Access
from eureka_agent.llm.breaker import Breaker, RetryPolicy
from eureka_agent.llm.clients import language_model
from eureka_agent.llm.interface import Completion, CompletionRequest

KEYS = {
    "OPENAI_API_KEY": "sk-secret-of-openai",
    "ANTHROPIC_API_KEY": "sk-ant-secret-of-anthropic",
    "OPENROUTER_API_KEY": "sk-or-secret-of-openrouter",
    "DEEPSEEK_API_KEY": "secret-of-deepseek",
}


@dataclass
class Waits:
    """Stands in for the waits between tries: notes them and does not wait."""

    seconds: list[float] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def access(self, base_url: str | None, random: float = 0.0, **options: Any) -> Access:
        policy = RetryPolicy(sleep=self.sleep, random=lambda: random)
        return Access(
            **{"base_url": base_url, "timeout_s": 20.0, **options},
            on_retry=self.told.append,
            breaker=Breaker(policy),
        )


class Patient:
    """A model that is asked as the gateway asks it: again after its pauses."""

    def __init__(self, name: str, access: Access) -> None:
        self.name = name
        self.model: Any = language_model(name, access)

    async def complete(self, request: CompletionRequest) -> Completion:
        async def once() -> Completion:
            with self.model.retries.trying():
                return await self.model.complete(request)

        return await self.model.retries.patiently(once, asyncio.Event())

    async def close(self) -> None:
        await self.model.close()
