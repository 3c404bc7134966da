"""Bodies of requests in the wire formats, and the forms of them that a server refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from eureka_agent.llm.failures import RequestFailedError, Trouble
from eureka_agent.llm.interface import (
    LONGEST_REPLY_TOKENS,
    ChatMessage,
    CompletionRequest,
)

BOUNDS = ("max_tokens", "max_completion_tokens")
"""Names of the bound on tokens in Chat Completions: OpenAI's newer models refuse the first, older
compatible servers know nothing else."""
SYSTEM = "a system message"
OPTIONAL = ("store", "cache_control")
"""Parameters that are left out where they are refused."""
_LONGEST_WORDS = 4_000
_OTHER_REASONS = (401, 402, 403, 404, 408, 409, 429)
_REFUSED = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|unexpected|extra[ _](?:inputs|fields|forbidden)"
    r"|(?:not|n['’]t) (?:support|permit|allow|accept|recogni)|invalid (?:param|arg|field|property)",
    re.IGNORECASE,
)
_SYSTEM = r"(?:system|developer)"
_NOT = r"(?:\bnot|n['’]t|unsupported|unexpected|unknown|invalid)\b"
_SYSTEM_REFUSED = re.compile(
    r"roles must alternate|only user and assistant roles|should be 'user' or 'assistant'"
    rf"|\b{_SYSTEM}\W{{1,3}}(?:role|message|prompt|instruction)s?\b.{{0,40}}{_NOT}"
    rf"|{_NOT}.{{0,40}}\b{_SYSTEM}\W{{1,3}}(?:role|message|prompt|instruction)"
    rf"|\brole\b.{{0,60}}{_NOT}.{{0,40}}\b{_SYSTEM}\b|{_NOT}.{{0,20}}\brole\W{{1,4}}{_SYSTEM}\b"
    rf"|\brole\W{{1,4}}{_SYSTEM}\b.{{0,40}}{_NOT}",
    re.IGNORECASE | re.DOTALL,
)
"""Chat templates of Gemma, of early Mistral models and others, and OpenAI's first models that
reason."""


class Forms:
    """The forms in which one model's server takes requests, as far as it has said so."""

    def __init__(self, *bounds: str) -> None:
        """`bounds`: names of the bound on tokens, each sent once those before it are refused. The
        last one is kept, since a reply without a bound costs what nobody has allowed."""
        self._bounds = bounds
        self.refused: frozenset[str] = frozenset()

    def of(self, request: CompletionRequest) -> CompletionRequest:
        """The request with its system message where the server takes it."""
        if SYSTEM not in self.refused or not request.turns or not request.system.strip():
            return request
        first, *others = request.turns
        first = replace(first, content=f"{request.system}\n\n{first.content}")
        return replace(request, messages=(first, *others))

    @property
    def bound(self) -> str:
        """Name of the bound on tokens."""
        return next(name for name in self._bounds if name not in self.refused)

    def learn(self, failure: RequestFailedError, known: frozenset[str]) -> str:
        """Take in a refusal of a form, by a server that was asked without the forms in `known`.
        Returns the refused form; empty for another failure."""
        if (
            failure.trouble not in (Trouble.STATUS, Trouble.OTHER)
            or failure.status in _OTHER_REASONS
        ):
            return ""
        words, found = failure.words[:_LONGEST_WORDS], ""
        if _SYSTEM_REFUSED.search(words):
            found = SYSTEM
        elif _REFUSED.search(words):
            names = (*self._bounds[:-1], *OPTIONAL)
            found = next((name for name in names if re.search(rf"\b{name}\b", words)), "")
        if not found or found in known:
            return ""
        self.refused |= {found}
        return found


def chat_body(model: str, request: CompletionRequest, forms: Forms) -> dict[str, Any]:
    """Body for Chat Completions, also of litellm."""
    messages = _turns(
        request.messages, "text", lambda url, _: {"type": "image_url", "image_url": {"url": url}}
    )
    return {"model": model, "messages": messages} | _options(request, forms.bound)


def responses_body(model: str, request: CompletionRequest, forms: Forms) -> dict[str, Any]:
    """Body for Responses; nothing is stored on the server, as the archive has it."""
    turns = _turns(
        request.turns, "input_text", lambda url, _: {"type": "input_image", "image_url": url}
    )
    return {
        "model": model,
        "input": turns,
        **({} if "store" in forms.refused else {"store": False}),
        **({"instructions": request.system} if request.system else {}),
        **_options(request, "max_output_tokens"),
    }


def messages_body(model: str, request: CompletionRequest, forms: Forms) -> dict[str, Any]:
    """Body for Messages, which demand a bound on the reply."""
    turns = _turns(request.turns, "text", lambda _, source: {"type": "image", "source": source})
    body: dict[str, Any] = {"model": model, "messages": turns, "max_tokens": LONGEST_REPLY_TOKENS}
    if request.system.strip():
        # all requests of a run begin alike: the part before this mark is cached for minutes
        takes_mark = "cache_control" not in forms.refused
        cached = {"cache_control": {"type": "ephemeral"}} if takes_mark else {}
        body["system"] = [{"type": "text", "text": request.system, **cached}]
    return body | _options(request, "max_tokens")


def _options(request: CompletionRequest, bound: str) -> dict[str, Any]:
    """Temperature and bound on tokens, where they are given."""
    found = {"temperature": request.temperature, bound: request.max_tokens}
    return {name: value for name, value in found.items() if value is not None}


def _turns(
    messages: Iterable[ChatMessage], kind: str, picture: Callable[[str, Any], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Messages with their pictures after the text, a part of that kind. `picture` makes a part of a
    picture's URL or source. A message without pictures stays plain text."""
    turns = []
    for each in messages:
        parts: list[dict[str, Any]] = [{"type": kind, "text": each.content}]
        for image in each.images:
            source = {"type": "base64", "media_type": image.media_type, "data": image.base64}
            parts.append(picture(f"data:{image.media_type};base64,{image.base64}", source))
        turns.append({"role": each.role, "content": parts if each.images else each.content})
    return turns
