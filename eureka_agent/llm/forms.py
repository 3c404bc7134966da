"""Forms of a request that a model's server refuses, learnt once from its own errors."""

from __future__ import annotations

import re
from dataclasses import replace

from eureka_agent.llm.failures import RequestFailedError, Trouble
from eureka_agent.llm.interface import CompletionRequest

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
