"""Language models by `--model <provider>/<name>`, through their SDK or through litellm. Of the SDKs
of OpenAI and Anthropic one call is used, which posts a body and returns the answer's: retries,
timeouts, forms of requests and readings of replies are the same for both. An SDK is imported on
demand.

A server's answers are bounded: no redirects, no compression, and a limit on bytes. All pass `send`
of httpx, or of httpx2, its equal. Headers are bounded by the libraries, to about 100 kB."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from eureka_agent.errors import SettingsError
from eureka_agent.llm import failures, replies
from eureka_agent.llm.access import (
    DEFAULT_ACCESS,
    KEY_VARIABLES,
    NO_KEY,
    ModelAccess,
    ask_loopback_directly,
    checked_key,
    redact,
    shown_address,
    usable_address,
)
from eureka_agent.llm.breaker import Breaker, Retries
from eureka_agent.llm.interface import Completion, CompletionRequest, LanguageModel
from eureka_agent.llm.program import COMMAND, ProgramModel
from eureka_agent.llm.tool_calls import with_written_calls

LONGEST_BODY_BYTES = 4 << 20
"""Longest answer: a hundred times a long reply with its reasoning."""
_OF_THE_TRANSPORT = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that do not apply to a whole body."""
_OPTIONS = {"stream": True, "follow_redirects": False}
_PLAIN = {"accept-encoding": "identity"}
"""Asks for an answer that is not compressed: a few bytes may become gigabytes."""

_changing = threading.Lock()
_bounds: ContextVar[tuple[float, int] | None] = ContextVar("bounds", default=None)
"""Deadline (`time.monotonic`) and longest body of this context's request to a model, or None."""


def bound_clients() -> None:
    """Bound the answers to any client's requests within `requests_bounded`. Idempotent."""
    for name in ("httpx", "httpx2"):
        if importlib.util.find_spec(name) is None:
            continue
        library: Any = importlib.import_module(name)
        with _changing:
            if not hasattr(library.Client.send, "unbounded"):
                library.AsyncClient.send = _bounded(library.AsyncClient.send)
                library.Client.send = _bounded_without_await(library.Client.send)


@contextmanager
def requests_bounded(timeout_s: float, longest: int = LONGEST_BODY_BYTES) -> Iterator[None]:
    """Bound the answers in this context; a thread also gives up after the timeout."""
    token = _bounds.set((time.monotonic() + timeout_s, longest))
    try:
        yield
    finally:
        _bounds.reset(token)


def _bounded(send: Any) -> Any:
    async def bounded_send(client: Any, request: Any, **options: Any) -> Any:
        if (bounds := _bounds.get()) is None:
            return await send(client, request, **options)
        request.headers.update(_PLAIN)
        response = await send(client, request, **{**options, **_OPTIONS})
        try:
            body = _Body(response, *bounds)
            async for part in response.aiter_raw():
                body.add(part)
        finally:
            await response.aclose()
        return body.whole_response()

    return bounded_send


def _bounded_without_await(send: Any) -> Any:
    def bounded_send(client: Any, request: Any, **options: Any) -> Any:
        if (bounds := _bounds.get()) is None:
            return send(client, request, **options)
        request.headers.update(_PLAIN)
        response = send(client, request, **{**options, **_OPTIONS})
        try:
            body = _Body(response, *bounds)
            for part in response.iter_raw():
                body.add(part)
        finally:
            response.close()
        return body.whole_response()

    bounded_send.unbounded = send  # type: ignore[attr-defined]
    return bounded_send


