"""OpenAI's Responses and Chat Completions by its own SDK, also for compatible servers."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

import openai

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
from eureka_agent.llm.failures import (
    BAD_BODIES,
    RequestFailedError,
    Service,
    Trouble,
    failure_in_body,
    failure_of,
)
from eureka_agent.llm.forms import Forms
from eureka_agent.llm.interface import Completion, CompletionRequest, FinishReason
from eureka_agent.llm.parts import for_chat, for_responses
from eureka_agent.llm.replies import completed, listed, part, read_chat, read_content, tokens
from eureka_agent.llm.retry import Retries

BASE_URL_VARIABLE = "OPENAI_BASE_URL"
OPENAI_HOST = "api.openai.com"


class OpenAIModel:
    """A model of OpenAI's, or of a compatible server."""

    def __init__(self, model: str, access: Access = DEFAULT_ACCESS) -> None:
        """Read OPENAI_API_KEY, unless at another server. Raises SettingsError without it."""
        address = access.base_url or os.environ.get(BASE_URL_VARIABLE) or None
        official = address is None or _is_openai(address)
        self.name = f"openai/{model}"
        key = checked_key(self.name, KEY_VARIABLES["openai"], address, needed=official)
        self._model = model
        self._by_responses = access.api == "responses" or (access.api == "auto" and official)
        self.path = "/responses" if self._by_responses else "/chat/completions"
        """Path of requests below the address."""
        timeout = openai.Timeout(access.timeout_s, connect=min(CONNECT_TIMEOUT_S, access.timeout_s))
        ask_loopback_directly()
        with usable_server("OpenAI", address, openai.OpenAIError):
            client = bounded_client(openai.DefaultAsyncHttpxClient)(timeout=timeout)
            self.client = openai.AsyncOpenAI(
                api_key=key or NO_KEY,
                base_url=address,
                timeout=timeout,
                max_retries=0,
                http_client=client,
            )
        # looked up here, as the SDK imports half of itself for it, which would block the event loop
        by_responses, sdk = self._by_responses, self.client
        self._create: Any = sdk.responses.create if by_responses else sdk.chat.completions.create
        hint = f"--base-url must end where {self.path} follows, often in /v1"
        if self._by_responses and not official:
            hint += "; --api chat is what most servers speak"
        self.service = Service(
            name=self.name,
            address=shown_address(str(self.client.base_url)),
            key_name=KEY_VARIABLES["openai"],
            protocol="Responses" if self._by_responses else "Chat Completions",
            address_hint=hint,
            timeout_s=access.timeout_s,
            key=key,
        )
        # OpenAI's newer models refuse `max_tokens`, older compatible servers know nothing else
        bounds = ("max_tokens", "max_completion_tokens")
        self._forms = Forms(*(reversed(bounds) if official else bounds))
        self._retries = Retries(self.service, access, self._forms)

    async def complete(self, request: CompletionRequest) -> Completion:
        """Complete a conversation. Raises LanguageModelError where there is no reply."""
        return await self._retries.complete(lambda: self._once(request))

    async def close(self) -> None:
        """Close the connections, as the garbage collector would print a traceback."""
        await self.client.close()

    async def _once(self, request: CompletionRequest) -> Completion:
        try:
            return self.read(await self._create(**self.options(request)))
        except (openai.OpenAIError, *BAD_BODIES) as error:
            raise failure_of(error) from None

    def options(self, request: CompletionRequest) -> dict[str, Any]:
        """Body of a request."""
        request = self._forms.of(request)
        return self._for_responses(request) if self._by_responses else self._for_chat(request)

    def read(self, response: Any) -> Completion:
        """Read a reply of either interface. Raises RequestFailedError for an invalid one."""
        is_chat = part(response, "choices") is not None or not self._by_responses
        return read_chat(response) if is_chat else _read_response(response)

    def _for_chat(self, request: CompletionRequest) -> dict[str, Any]:
        options: dict[str, Any] = {
            "model": self._model,
            "messages": for_chat(request.messages),
        }
        if request.temperature is not None:
            options["temperature"] = request.temperature
        if request.max_tokens is not None:
            options[self._forms.bound] = request.max_tokens
        return options

    def _for_responses(self, request: CompletionRequest) -> dict[str, Any]:
        """Options for Responses; nothing is stored on the server, as the archive has it."""
        options: dict[str, Any] = {
            "model": self._model,
            "input": for_responses(request.turns),
        }
        if "store" not in self._forms.refused:
            options["store"] = False
        if request.system:
            options["instructions"] = request.system
        if request.temperature is not None:
            options["temperature"] = request.temperature
        if request.max_tokens is not None:
            options["max_output_tokens"] = request.max_tokens
        return options


def _is_openai(address: str) -> bool:
    """True for OpenAI's own addresses, in any region."""
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return False
    return host == OPENAI_HOST or host.endswith(f".{OPENAI_HOST}")


def _read_response(response: Any) -> Completion:
    """Read a reply of the Responses API. Raises RequestFailedError for an invalid one."""
    status = part(response, "status")
    if status == "failed":
        failure = failure_in_body(part(response, "error"))
        raise failure or RequestFailedError(Trouble.OTHER, "without a reason")
    content = read_content(listed(response, "output"))
    ending = FinishReason.STOP if status in ("completed", None) else FinishReason.OTHER
    if status == "incomplete":
        reason = part(response, "incomplete_details", "reason")
        ending = FinishReason.REFUSED if reason == "content_filter" else FinishReason.CUT_OFF
    usage = part(response, "usage")
    return completed(
        content,
        ending,
        prompt_tokens=tokens(part(usage, "input_tokens")),
        completion_tokens=tokens(part(usage, "output_tokens")),
        cached_tokens=tokens(part(usage, "input_tokens_details", "cached_tokens")),
        cache_write_tokens=tokens(part(usage, "input_tokens_details", "cache_write_tokens")),
        reasoning_tokens=tokens(part(usage, "output_tokens_details", "reasoning_tokens")),
    )
