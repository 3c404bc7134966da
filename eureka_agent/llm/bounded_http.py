"""Answers of a model's server in bounds: no redirect is followed, and bytes are counted,
decompressed, while they arrive.

The SDKs and litellm send requests through clients of httpx, or of httpx2, which has the same
interface. Their `send` is the one place that every answer passes, whatever its status. Of a
server's headers the HTTP libraries take about 100 kB. No SDK is imported here.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from eureka_agent.llm.failures import RequestFailedError, Trouble, UnusableAnswerError

LONGEST_BODY_BYTES = 4 << 20
"""Longest answer, decompressed: a hundred times a long reply with its reasoning."""
_COMPRESSED = ("gzip", "x-gzip", "deflate")
"""Encodings that are decompressed, one at a time: in layers a few bytes become gigabytes at
once."""
_OF_THE_TRANSPORT = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that say nothing of a body which is whole and decompressed."""

_changing = threading.Lock()
_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)
"""Deadline of the request that is made in this context, by `time.monotonic`; None: the request is
nobody's who asks models."""


def bounded_client(client_class: Any) -> Any:
    """The class of such clients with asynchronous requests whose answers are in bounds."""
    return type(
        f"Bounded{client_class.__name__}", (client_class,), {"send": _bounded(client_class.send)}
    )


def bound_all_clients(httpx: Any) -> None:
    """Bound the answers that any client gets within `requests_bounded`: litellm makes its clients
    itself, in a dozen places.

    Requests of others, in the same process, are as they were. Threads may call it at the same time;
    only the first call changes anything.
    """
    with _changing:
        if not hasattr(httpx.Client.send, "unbounded"):
            httpx.AsyncClient.send = _bounded_here(httpx.AsyncClient.send)
            httpx.Client.send = _bounded_here_without_await(httpx.Client.send)


@contextmanager
def requests_bounded(timeout_s: float) -> Iterator[None]:
    """Bound the answers to requests that are made in this context. A thread gives up at the
    timeout; whoever awaits sees to that by itself."""
    token = _deadline.set(time.monotonic() + timeout_s)
    try:
        yield
    finally:
        _deadline.reset(token)


def _bounded(send: Any) -> Any:
    async def bounded_send(client: Any, request: Any, **options: Any) -> Any:
        response = await send(
            client, request, **{**options, "stream": True, "follow_redirects": False}
        )
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
        return await (send if _deadline.get() is None else bounded_send)(client, request, **options)

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
        return body.whole_response()

    send_here.unbounded = send  # type: ignore[attr-defined]
    return send_here


class _Body:
    """The body of an answer as it arrives."""

    def __init__(self, response: Any) -> None:
        """Raises UnusableAnswerError for an answer that leads elsewhere, and for one that cannot be
        decompressed."""
        if response.has_redirect_location:
            target = str(response.next_request.url)
            raise UnusableAnswerError(
                RequestFailedError(Trouble.REDIRECT, target, status=response.status_code)
            )
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", *_COMPRESSED):
            raise UnusableAnswerError(
                RequestFailedError(Trouble.NONSENSE, f"compressed as {encoding!r}")
            )
        self._response = response
        # 32: the zlib and gzip formats, told apart by their first bytes
        self._decompressor = (
            zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding in _COMPRESSED else None
        )
        self._received = 0
        self._content = bytearray()

    def add(self, part: bytes) -> None:
        """Take some more bytes. Raises UnusableAnswerError where there are too many, or they are
        not what was promised."""
        self._received += len(part)
        if self._decompressor is not None:
            room = LONGEST_BODY_BYTES + 1 - len(self._content)
            try:
                part = self._decompressor.decompress(part, room)
            except zlib.error:
                raise UnusableAnswerError(
                    RequestFailedError(Trouble.NONSENSE, "broken compression")
                ) from None
        self._content += part
        if max(self._received, len(self._content)) > LONGEST_BODY_BYTES:
            raise UnusableAnswerError(RequestFailedError(Trouble.TOO_LONG))

    def whole_response(self) -> Any:
        """The answer with its body, as a client gives it that has read everything."""
        response = self._response
        headers = [
            item
            for item in response.headers.multi_items()
            if item[0].lower() not in _OF_THE_TRANSPORT
        ]
        whole = type(response)(
            response.status_code,
            headers=headers,
            content=bytes(self._content),
            request=response.request,
            extensions={
                name: value
                for name, value in response.extensions.items()
                if name != "network_stream"
            },
        )
        whole.elapsed = response.elapsed
        return whole