class _Body:
    """The body of an arriving answer."""

    def __init__(self, response: Any, deadline: float, longest: int) -> None:
        """Raises RequestFailedError for a redirect, and for a compressed answer."""
        if response.has_redirect_location:
            target = str(response.next_request.url)
            raise failures.RequestFailedError(
                failures.Trouble.REDIRECT, target, status=response.status_code
            )
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding != "identity":
            raise failures.RequestFailedError(
                failures.Trouble.NONSENSE, f"compressed as {encoding!r}"
            )
        self._response, self._deadline, self._longest = response, deadline, longest
        self._content = bytearray()

    def add(self, part: bytes) -> None:
        """Add bytes. Raises RequestFailedError for too many of them, or too late."""
        self._content += part
        if len(self._content) > self._longest:
            raise failures.RequestFailedError(failures.Trouble.TOO_LONG)
        if time.monotonic() > self._deadline:
            raise failures.RequestFailedError(failures.Trouble.TIMEOUT)

    def whole_response(self) -> Any:
        """The answer with its body, as from a client that has read all of it. Raises
        RequestFailedError for an error under a good status, of which litellm keeps no more than
        the message."""
        response, content = self._response, bytes(self._content)
        # files of results are got, and a line of them may be an error
        if response.is_success and response.request.method == "POST":
            with suppress(*failures.BAD_BODIES):
                if (failure := failures.failure_of_body(json.loads(content))) is not None:
                    raise failure
        extensions = {**response.extensions}
        extensions.pop("network_stream", None)
        headers = response.headers.multi_items()
        whole = type(response)(
            response.status_code,
            headers=[each for each in headers if each[0].lower() not in _OF_THE_TRANSPORT],
            content=content,
            request=response.request,
            extensions=extensions,
        )
        whole.elapsed = response.elapsed
        return whole


# ── models ────────────────────────────────────────────────────────────────────────────────────────


CONNECT_TIMEOUT_S = 10.0
"""Timeout of a connection, which a model's thinking does not lengthen."""
OPENAI_HOST = "api.openai.com"
_CLASSES = {"openai": "OpenAI", "anthropic": "Anthropic"}
"""Names in an SDK's classes: of `AsyncOpenAI`, a client, and of `OpenAIError`, any error."""


@dataclass(frozen=True)
class Wire:
    """A wire format of requests and replies."""

    protocol: str
    path: str
    """Path of requests below the address."""
    body: Callable[[str, CompletionRequest, replies.Forms], dict[str, Any]]
    """Makes a body from the model's own name."""
    read: Callable[[Any], Completion]


WIRES = {
    "chat": Wire("Chat Completions", "/chat/completions", replies.chat_body, replies.read_chat),
    "responses": Wire("Responses", "/responses", replies.responses_body, replies.read_response),
    "messages": Wire("Messages", "/v1/messages", replies.messages_body, replies.read_message),
}


def language_model(model: str, access: ModelAccess = DEFAULT_ACCESS) -> LanguageModel:
    """Make a model by name. Raises SettingsError for an unknown provider, a missing key, and an SDK
    that cannot be imported."""
    if model.startswith(COMMAND):
        return ProgramModel(model, access)
    provider, slash, name = (found.strip() for found in model.partition("/"))
    if slash and provider and name and model != f"{provider}/{name}":
        # its price and its share of proposals would have another name
        hint = f"write {provider}/{name}"
        raise SettingsError(f"model {model!r} has spaces around its parts", hint)
    if not slash or not provider or not name:
        what = "is only half a name" if slash else "does not say whose it is"
        raise SettingsError(
            f"model {model!r} {what}",
            "write <provider>/<model>, such as openai/gpt-5, anthropic/claude-sonnet-5 or"
            " gemini/gemini-2.5-pro, command:PROGRAM for a program, or offline for no LLM",
        )
    if provider in _CLASSES:
        return SdkModel(provider, name, access)
    from eureka_agent.llm.litellm_client import LiteLLMModel

    return LiteLLMModel(provider, name, access)


class ServedModel(ABC):
    """A model on a server."""

    def __init__(
        self, service: failures.Service, access: ModelAccess, forms: replies.Forms
    ) -> None:
        """`forms` learn what the server refuses."""
        self.name = service.name
        self.service = service
        self.forms = forms
        self.retries = Retries(
            self.name, access.breaker or Breaker(), access.outage_s, access.on_retry
        )
        self._tell = access.on_retry
        if access.tools == "written":
            forms.write_tools()

    async def complete(self, request: CompletionRequest) -> Completion:
        """Try a request, also in another form where one is refused. Raises RequestFailedError."""
        while True:
            known, started = self.forms.refused, time.monotonic()
            try:
                completion = (await self._once(request)).made_in(time.monotonic() - started)
                return with_written_calls(completion, request.tools)
            except failures.RequestFailedError as error:
                failure = error
            if failure.refusal:
                return replies.refused()
            before = self.forms.refused
            form = self.forms.learn(failure, known)
            if not form:
                failure.service = self.service
                raise failure
            if form not in before:
                self._tell(f"{self.name} refuses {form}: asked in another form")

    @abstractmethod
    async def close(self) -> None:
        """Close the connections."""

    @abstractmethod
    async def _once(self, request: CompletionRequest) -> Completion:
        """Make a request. Raises RequestFailedError."""


