"""Bounds on the answers of a model's server: no redirects, and a limit on decompressed bytes. The
SDKs' and litellm's answers all pass `send` of httpx, or of httpx2, its equal. Headers are bounded
by the libraries, to about 100 kB. No SDK is imported here."""

from __future__ import annotations

import importlib
import importlib.util
import json
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from eureka_agent.llm.failures import BAD_BODIES, RequestFailedError, Trouble, failure_of_body

LONGEST_BODY_BYTES = 4 << 20
"""Longest answer, decompressed: a hundred times a long reply with its reasoning."""
_COMPRESSED = ("gzip", "x-gzip", "deflate")
"""Encodings that are decompressed, one per answer: in layers a few bytes become gigabytes."""
_OF_THE_TRANSPORT = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that do not apply to a whole, decompressed body."""

_changing = threading.Lock()
_bounds: ContextVar[tuple[float, int] | None] = ContextVar("bounds", default=None)
"""Deadline of this context's request, by `time.monotonic`, and the longest body of its answer;
None: not a request to a model."""


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
    """Bound the answers in this context to so many bytes; a thread also gives up after the
    timeout."""
    token = _bounds.set((time.monotonic() + timeout_s, longest))
    try:
        yield
    finally:
        _bounds.reset(token)


def _bounded(send: Any) -> Any:
    async def bounded_send(client: Any, request: Any, **options: Any) -> Any:
        if (bounds := _bounds.get()) is None:
            return await send(client, request, **options)
        options |= {"stream": True, "follow_redirects": False}
        response = await send(client, request, **options)
        try:
            body = _Body(response, bounds[1])
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
        response = send(client, request, **{**options, "stream": True, "follow_redirects": False})
        try:
            body = _Body(response, bounds[1])
            for part in response.iter_raw():
                body.add(part)
                if time.monotonic() > bounds[0]:
                    raise RequestFailedError(Trouble.TIMEOUT)
        finally:
            response.close()
        return body.whole_response()

    bounded_send.unbounded = send  # type: ignore[attr-defined]
    return bounded_send


class _Body:
    """The body of an arriving answer."""

    def __init__(self, response: Any, longest: int) -> None:
        """`longest`: most bytes. Raises RequestFailedError for a redirect, and for an unknown
        compression."""
        if response.has_redirect_location:
            target = str(response.next_request.url)
            raise RequestFailedError(Trouble.REDIRECT, target, status=response.status_code)
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", *_COMPRESSED):
            raise RequestFailedError(Trouble.NONSENSE, f"compressed as {encoding!r}")
        self._response = response
        # 32: zlib and gzip, told apart by their first bytes
        compressed = encoding in _COMPRESSED
        self._decompressor = zlib.decompressobj(zlib.MAX_WBITS | 32) if compressed else None
        self._longest = longest
        self._received = 0
        self._content = bytearray()

    def add(self, part: bytes) -> None:
        """Add bytes. Raises RequestFailedError for too many of them, or broken compression."""
        self._received += len(part)
        if self._decompressor is not None:
            room = self._longest + 1 - len(self._content)
            try:
                part = self._decompressor.decompress(part, room)
            except zlib.error:
                raise RequestFailedError(Trouble.NONSENSE, "broken compression") from None
        self._content += part
        if max(self._received, len(self._content)) > self._longest:
            raise RequestFailedError(Trouble.TOO_LONG)

    def whole_response(self) -> Any:
        """The answer with its body, as from a client that has read all of it. Raises
        RequestFailedError for an error under a good status, of which litellm keeps no more than
        the message."""
        response, content = self._response, bytes(self._content)
        # files of results are got, and a line of them may be an error
        if response.is_success and response.request.method == "POST":
            try:
                body = json.loads(content)
            except BAD_BODIES:
                body = None
            if isinstance(body, dict) and (failure := failure_of_body(body)) is not None:
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
