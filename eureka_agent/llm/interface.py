"""What a language model is asked and what it answers, whoever provides it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from eureka_agent.errors import EurekaError
from eureka_agent.records import Message

LONGEST_REPLY_TOKENS = 16_000
"""What a reply without a bound is taken to have at most; the bound itself where an interface takes
no request without one. A reward with its reasoning needs about a tenth."""


class LanguageModelError(EurekaError):
    """A request that cannot be answered: a wrong key, an unknown model, an address that refuses.
    Never holds a key."""


class MissingReplyError(LanguageModelError):
    """A request that a recording has no reply to."""


class Role(StrEnum):
    """Who asks. It decides nothing about the reply; the ledger counts by it."""

    DESIGNER = "designer"
    REVIEWER = "reviewer"
    ANALYST = "analyst"
    METRIC = "metric"
    """Who writes a fitness function for a sentence that has none."""


@dataclass(frozen=True)
class ChatMessage:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, kw_only=True)
class CompletionRequest:
    """A conversation to be continued."""

    messages: tuple[ChatMessage, ...]
    """At most one system message, the first. It holds what is equal in many requests of a run,
    which a provider may keep in a cache."""
    temperature: float | None = None
    """None: the model's own default; some models accept no other."""
    max_tokens: int | None = None
    """Bound on the reply, the model's reasoning included; None: the model's own."""
    sample: int = 0
    """Tells apart the replies drawn from one prompt. Never sent, but part of the request's key."""
    role: Role = Role.DESIGNER
    """Who asks. Neither sent nor part of the key."""
    attempt: str = ""
    """Id of the attempt that the reply is for. Neither sent nor part of the key."""

    @property
    def system(self) -> str:
        """The system message's text; empty where there is none."""
        return "\n\n".join(message.content for message in self.messages if message.role == "system")

    @property
    def turns(self) -> list[dict[str, str]]:
        """The other messages, as every provider takes them."""
        return [
            {"role": message.role, "content": message.content}
            for message in self.messages
            if message.role != "system"
        ]


class FinishReason(StrEnum):
    """Why a reply ends where it does. Anything but `STOP` is the model's doing, so it is data, not
    an error."""

    STOP = "stop"
    CUT_OFF = "cut_off"
    """At the bound on tokens."""
    REFUSED = "refused"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A reply. Its text is empty where the model refused or said nothing. Tokens are None where the
    server does not tell."""

    text: str
    finish_reason: FinishReason
    prompt_tokens: int | None
    """All of the prompt's, those from a cache and those written to it included."""
    completion_tokens: int | None
    """Those of the model's reasoning included."""
    cached_tokens: int | None = None
    """Part of the prompt's that came from the provider's cache."""
    cache_write_tokens: int | None = None
    """Part of the prompt's that the provider put into its cache, where that has a price of its
    own."""
    seconds: float = 0.0


RetryObserver = Callable[[str], None]
"""Told in one line why a request is made again, and after how many seconds."""


RequestObserver = Callable[[str, CompletionRequest], Callable[[Message | None], None]]
"""Told of the model and the request when one is sent. What it returns is told when that has ended:
its reply, None where there is none."""


class LanguageModel(Protocol):
    """Answers requests, several at a time. Transient failures are retried inside."""

    name: str
    """`<provider>/<model>`."""

    async def complete(self, request: CompletionRequest) -> Completion:
        """The reply. Raises LanguageModelError where there is none to be had."""
        ...

    async def close(self) -> None:
        """Give its connections back, in the event loop that they were made in; it is asked nothing
        after that."""
        ...


class MessageStore(Protocol):
    """Keeps every reply before it is used, so that a resumed run never pays for it again."""

    def find(self, key: str) -> Message | None:
        """The message stored under `key`."""
        ...

    def put(self, key: str, message: Message) -> None:
        """Store a message under `key`."""
        ...


class Asks(Protocol):
    """Takes requests to models (`eureka_agent.llm.gateway.Gateway`)."""

    async def ask(self, model: LanguageModel, request: CompletionRequest) -> Message:
        """The stored reply. Raises BudgetSpentError where the budget has no room for it,
        LanguageModelError where there is no reply to be had."""
        ...


def message_key(model: str, request: CompletionRequest) -> str:
    """Content-addressed key of a request: of all that the reply depends on, and of its number among
    the samples of one prompt."""
    content = {
        "model": model,
        "messages": [[message.role, message.content] for message in request.messages],
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "sample": request.sample,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def transcript(messages: tuple[ChatMessage, ...]) -> str:
    """A conversation as Markdown, as it is kept beside an attempt."""
    return (
        "\n\n".join(f"# {message.role}\n\n{message.content.strip()}" for message in messages) + "\n"
    )
