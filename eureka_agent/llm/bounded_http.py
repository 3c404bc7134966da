"""Bounds on a model server's answers: no redirects, no compression, and a limit on bytes. The SDKs'
and litellm's answers all pass `send` of httpx, or of httpx2, its equal. Headers are bounded by the
libraries, to about 100 kB. No SDK is imported here."""

from __future__ import annotations

import importlib
import importlib.util
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from eureka_agent.llm.failures import BAD_BODIES, RequestFailedError, Trouble, failure_of_body

LONGEST_BODY_BYTES = 4 << 20
"""Longest answer: a hundred times a long reply with its reasoning."""
_OF_THE_TRANSPORT = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that do not apply to a whole body."""
_OPTIONS = {"stream": True, "follow_redirects": False}
_PLAIN = {"accept-encoding": "identity"}
"""Asks for an answer that is not compressed: a few bytes may become gigabytes."""

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
            raise RequestFailedError(Trouble.REDIRECT, target, status=response.status_code)
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding != "identity":
            raise RequestFailedError(Trouble.NONSENSE, f"compressed as {encoding!r}")
        self._response, self._deadline, self._longest = response, deadline, longest
        self._content = bytearray()

    def add(self, part: bytes) -> None:
        """Add bytes. Raises RequestFailedError for too many of them, or too late."""
        self._content += part
        if len(self._content) > self._longest:
            raise RequestFailedError(Trouble.TOO_LONG)
        if time.monotonic() > self._deadline:
            raise RequestFailedError(Trouble.TIMEOUT)

    def whole_response(self) -> Any:
        """The answer with its body, as from a client that has read all of it. Raises
        RequestFailedError for an error under a good status, of which litellm keeps no more than
        the message."""
        response, content = self._response, bytes(self._content)
        # files of results are got, and a line of them may be an error
        if response.is_success and response.request.method == "POST":
            with suppress(*BAD_BODIES):
                if (failure := failure_of_body(json.loads(content))) is not None:
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
