"""What a language model is asked and what it answers, whoever provides it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Literal, Protocol

from eureka_agent.errors import EurekaError
from eureka_agent.records import Message


class LanguageModelError(EurekaError):
    """A request that cannot be answered: a wrong key, an unknown model, an address that refuses. Never holds a key."""


@dataclass(frozen=True)
class ChatMessage:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, kw_only=True)
class CompletionRequest:
    """A conversation to be continued."""

    messages: tuple[ChatMessage, ...]
    temperature: float | None = None
    """None: the model's own default; some models accept no other."""
    max_tokens: int | None = None
    """Bound on the reply; None: the model's own."""


class FinishReason(StrEnum):
    """Why a reply ends where it does. Anything but `STOP` is the model's doing, so it is data, not an error."""

    STOP = "stop"
    CUT_OFF = "cut_off"
    """At the bound on tokens."""
    REFUSED = "refused"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A reply. Its text is empty where the model refused or said nothing."""

    text: str
    finish_reason: FinishReason
    prompt_tokens: int | None
    completion_tokens: int | None
    money: Decimal | None
    """US dollars; None where the price is unknown."""
    seconds: float


class LanguageModel(Protocol):
    """Answers requests, several at a time. Transient failures are retried inside."""

    name: str
    """`<provider>/<model>`."""

    async def complete(self, request: CompletionRequest) -> Completion:
        """The reply. Raises LanguageModelError where there is none to be had."""
        ...


class MessageStore(Protocol):
    """Keeps every reply before it is used, so that a resumed run never pays for it again."""

    def find(self, key: str) -> Message | None:
        """The message stored under `key`."""
        ...

    def put(self, key: str, message: Message) -> None:
        """Store a message under `key`."""
        ...


def message_key(model: str, request: CompletionRequest, sample: int) -> str:
    """Content-addressed key of a request; `sample` tells apart the samples drawn from one prompt."""
    content = {
        "model": model,
        "messages": [[message.role, message.content] for message in request.messages],
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "sample": sample,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def transcript(messages: tuple[ChatMessage, ...]) -> str:
    """A conversation as Markdown, as it is kept beside an attempt."""
    return "\n\n".join(f"# {message.role}\n\n{message.content.strip()}" for message in messages) + "\n"
