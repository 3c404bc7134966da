"""A server on loopback that speaks the wire formats of OpenAI (both of its interfaces) and
Anthropic, and can be told how to fail.

    with ModelServer(["first reply", HttpFailure(429, retry_after="1"), "second reply"]) as server:
        ...  # --model openai/any --base-url server.base_url, or anthropic/any with the same
    assert server.requests[0].system == "…"

An answer is a text, one of the classes below, or a function of the request that gives one. The last
answer is given again and again.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Union

Wire = Literal["chat", "responses", "messages", "other"]
Ending = Literal["stop", "cut_off", "refused", "filtered", "other"]

WIRES: dict[str, Wire] = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "messages",
}


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    path: str
    headers: Mapping[str, str]
    """Headers by lower-case name."""
    body: dict[str, Any]
    at: float
    """Time of arrival, by `time.monotonic`."""

    @property
    def wire(self) -> Wire:
        """The wire format, by the path's end."""
        return next(
            (wire for end, wire in WIRES.items() if self.path.partition("?")[0].endswith(end)),
            "other",
        )

    @property
    def model(self) -> str:
        """The model's name, without its provider."""
        return str(self.body.get("model", ""))

    @property
    def system(self) -> str:
        """The system message, wherever the wire format puts it."""
        if self.wire == "responses":
            return str(self.body.get("instructions", ""))
        if self.wire == "messages":
            return _text(self.body.get("system", ""))
        return "".join(
            _text(turn["content"])
            for turn in self.body.get("messages", [])
            if turn["role"] == "system"
        )

    @property
    def turns(self) -> list[tuple[str, str]]:
        """Role and text of the other messages."""
        turns = self.body.get("input" if self.wire == "responses" else "messages", [])
        return [
            (turn["role"], _text(turn["content"])) for turn in turns if turn["role"] != "system"
        ]

    @property
    def prompt(self) -> str:
        """The last message's text."""
        return self.turns[-1][1] if self.turns else ""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The model's reply, in whichever wire format it is asked."""

    text: str = ""
    ending: Ending = "stop"
    """`filtered` is a refusal by a filter behind the model, without words of its own."""
    reasoning: str = ""
    """Thoughts that go before the text and are no part of it."""
    prompt_tokens: int = 120
    """All tokens of the prompt; the cached ones below are part of them."""
    completion_tokens: int = 30
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    usage: bool = True
    """True if the reply tells its tokens."""


