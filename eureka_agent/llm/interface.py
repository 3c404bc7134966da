"""Requests to language models and their replies, for any provider."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Protocol

from eureka_agent.errors import EurekaError
from eureka_agent.records import Cost, Message, ToolCall

if TYPE_CHECKING:
    from eureka_agent.llm.breaker import Retries

LONGEST_REPLY_TOKENS = 16_000
"""Bound on a reply where an interface demands one. A reward with its reasoning needs a tenth."""


class LanguageModelError(EurekaError):
    """A request without a reply, such as one with a wrong key. Never holds a key."""


class MissingReplyError(LanguageModelError):
    """A request without a reply in a recording."""


class Role(StrEnum):
    """Asking role, for the ledger; it does not affect the reply. `METRIC` writes a fitness,
    `READER` reads a person's wish, `JUDGE` compares pictures of two attempts, `LABELLER` reads
    captions of states."""

    DESIGNER = "designer"
    REVIEWER = "reviewer"
    ANALYST = "analyst"
    METRIC = "metric"
    READER = "reader"
    JUDGE = "judge"
    RANDOMISER = "randomiser"
    LABELLER = "labeller"


@dataclass(frozen=True)
class ImagePart:
    """A picture in a message."""

    data: bytes
    description: str
    """For the record, which holds no picture."""
    media_type: Literal["image/jpeg", "image/png"] = "image/jpeg"

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def base64(self) -> str:
        return base64.b64encode(self.data).decode()


@dataclass(frozen=True)
class ChatMessage:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    """`tool`: the answer to a call."""
    content: str
    images: tuple[ImagePart, ...] = ()
    """Pictures after the text, of a user's turn."""
    calls: tuple[ToolCall, ...] = ()
    """Calls of an assistant's turn."""
    answers: str = ""
    """Id of the call that a tool answers."""
    tool: str = ""
    """Name of that tool."""


@dataclass(frozen=True)
class ToolSpec:
    """A tool that a model may call."""

    name: str
    doc: str
    schema: Mapping[str, Any]
    """JSON schema of its arguments, an object."""
    text_argument: str = ""
    """Argument that is a text of many lines, such as code; empty for none."""


@dataclass(frozen=True, kw_only=True)
class CompletionRequest:
    """A conversation to continue."""

    messages: tuple[ChatMessage, ...]
    """At most one system message, first: what many requests share, for the provider's cache."""
    temperature: float | None = None
    """None: the model's own; some models accept no other."""
    max_tokens: int | None = None
    """Bound on the reply with its reasoning; None: the model's own."""
    sample: int = 0
    """Number among the replies drawn from one prompt: part of the key, never sent."""
    role: Role = Role.DESIGNER
    attempt: str = ""
    """Id of the reply's attempt. Like `role` it is neither sent nor part of the key."""
    tools: tuple[ToolSpec, ...] = ()
    """Tools that may be called. Their names are part of the key."""

    @property
    def system(self) -> str:
        """Text of the system message; empty without one."""
        return "\n\n".join(message.content for message in self.messages if message.role == "system")

    @property
    def turns(self) -> tuple[ChatMessage, ...]:
        return tuple(message for message in self.messages if message.role != "system")


class FinishReason(StrEnum):
    """Reason for a reply's end. Anything but `STOP` is data, not an error."""

    STOP = "stop"
    CUT_OFF = "cut_off"
    """Ended at the bound on tokens."""
    REFUSED = "refused"
    TOOL_CALL = "tool_call"
    REASONING_ALONE = "reasoning_alone"
    """Ended without a text after its reasoning."""
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A reply."""

    text: str
    """The answer; for a refusal its words, if there are any."""
    finish_reason: FinishReason
    reasoning: str = ""
    """The reasoning, where the server sends it apart from the text."""
    cost: Cost = field(default_factory=Cost)
    """Tokens and time; no money yet."""
    calls: tuple[ToolCall, ...] = ()
    """Tools that it calls, before it goes on."""

    def made_in(self, seconds: float, *, batched: bool = False) -> Completion:
        cost = self.cost.model_copy(update={"seconds": seconds, "batched": batched})
        return replace(self, cost=cost)


RetryObserver = Callable[[str], None]
"""Receives the reason of a retry and the wait before it, in one line."""


class LanguageModel(Protocol):
    """Answers requests, several at a time."""

    name: str
    """`<provider>/<model>`."""

    @property
    def retries(self) -> Retries | None:
        """Retries of its requests; None for a model without a server."""
        ...

    async def complete(self, request: CompletionRequest) -> Completion:
        """Try once to complete a conversation. Raises LanguageModelError, and RequestFailedError
        where `retries` decide about another try."""
        ...

    async def close(self) -> None:
        """Close the connections in their event loop; no request may follow."""
        ...


class MessageStore(Protocol):
    """Stores every reply before it is used, so that a resumed run does not pay for it again."""

    def find(self, key: str) -> Message | None: ...

    def put(self, key: str, message: Message) -> None: ...


def message_key(model: str, request: CompletionRequest) -> str:
    """Content-addressed key of a request: all that affects the reply, and the sample's number."""
    content = {
        "model": model,
        "messages": [
            [
                message.role,
                message.content,
                *(image.digest for image in message.images),
                *((call.name, call.arguments) for call in message.calls),
            ]
            for message in request.messages
        ],
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "sample": request.sample,
        **({"tools": [each.name for each in request.tools]} if request.tools else {}),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def transcript(messages: tuple[ChatMessage, ...]) -> str:
    """A conversation as Markdown, stored beside an attempt. A picture is a line about it."""
    parts = []
    for message in messages:
        head = f"# {message.role}{f' {message.tool}' if message.tool else ''}"
        parts.append(f"{head}\n\n{message.content.strip()}")
        parts += [f"(calls {each.name} {each.arguments})" for each in message.calls]
        parts += [f"(picture: {each.description}, {each.digest[:12]})" for each in message.images]
    return "\n\n".join(parts) + "\n"
