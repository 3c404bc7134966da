"""Anthropic's Messages API through its own SDK."""

from __future__ import annotations

import os
from typing import Any

import anthropic

from eureka_agent.llm.access import (
    CONNECT_TIMEOUT_S,
    DEFAULT_ACCESS,
    KEY_VARIABLES,
    NO_KEY,
    Access,
    ask_loopback_directly,
    checked_key,
    shown_address,
    usable_server,
)
from eureka_agent.llm.bounded_http import bounded_client
from eureka_agent.llm.failures import BAD_BODIES, Service, failure_of
from eureka_agent.llm.forms import Forms
from eureka_agent.llm.interface import (
    LONGEST_REPLY_TOKENS,
    Completion,
    CompletionRequest,
    FinishReason,
)
from eureka_agent.llm.parts import for_anthropic
from eureka_agent.llm.replies import completed, listed, part, read_content, tokens
from eureka_agent.llm.retry import Retries

BASE_URL_VARIABLE = "ANTHROPIC_BASE_URL"
ENDINGS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.CUT_OFF,
    "model_context_window_exceeded": FinishReason.CUT_OFF,
    "refusal": FinishReason.REFUSED,
    "tool_use": FinishReason.TOOL_CALL,
}


class AnthropicModel:
    """A model of Anthropic's, or of a compatible server."""

    def __init__(self, model: str, access: Access = DEFAULT_ACCESS) -> None:
        """Read ANTHROPIC_API_KEY, unless at `base_url`. Raises SettingsError without it."""
        address = access.base_url or os.environ.get(BASE_URL_VARIABLE) or None
        self.name = f"anthropic/{model}"
        key = checked_key(self.name, KEY_VARIABLES["anthropic"], address, needed=address is None)
        self._model = model
        connect_s = min(CONNECT_TIMEOUT_S, access.timeout_s)
        self._timeout = anthropic.Timeout(access.timeout_s, connect=connect_s)
        ask_loopback_directly()
        with usable_server("Anthropic", address, anthropic.AnthropicError):
            client = bounded_client(anthropic.DefaultAsyncHttpxClient)(timeout=self._timeout)
            self.client = anthropic.AsyncAnthropic(
                # with a key, even an empty one, the SDK does not look for credentials on the disk
                api_key=key or NO_KEY,
                # the SDK appends /v1, other SDKs do not: both forms of an address are accepted
                base_url=None if address is None else address.rstrip("/").removesuffix("/v1"),
                max_retries=0,
                http_client=client,
            )
        # looked up here, as the SDK imports a part of itself for it
        self._create: Any = self.client.messages.create
        self.service = Service(
            name=self.name,
            address=shown_address(str(self.client.base_url)),
            key_name=KEY_VARIABLES["anthropic"],
            protocol="Messages",
            address_hint="--base-url must end where /v1/messages follows",
            timeout_s=access.timeout_s,
            key=key,
        )
        self._forms = Forms()
        self._retries = Retries(self.service, access, self._forms)

    async def complete(self, request: CompletionRequest) -> Completion:
        """Complete a conversation. Raises LanguageModelError where there is no reply."""
        return await self._retries.complete(lambda: self._once(request))

    async def close(self) -> None:
        """Close the connections, as the garbage collector would print a traceback."""
        await self.client.close()

    async def _once(self, request: CompletionRequest) -> Completion:
        try:
            return self.read(await self._create(**self._options(request)))
        except (anthropic.AnthropicError, *BAD_BODIES) as error:
            raise failure_of(error) from None

    def body(self, request: CompletionRequest) -> dict[str, Any]:
        """Body of a request."""
        options = self._options(request)
        del options["timeout"]
        return options | options.pop("extra_body", {})

    def read(self, message: Any) -> Completion:
        """Read a reply of the Messages API. Raises RequestFailedError for an invalid one."""
        blocks = listed(message, "content")
        usage = part(message, "usage")
        read = part(usage, "cache_read_input_tokens")
        written = part(usage, "cache_creation_input_tokens")
        return completed(
            read_content(blocks),
            ENDINGS.get(str(part(message, "stop_reason")), FinishReason.OTHER),
            prompt_tokens=tokens(part(usage, "input_tokens"), read, written),
            completion_tokens=tokens(part(usage, "output_tokens")),
            cached_tokens=tokens(read),
            cache_write_tokens=tokens(written),
        )

    def _options(self, request: CompletionRequest) -> dict[str, Any]:
        request = self._forms.of(request)
        options: dict[str, Any] = {
            "model": self._model,
            "max_tokens": request.max_tokens or LONGEST_REPLY_TOKENS,
            "messages": for_anthropic(request.turns),
            # without it the SDK refuses bounds on replies that it considers too slow
            "timeout": self._timeout,
        }
        if request.system.strip():
            # all requests of a run begin alike: the part before this mark is cached for minutes
            takes_mark = "cache_control" not in self._forms.refused
            cached = {"cache_control": {"type": "ephemeral"}} if takes_mark else {}
            options["system"] = [{"type": "text", "text": request.system, **cached}]
        if request.temperature is not None:
            # newer SDKs have no parameter for it, as newer models accept none; older models do
            options["extra_body"] = {"temperature": request.temperature}
        return options