@dataclass(frozen=True)
class HttpFailure:
    """An error with the body that the wire format has for it."""

    status: int
    message: str = "no"
    code: str | None = None
    retry_after: str | None = None
    """Seconds or a date, as it stands in the header."""
    retry_after_ms: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """Exactly these bytes."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Endless:
    """A part of a body again and again, as fast as it is read, until the client goes away. All of
    `header_lines` come before it."""

    part: bytes = b" " * (1 << 16)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    header_lines: int = 0
    """Number of header lines of about 1 kB."""


@dataclass(frozen=True)
class Stall:
    """No answer until `ModelServer.release`; then `then`."""

    then: Answer = "late"


@dataclass(frozen=True)
class Cut:
    """A connection that ends before the answer, or in the middle of its body."""

    where: Literal["before", "within"] = "before"


@dataclass(frozen=True)
class Trickle:
    """An endless reply of which a byte comes now and then; no pause between two is long."""

    pause_s: float = 0.02


Answer = Union[str, Reply, HttpFailure, Raw, Endless, Stall, Cut, Trickle, "AnswerFunction"]
AnswerFunction = Callable[[Asked], Any]
"""Gives an `Answer`."""

HTML = Raw(
    b"<html><head><title>Sign in</title></head><body>a login page</body></html>",
    "text/html; charset=utf-8",
)
NO_JSON = Raw(b'{"id": "1", "choices": [')


def in_seconds(seconds: float) -> str:
    """An HTTP date that far from now, for a retry-after header."""
    return formatdate(time.time() + seconds, usegmt=True)


class ModelServer:
    """Serves from its construction to `close`, one thread for each connection."""

    def __init__(self, answers: Sequence[Answer] | AnswerFunction = ()) -> None:
        self.answers: Sequence[Answer] | AnswerFunction = answers
        """May be replaced while it serves. Of a list, the n-th request gets the n-th answer."""
        self.requests: list[Asked] = []
        self.sent_bytes = 0
        """Bytes sent of bodies without end."""
        self._released = threading.Event()
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        model_server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                model_server._connections.add(self.connection)

            def finish(self) -> None:
                model_server._connections.discard(self.connection)
                super().finish()

            def do_POST(self) -> None:
                model_server._serve(self)

            def do_GET(self) -> None:
                model_server._get(self)

            def log_message(self, format: str, *arguments: object) -> None:
                """Keep the test's output clean."""

        class Server(ThreadingHTTPServer):
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that went away is no error of the test."""

        self._http = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()
        self.port: int = self._http.server_address[1]
        self.root = f"http://127.0.0.1:{self.port}"
        self.base_url = f"{self.root}/v1"

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [asked.body for asked in self.requests]

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.requests]

    def release(self) -> None:
        """Let every request go on that stalls, and those to come."""
        self._released.set()

    def close(self) -> None:
        self.release()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        for connection in list(self._connections):  # kept alive by clients
            _end(connection)

    def _trickle(self, handler: BaseHTTPRequestHandler, pause_s: float) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        while not self._released.wait(pause_s):
            handler.wfile.write(b" ")
            handler.wfile.flush()

    def _send_without_end(self, handler: BaseHTTPRequestHandler, endless: Endless) -> None:
        handler.send_response(endless.status)
        for name, value in {"Content-Type": "application/json", **endless.headers}.items():
            handler.send_header(name, value)
        handler.send_header(
            "Connection", "close"
        )  # there is no length: the body ends with the connection
        for number in range(endless.header_lines):
            handler.send_header(f"X-{number}", "x" * 1000)
        handler.end_headers()
        while not self._released.is_set():
            handler.wfile.write(endless.part)
            self.sent_bytes += len(endless.part)

    def _get(self, handler: BaseHTTPRequestHandler) -> None:
        handler.send_error(501)

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        asked = Asked(handler.path, headers, body, time.monotonic())
        with self._lock:
            self.requests.append(asked)
            answer: Any = self.answers or [HttpFailure(400, "no answer is scripted")]
            if not callable(answer):
                answer = answer[min(len(self.requests), len(answer)) - 1]
        while callable(answer):
            answer = answer(asked)
        if isinstance(answer, Stall):
            self._released.wait()
            answer = answer.then
        if isinstance(answer, Cut) and answer.where == "before":
            _end(handler.connection)
            return
        if isinstance(answer, Trickle):
            self._trickle(handler, answer.pause_s)
            return
        if isinstance(answer, Endless):
            self._send_without_end(handler, answer)
            return
        status, extra, content = _rendered(asked, answer)
        handler.send_response(status)
        for name, value in {**extra, "Content-Length": str(len(content))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if isinstance(answer, Cut):
            handler.wfile.write(content[: len(content) // 2])
            handler.wfile.flush()
            _end(handler.connection)
            return
        handler.wfile.write(content)


def _end(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it has ended already


def _rendered(asked: Asked, answer: Any) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an answer."""
    if isinstance(answer, Raw):
        return answer.status, {"Content-Type": answer.content_type, **answer.headers}, answer.body
    headers = {"Content-Type": "application/json"}
    if isinstance(answer, HttpFailure):
        if answer.retry_after is not None:
            headers["retry-after"] = answer.retry_after
        if answer.retry_after_ms is not None:
            headers["retry-after-ms"] = answer.retry_after_ms
        return (
            answer.status,
            {**headers, **answer.headers},
            json.dumps(_error(asked, answer)).encode(),
        )
    if asked.wire == "other":
        return (
            404,
            headers,
            json.dumps(_error(asked, HttpFailure(404, f"no such path: {asked.path}"))).encode(),
        )
    reply = (
        Reply(text=answer)
        if isinstance(answer, str)
        else Reply(text="…")
        if isinstance(answer, Cut)
        else answer
    )
    render = {"chat": _chat, "responses": _responses, "messages": _messages}[asked.wire]
    return 200, headers, json.dumps(render(asked.model, reply)).encode()


