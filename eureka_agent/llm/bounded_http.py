"""Bounds on the answers of a model's server: no redirects, and a limit on decompressed bytes. The
SDKs' and litellm's answers all pass `send` of httpx, or of httpx2, its equal. Headers are bounded
by the libraries, to about 100 kB. No SDK is imported here."""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from eureka_agent.llm.failures import (
    RequestFailedError,
    Trouble,
    UnusableAnswerError,
    failure_of_body,
)

LONGEST_BODY_BYTES = 4 << 20
"""Longest answer, decompressed: a hundred times a long reply with its reasoning."""
_COMPRESSED = ("gzip", "x-gzip", "deflate")
"""Encodings that are decompressed, one per answer: in layers a few bytes become gigabytes."""
_OF_THE_TRANSPORT = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that do not apply to a whole, decompressed body."""

_changing = threading.Lock()
_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)
"""Deadline of this context's request, by `time.monotonic`; None: not a request to a model."""
_longest_body: ContextVar[int] = ContextVar("longest_body", default=LONGEST_BODY_BYTES)


def bounded_client(client_class: Any) -> Any:
    """A subclass of such a client whose asynchronous requests get bounded answers."""
    return type(
        f"Bounded{client_class.__name__}", (client_class,), {"send": _bounded(client_class.send)}
    )


def bound_all_clients(httpx: Any) -> None:
    """Bound the answers to any client's requests within `requests_bounded`. Idempotent."""
    with _changing:
        if not hasattr(httpx.Client.send, "unbounded"):
            httpx.AsyncClient.send = _bounded_here(httpx.AsyncClient.send)
            httpx.Client.send = _bounded_here_without_await(httpx.Client.send)


@contextmanager
def requests_bounded(timeout_s: float) -> Iterator[None]:
    """Bound the answers in this context; a thread also gives up after the timeout."""
    token = _deadline.set(time.monotonic() + timeout_s)
    try:
        yield
    finally:
        _deadline.reset(token)


@contextmanager
def bodies_up_to(size: int) -> Iterator[None]:
    """Accept longer answers in this context."""
    token = _longest_body.set(size)
    try:
        yield
    finally:
        _longest_body.reset(token)


def _bounded(send: Any) -> Any:
    async def bounded_send(client: Any, request: Any, **options: Any) -> Any:
        bounds = {"stream": True, "follow_redirects": False}
        response = await send(client, request, **{**options, **bounds})
        try:
            body = _Body(response)
            async for part in response.aiter_raw():
                body.add(part)
        finally:
            await response.aclose()
        return body.whole_response()

    return bounded_send


def _bounded_here(send: Any) -> Any:
    bounded_send = _bounded(send)

    async def send_here(client: Any, request: Any, **options: Any) -> Any:
        if _deadline.get() is None:
            return await send(client, request, **options)
        return _without_error(await bounded_send(client, request, **options))

    return send_here


def _bounded_here_without_await(send: Any) -> Any:
    def send_here(client: Any, request: Any, **options: Any) -> Any:
        deadline = _deadline.get()
        if deadline is None:
            return send(client, request, **options)
        response = send(client, request, **{**options, "stream": True, "follow_redirects": False})
        try:
            body = _Body(response)
            for part in response.iter_raw():
                body.add(part)
                if time.monotonic() > deadline:
                    raise UnusableAnswerError(RequestFailedError(Trouble.TIMEOUT))
        finally:
            response.close()
        return _without_error(body.whole_response())

    send_here.unbounded = send  # type: ignore[attr-defined]
    return send_here


def _without_error(response: Any) -> Any:
    """The answer. Raises UnusableAnswerError for an error under a good status, of which litellm
    keeps no more than the message."""
    try:
        body = json.loads(response.content) if response.is_success else None
    except (ValueError, RecursionError):
        body = None
    failure = failure_of_body(body) if isinstance(body, dict) else None
    if failure is not None:
        raise UnusableAnswerError(failure)
    return response


class _Body:
    """The body of an arriving answer."""

    def __init__(self, response: Any) -> None:
        """Raises UnusableAnswerError for a redirect, and for an unknown compression."""
        if response.has_redirect_location:
            target = str(response.next_request.url)
            failure = RequestFailedError(Trouble.REDIRECT, target, status=response.status_code)
            raise UnusableAnswerError(failure)
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", *_COMPRESSED):
            failure = RequestFailedError(Trouble.NONSENSE, f"compressed as {encoding!r}")
            raise UnusableAnswerError(failure)
        self._response = response
        # 32: zlib and gzip, told apart by their first bytes
        compressed = encoding in _COMPRESSED
        self._decompressor = zlib.decompressobj(zlib.MAX_WBITS | 32) if compressed else None
        self._longest = _longest_body.get()
        self._received = 0
        self._content = bytearray()

    def add(self, part: bytes) -> None:
        """Add bytes. Raises UnusableAnswerError for too many of them, or broken compression."""
        self._received += len(part)
        if self._decompressor is not None:
            room = self._longest + 1 - len(self._content)
            try:
                part = self._decompressor.decompress(part, room)
            except zlib.error:
                failure = RequestFailedError(Trouble.NONSENSE, "broken compression")
                raise UnusableAnswerError(failure) from None
        self._content += part
        if max(self._received, len(self._content)) > self._longest:
            raise UnusableAnswerError(RequestFailedError(Trouble.TOO_LONG))

    def whole_response(self) -> Any:
        """The answer with its body, as from a client that has read all of it."""
        response = self._response
        items = response.headers.multi_items()
        extensions = {**response.extensions}
        extensions.pop("network_stream", None)
        whole = type(response)(
            response.status_code,
            headers=[item for item in items if item[0].lower() not in _OF_THE_TRANSPORT],
            content=bytes(self._content),
            request=response.request,
            extensions=extensions,
        )
        whole.elapsed = response.elapsed
        return whole
