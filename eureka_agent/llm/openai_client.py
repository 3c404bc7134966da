"""OpenAI's Chat Completions through its own SDK; any compatible server with `base_url`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any, cast

import openai
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam

from eureka_agent.errors import SettingsError
from eureka_agent.llm.interface import Completion, CompletionRequest, FinishReason, LanguageModelError

KEY_VARIABLE = "OPENAI_API_KEY"
BASE_URL_VARIABLE = "OPENAI_BASE_URL"
TIMEOUT_S = 600.0
"""Longest wait for a reply: models that reason take minutes."""
CONNECT_TIMEOUT_S = 10.0
MAX_RETRIES = 4
"""Tries after the first one, with growing pauses, for rate limits, server errors and broken connections."""
FINISH_REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.CUT_OFF,
    "content_filter": FinishReason.REFUSED,
}


class OpenAIModel:
    """A chat model of OpenAI's, or of a server that speaks like it."""

    def __init__(
        self, model: str, base_url: str | None = None, *, timeout_s: float = TIMEOUT_S, max_retries: int = MAX_RETRIES
    ) -> None:
        """The key is read from OPENAI_API_KEY; a server of one's own needs none. Raises SettingsError without one."""
        base_url = base_url or os.environ.get(BASE_URL_VARIABLE) or None
        key = os.environ.get(KEY_VARIABLE)
        if not key and base_url is None:
            raise SettingsError(
                f"model 'openai/{model}' needs a key and {KEY_VARIABLE} is not set",
                f"export {KEY_VARIABLE}=…, name a server of your own with --base-url, or use --model offline",
            )
        self.name = f"openai/{model}"
        self._model = model
        self._key = key or "none"
        self._official = base_url is None
        self._timeout_s = timeout_s
        try:
            self._client = openai.AsyncOpenAI(
                api_key=self._key,
                base_url=base_url,
                timeout=openai.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
                max_retries=max_retries,
            )
        except (openai.OpenAIError, ValueError) as error:
            raise SettingsError(f"cannot use the server {base_url!r}: {self._clean(error)}", "see --base-url") from None
        self._address = str(self._client.base_url)

    async def complete(self, request: CompletionRequest) -> Completion:
        """The reply to a conversation. Raises LanguageModelError where there is none to be had."""
        options: dict[str, Any] = {}
        if request.temperature is not None:
            options["temperature"] = request.temperature
        if request.max_tokens is not None:
            # OpenAI's newer models refuse `max_tokens`; older compatible servers know nothing else
            options["max_completion_tokens" if self._official else "max_tokens"] = request.max_tokens
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        started = time.monotonic()
        try:
            response = await self._client.chat.completions.create(
                model=self._model, messages=cast(Iterable[ChatCompletionMessageParam], messages), **options
            )
        except openai.OpenAIError as error:
            raise self._explained(error) from None
        except ValueError:  # a body that claims to be JSON and is not
            raise self._no_chat_completions() from None
        return self._completion(response, time.monotonic() - started)

    def _completion(self, response: ChatCompletion, seconds: float) -> Completion:
        choices = getattr(response, "choices", None)  # the SDK hands on whatever a server sends
        if not isinstance(choices, list):
            raise self._no_chat_completions()
        message = getattr(choices[0], "message", None) if choices else None
        text = getattr(message, "content", None) or ""
        reason = FINISH_REASONS.get(
            str(getattr(choices[0], "finish_reason", "")) if choices else "", FinishReason.OTHER
        )
        if getattr(message, "refusal", None):
            reason = FinishReason.REFUSED
        usage = getattr(response, "usage", None)
        return Completion(
            text=text,
            finish_reason=reason,
            prompt_tokens=getattr(usage, "prompt_tokens", None),
            completion_tokens=getattr(usage, "completion_tokens", None),
            money=None,
            seconds=seconds,
        )

    def _explained(self, error: openai.OpenAIError) -> LanguageModelError:
        """The SDK's error as one line with the next step."""
        where = f"{self.name} at {self._address}"
        retry = "the run is kept: `eureka resume` goes on with it"
        match error:
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                return LanguageModelError(
                    f"{where} does not accept the key (HTTP {error.status_code})", f"check {KEY_VARIABLE}; {retry}"
                )
            case openai.NotFoundError():
                return LanguageModelError(
                    f"{where} was not found (HTTP 404): {self._clean(error)}",
                    f"check the model's name and --base-url; {retry}",
                )
            case openai.RateLimitError():
                return LanguageModelError(
                    f"{where} refuses more requests (HTTP 429): {self._clean(error)}",
                    f"check the quota or wait; {retry}",
                )
            case openai.APITimeoutError():
                return LanguageModelError(f"{where} did not answer within {self._timeout_s:g} s", retry)
            case openai.APIConnectionError():
                return LanguageModelError(
                    f"cannot reach {where}: {self._clean(error)}", f"check the address and the network; {retry}"
                )
            case openai.APIResponseValidationError():
                return self._no_chat_completions()
            case openai.APIStatusError():
                return LanguageModelError(f"{where} answers with HTTP {error.status_code}: {self._clean(error)}", retry)
        return LanguageModelError(f"{where} failed: {self._clean(error)}", retry)

    def _no_chat_completions(self) -> LanguageModelError:
        return LanguageModelError(
            f"{self._address} answers, but not as Chat Completions do",
            "--base-url must end where /chat/completions follows, often in /v1",
        )

    def _clean(self, error: Exception) -> str:
        """The server's words in one line, without the key, at most 300 characters."""
        cause = error.__cause__ if isinstance(error, openai.APIConnectionError) and error.__cause__ else error
        body = getattr(error, "body", None)
        words = body.get("message") if isinstance(body, dict) and isinstance(body.get("message"), str) else str(cause)
        text = " ".join(str(words or type(cause).__name__).split())
        if self._key != "none":
            text = text.replace(self._key, "<key>")
        return text if len(text) <= 300 else text[:299] + "…"