def _error(asked: Asked, failure: HttpFailure) -> dict[str, Any]:
    if asked.wire == "messages":
        kinds = {
            400: "invalid_request_error",
            401: "authentication_error",
            403: "permission_error",
            404: "not_found_error",
            429: "rate_limit_error",
            529: "overloaded_error",
        }
        kind = failure.code or kinds.get(failure.status, "api_error")
        return {
            "type": "error",
            "error": {"type": kind, "message": failure.message},
            "request_id": "req_1",
        }
    return {
        "error": {
            "message": failure.message,
            "type": "an_error",
            "param": None,
            "code": failure.code,
        }
    }


def _chat(model: str, reply: Reply) -> dict[str, Any]:
    reasons = {
        "stop": "stop",
        "cut_off": "length",
        "refused": "stop",
        "filtered": "content_filter",
        "other": "novel",
    }
    refused = reply.ending == "refused"
    message = {
        "role": "assistant",
        "content": None if reply.ending in ("refused", "filtered") else reply.text,
        "refusal": (reply.text or "I will not") if refused else None,
        **({"reasoning_content": reply.reasoning} if reply.reasoning else {}),
    }
    usage = {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "finish_reason": reasons[reply.ending], "message": message}],
        **({"usage": usage} if reply.usage else {}),
    }


def _responses(model: str, reply: Reply) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if reply.reasoning:
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        output.append({"id": "rs_1", "type": "reasoning", "summary": summary})
    part: dict[str, Any] = {"type": "output_text", "text": reply.text, "annotations": []}
    if reply.ending == "refused":
        part = {"type": "refusal", "refusal": reply.text or "I will not"}
    if reply.ending != "filtered":
        status = "incomplete" if reply.ending == "cut_off" else "completed"
        output.append(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": status,
                "content": [part],
            }
        )
    reasons = {"cut_off": "max_output_tokens", "filtered": "content_filter"}
    statuses = {"cut_off": "incomplete", "filtered": "incomplete", "other": "cancelled"}
    usage = {
        "input_tokens": reply.prompt_tokens,
        "input_tokens_details": {"cached_tokens": reply.cached_tokens},
        "output_tokens": reply.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": statuses.get(reply.ending, "completed"),
        "error": None,
        "incomplete_details": {"reason": reasons[reply.ending]}
        if reply.ending in reasons
        else None,
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage if reply.usage else None,
    }


def _messages(model: str, reply: Reply) -> dict[str, Any]:
    reasons = {
        "stop": "end_turn",
        "cut_off": "max_tokens",
        "refused": "refusal",
        "filtered": "refusal",
        "other": "pause_turn",
    }
    content: list[dict[str, Any]] = []
    if reply.reasoning:
        content.append({"type": "thinking", "thinking": reply.reasoning, "signature": "s"})
    if reply.text and reply.ending not in ("refused", "filtered"):
        content.append({"type": "text", "text": reply.text})
    usage = {
        "input_tokens": reply.prompt_tokens - reply.cached_tokens - reply.cache_write_tokens,
        "cache_read_input_tokens": reply.cached_tokens,
        "cache_creation_input_tokens": reply.cache_write_tokens,
        "output_tokens": reply.completion_tokens,
    }
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": reasons[reply.ending],
        "stop_sequence": None,
        **({"usage": usage} if reply.usage else {}),
    }


def _text(content: Any) -> str:
    """The text of a message that is one, or a list of parts."""
    return (
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    )
