"""A server on loopback with the batch endpoints of OpenAI and Anthropic beside those of
`model_server`. Batches end when they are told to, and requests of them fail as they are told to."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal

from model_server import (
    HTML,
    Answer,
    AnswerFunction,
    Asked,
    HttpFailure,
    ModelServer,
    _end,
    _rendered,
)

Kind = Literal["openai", "anthropic"]
Undone = Literal["expired", "canceled", "missing"]
CREATIONS = {"/v1/batches": "openai", "/v1/messages/batches": "anthropic"}


@dataclass
class Batch:
    """A batch as the server has it."""

    id: str
    kind: Kind
    requests: dict[str, Asked]
    """By custom ids."""
    metadata: dict[str, str] = field(default_factory=dict)
    created_at: float = field(default_factory=time.time)
    lines: list[dict[str, Any]] | None = None
    """Results; None while it is under way."""
    status: str = "in_progress"
    errors: list[dict[str, str]] = field(default_factory=list)

    def shown(self, root: str) -> dict[str, Any]:
        if self.kind == "openai":
            return {
                "id": self.id,
                "object": "batch",
                "endpoint": "/v1/chat/completions",
                "input_file_id": "file-1",
                "completion_window": "24h",
                "status": self.status,
                "created_at": int(self.created_at),
                "metadata": self.metadata,
                "output_file_id": f"{self.id}-output" if self.lines else None,
                "error_file_id": f"{self.id}-error" if self.lines else None,
                "errors": {"object": "list", "data": self.errors} if self.errors else None,
            }
        counts = dict.fromkeys(("canceled", "errored", "expired", "processing", "succeeded"), 0)
        counts["processing" if self.lines is None else "succeeded"] = len(self.requests)
        moment = datetime.fromtimestamp(self.created_at, UTC).isoformat()
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": "in_progress" if self.lines is None else "ended",
            "request_counts": counts,
            "created_at": moment,
            "expires_at": moment,
            # not at the address that was asked: a client must not send its key there
            "results_url": None if self.lines is None else "http://127.0.0.1:9/stolen",
        }


class BatchServer(ModelServer):
    """Answers single requests like `ModelServer`, and batches."""

    def __init__(self, answers: Sequence[Answer] | AnswerFunction = ()) -> None:
        self.batches: list[Batch] = []
        self.made: Counter[str] = Counter()
        """Times that each request's body was made in a batch and answered."""
        self.polls: Counter[str] = Counter()
        """Requests by method and path."""
        self.held = False
        """True: new batches stay under way until `end`."""
        self.on_creation: Literal["answer", "lose", "stall"] | HttpFailure = "answer"
        """Result of the creation of a batch: with `lose` and `stall` there is a batch, and no
        answer."""
        self.fate: Callable[[Asked, int], Undone | HttpFailure | None] = lambda asked, batch: None
        """Failure of a request in the batch of this number, counted from 0; None: an answer."""
        self.page_size = 100
        """Batches in one answer of a list."""
        self.at_end = "completed"
        """Status with which OpenAI's batches end."""
        self._files: dict[str, str] = {}
        super().__init__(answers)

    def end(self) -> None:
        """End all batches under way, and do not hold those to come."""
        self.held = False
        for number, batch in enumerate(self.batches):
            if batch.lines is None:
                self._finish(batch, number)

    def _get(self, handler: BaseHTTPRequestHandler) -> None:
        self._serve(handler)

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.partition("?")[0]
        if not re.match(r"/v1/(files|batches|messages/batches)", path):
            super()._serve(handler)
            return
        content = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        with self._lock:
            self.polls[f"{handler.command} {path}"] += 1
        if handler.command == "POST" and path == "/v1/files":
            name = f"file-{len(self._files)}"
            self._files[name] = content.decode()
            _send(handler, 200, {"id": name, "object": "file", "purpose": "batch"})
        elif handler.command == "POST" and path in CREATIONS:
            self._create(handler, path, json.loads(content))
        elif path in CREATIONS:
            self._list(handler, path)
        else:
            self._show(handler, path)

    def _list(self, handler: BaseHTTPRequestHandler, path: str) -> None:
        kind = CREATIONS[path]
        shown = [each.shown(self.root) for each in reversed(self.batches) if each.kind == kind]
        after = re.search(r"after(?:_id)?=([\w-]+)", handler.path)
        begin = 0 if after is None else [each["id"] for each in shown].index(after[1]) + 1
        page, more = shown[begin : begin + self.page_size], len(shown) > begin + self.page_size
        _send(handler, 200, {"object": "list", "data": page, "has_more": more})

    def _create(self, handler: BaseHTTPRequestHandler, path: str, body: dict[str, Any]) -> None:
        if isinstance(self.on_creation, HttpFailure):
            failure = self.on_creation
            _send(handler, failure.status, {"error": {"message": failure.message}})
            return
        lines = body.get("requests")
        if lines is None:
            uploaded = self._files[body["input_file_id"]]
            found = [line for line in uploaded.splitlines() if line.startswith('{"custom_id"')]
            lines = [json.loads(line) for line in found]
        names = [line["custom_id"] for line in lines]
        assert len(set(names)) == len(names)
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
        requests = {
            line["custom_id"]: Asked(
                line.get("url", "/v1/messages"),
                {},
                line.get("params") or line["body"],
                time.monotonic(),
            )
            for line in lines
        }
        kind: Any = CREATIONS[path]
        with self._lock:
            batch = Batch(f"batch-{len(self.batches)}", kind, requests, body.get("metadata") or {})
            self.batches.append(batch)
        if not self.held:
            self._finish(batch, len(self.batches) - 1)
        if self.on_creation == "stall":
            self._released.wait()
        if self.on_creation != "answer":
            _end(handler.connection)
            return
        _send(handler, 200, batch.shown(self.root))

    def _finish(self, batch: Batch, number: int) -> None:
        lines = []
        for name, asked in batch.requests.items():
            fate = self.fate(asked, number)
            if fate is None:
                self.made[json.dumps(asked.body, sort_keys=True)] += 1
                answer: Any = self.answers
                while callable(answer):
                    answer = answer(asked)
                if isinstance(answer, list | tuple):
                    answer = answer[0]
            else:
                answer = fate
            if (line := _line(batch.kind, asked, answer)) is not None:
                lines.append({"custom_id": name, **line})
        batch.lines, batch.status = lines, self.at_end

    def _show(self, handler: BaseHTTPRequestHandler, path: str) -> None:
        name = path.removesuffix("/results").removesuffix("/content").rpartition("/")[2]
        known = name.removesuffix("-output").removesuffix("-error")
        batch = next((each for each in self.batches if each.id == known), None)
        if batch is None:
            _send(handler, 404, {"error": {"message": f"no such batch: {known}"}})
        elif path.endswith(("/results", "/content")):
            lines = batch.lines or []
            if "-error" in name:
                lines = [line for line in lines if line["response"] is None]
            elif "-output" in name:
                lines = [line for line in lines if line["response"] is not None]
            text = "".join(f"{json.dumps(line)}\n" for line in lines)
            _send(handler, 200, text)
        else:
            _send(handler, 200, batch.shown(self.root))


