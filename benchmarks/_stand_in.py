"""A stand-in for a language model: Chat Completions on loopback, with the latency that a benchmark
wants and rewards that differ by their prompt."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REVIEW = '```json\n{"contradiction": null, "exploits": []}\n```'
ANALYSIS = "The pole fell first, then the cart left the track. Make the pole's term sharper."


@dataclass
class StandIn:
    """The server's address and the times of its requests."""

    base_url: str
    requests: list[tuple[float, float]] = field(default_factory=list)
    """Times at which each request came and was answered, `time.perf_counter` seconds."""


def reply_to(prompt: str, reward: Callable[[float], str]) -> str:
    """A reward whose weight follows from the prompt; words if no reward is asked for."""
    if "# The reward to review" in prompt:
        return REVIEW
    if "# What its training showed" in prompt and "in time order" in prompt:
        return ANALYSIS
    weight = 0.5 + int(hashlib.sha256(prompt.encode()).hexdigest()[:6], 16) / 0xFFFFFF
    return f"Close to the target pays.\n\n```python\n{reward(weight)}```\n"


@contextmanager
def stand_in(latency_s: float, reward: Callable[[float], str]) -> Iterator[StandIn]:
    """A server that takes `latency_s` for each reply, however many requests come at once."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came = time.perf_counter()
            body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt = "\n".join(str(message["content"]) for message in body["messages"])
            text = reply_to(prompt + json.dumps(len(found.requests)), reward)
            time.sleep(latency_s)
            choice = {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text},
            }
            usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4}
            data = json.dumps(
                {
                    "id": "1",
                    "object": "chat.completion",
                    "created": 1,
                    "model": "stand-in",
                    "choices": [choice],
                    "usage": usage,
                }
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            found.requests.append((came, time.perf_counter()))

        def log_message(self, format: str, *arguments: object) -> None:
            """Keep the benchmark's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = StandIn(f"http://127.0.0.1:{server.server_address[1]}/v1")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
