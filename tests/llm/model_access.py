"""Keys of the tests, and access to a model that waits for nobody."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from model_server import ModelServer

from eureka_agent.llm.access import ModelAccess
from eureka_agent.llm.breaker import Breaker, RetryPolicy
from eureka_agent.llm.clients import language_model
from eureka_agent.llm.interface import (
    ChatMessage,
    Completion,
    CompletionRequest,
    LanguageModelError,
)

KEYS = {
    "OPENAI_API_KEY": "sk-secret-of-openai",
    "ANTHROPIC_API_KEY": "sk-ant-secret-of-anthropic",
    "OPENROUTER_API_KEY": "sk-or-secret-of-openrouter",
    "DEEPSEEK_API_KEY": "secret-of-deepseek",
}


SYSTEM, USER = ChatMessage("system", "you design"), ChatMessage("user", "a reward, please")
REQUEST = CompletionRequest(messages=(SYSTEM, USER))


@dataclass
class Waits:
    """Stands in for the waits between tries: notes them and does not wait."""

    seconds: list[float] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def access(self, base_url: str | None, random: float = 0.0, **options: Any) -> ModelAccess:
        policy = RetryPolicy(sleep=self.sleep, random=lambda: random)
        return ModelAccess(
            **{"base_url": base_url, "timeout_s": 20.0, **options},
            on_retry=self.told.append,
            breaker=Breaker(policy),
        )


class Patient:
    """A model that is asked as the gateway asks it: again after its pauses."""

    def __init__(self, name: str, access: ModelAccess) -> None:
        self.name = name
        self.model: Any = language_model(name, access)

    async def complete(self, request: CompletionRequest) -> Completion:
        async def once() -> Completion:
            with self.model.retries.trying():
                return await self.model.complete(request)

        return await self.model.retries.patiently(once, asyncio.Event())

    async def close(self) -> None:
        await self.model.close()


@dataclass(frozen=True)
class Wire:
    """One of the wire formats and how it is asked for."""

    model: str
    api: Literal["auto", "chat", "responses"]
    path: str
    key: str
    protocol: str
    sent: str = "tiny"
    """Name of the model in a request."""

    def open(self, server: ModelServer, waits: Waits, **options: Any) -> Patient:
        return Patient(self.model, waits.access(server.base_url, api=self.api, **options))


OPENAI, ANTHROPIC = KEYS["OPENAI_API_KEY"], KEYS["ANTHROPIC_API_KEY"]
WIRES = {
    "chat": Wire("openai/tiny", "auto", "/v1/chat/completions", OPENAI, "Chat Completions"),
    "responses": Wire("openai/tiny", "responses", "/v1/responses", OPENAI, "Responses"),
    "messages": Wire("anthropic/tiny", "auto", "/v1/messages", ANTHROPIC, "Messages"),
}
LITELLM = Wire(
    "openrouter/some/tiny",
    "auto",
    "/v1/chat/completions",
    KEYS["OPENROUTER_API_KEY"],
    "the servers of 'openrouter'",
    "some/tiny",
)


@dataclass(frozen=True)
class At:
    """A wire format, its server and the waits between tries."""

    wire: Wire
    server: ModelServer
    waits: Waits

    def open(self, **options: Any) -> Patient:
        return self.wire.open(self.server, self.waits, **options)


async def refused_by(model: Patient, request: CompletionRequest = REQUEST) -> LanguageModelError:
    with pytest.raises(LanguageModelError) as caught:
        await model.complete(request)
    assert "\n" not in caught.value.message
    assert "litellm." not in caught.value.message
    assert not any(key in str(caught.value) for key in KEYS.values())
    return caught.value