class SdkModel(ServedModel):
    """A model of OpenAI's or Anthropic's, or of a compatible server."""

    def __init__(self, provider: str, model: str, access: ModelAccess) -> None:
        """Read the provider's key, unless at another server. Raises SettingsError without it."""
        try:
            sdk: Any = importlib.import_module(provider)
        except ImportError as error:
            what = f"the package {provider} cannot be imported: {error}"
            raise SettingsError(what, "install eureka-agent again") from None
        name = f"{provider}/{model}"
        given = access.base_url or os.environ.get(f"{provider.upper()}_BASE_URL") or None
        address = usable_address(given)
        host = urlsplit(address or f"https://{OPENAI_HOST}").hostname or ""
        is_openai = host == OPENAI_HOST or host.endswith(f".{OPENAI_HOST}")  # in any region
        official = address is None or (provider == "openai" and is_openai)
        key = checked_key(name, KEY_VARIABLES[provider], needed=official)
        if provider == "anthropic":
            self.wire, hint = WIRES["messages"], ""
            # the SDK's paths begin with /v1, others' do not: both forms of an address are accepted
            address = address and address.rstrip("/").removesuffix("/v1")
        else:
            responses = access.api == "responses" or (access.api == "auto" and official)
            self.wire, hint = WIRES["responses" if responses else "chat"], ", often in /v1"
            if responses and not official:
                hint += "; --api chat is what most servers speak"
        ask_loopback_directly()
        bound_clients()
        self._sdk_error: type[Exception] = getattr(sdk, f"{_CLASSES[provider]}Error")
        timeout = sdk.Timeout(access.timeout_s, connect=min(CONNECT_TIMEOUT_S, access.timeout_s))
        client: Any = getattr(sdk, f"Async{_CLASSES[provider]}")
        try:
            # with a key, even an empty one, no SDK looks for credentials on the disk
            options = {"api_key": key or NO_KEY, "base_url": address, "timeout": timeout}
            self._client = client(**options, max_retries=0)
        except (self._sdk_error, ValueError, ImportError) as error:  # a proxy may need a package
            where = repr(shown_address(address)) if address else provider
            what = f"cannot use the server {where}: {redact(str(error))}"
            raise SettingsError(what, "see --base-url") from None
        service = failures.Service(
            name=name,
            address=shown_address(str(self._client.base_url)),
            key_name=KEY_VARIABLES[provider],
            protocol=self.wire.protocol,
            address_hint=f"--base-url must end where {self.wire.path} follows{hint}",
            timeout_s=access.timeout_s,
            key=key,
        )
        bounds = replies.BOUNDS[::-1] if official else replies.BOUNDS
        super().__init__(
            service, access, replies.Forms(*(bounds if self.wire.body is replies.chat_body else ()))
        )
        self._model = model

    def body(self, request: CompletionRequest) -> dict[str, Any]:
        return self.wire.body(self._model, self.forms.of(request), self.forms)

    async def call(
        self,
        method: str,
        path: str,
        timeout_s: float,
        longest: int = LONGEST_BODY_BYTES,
        **options: Any,
    ) -> bytes:
        """Body of the answer to an HTTP request. Raises RequestFailedError."""
        try:
            with requests_bounded(timeout_s, longest):
                async with asyncio.timeout(timeout_s):
                    call = getattr(self._client, method)
                    return bytes(await call(path, cast_to=bytes, **options))
        except TimeoutError:
            raise failures.RequestFailedError(failures.Trouble.TIMEOUT) from None
        except (self._sdk_error, *failures.BAD_BODIES) as error:
            raise failures.failure_of(error) from None

    async def close(self) -> None:
        """Close the connections, as the garbage collector would print a traceback."""
        await self._client.close()

    async def _once(self, request: CompletionRequest) -> Completion:
        timeout_s, body = self.service.timeout_s, self.body(request)
        return self.wire.read(
            replies.decoded(await self.call("post", self.wire.path, timeout_s, body=body))
        )