def _line(kind: Kind, asked: Asked, answer: Any) -> dict[str, Any] | None:
    """A line of results; None for a missing one."""
    if answer == "missing":
        return None
    if isinstance(answer, str) and answer in ("expired", "canceled"):
        if kind == "anthropic":
            return {"result": {"type": answer}}
        code = {"expired": "batch_expired", "canceled": "batch_cancelled"}[answer]
        return {"response": None, "error": {"code": code, "message": "not executed"}}
    status, _, content = _rendered(asked, answer)
    body = json.loads(content)
    if kind == "openai":
        return {"response": {"status_code": status, "body": body}, "error": None}
    if status == 200:
        return {"result": {"type": "succeeded", "message": body}}
    return {"result": {"type": "errored", "error": body}}


def _send(handler: BaseHTTPRequestHandler, status: int, body: Any) -> None:
    content = (body if isinstance(body, str) else json.dumps(body)).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def send_failure(handler: BaseHTTPRequestHandler) -> None:
    """Send what a provider sends that is out."""
    _send(handler, 503, {"error": {"message": "overloaded"}})


def send_page(handler: BaseHTTPRequestHandler) -> None:
    """Send a page of a proxy in place of an answer."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.send_header("Content-Length", str(len(HTML.body)))
    handler.end_headers()
    handler.wfile.write(HTML.body)
