"""A model on loopback that writes a fitness where one is asked for, and rewards otherwise: Chat
Completions over real HTTP."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ORDER = "Write the fitness function for the task."


class FitnessServer:
    """Gives its rewards one after the other, the last one again and again."""

    def __init__(self, fitness: str, *rewards: str) -> None:
        self.fitness = fitness
        self.requests: list[list[dict[str, str]]] = []
        """Messages of every request so far."""
        self._rewards = list(rewards)
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                body = json.dumps(server.reply(request["messages"])).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                """Keep the test's output clean."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()
        self.base_url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def asked_for_fitness(self) -> int:
        """Number of requests for a fitness, revisions included."""
        return sum(_asks_for_fitness(messages) for messages in self.requests)

    def reply(self, messages: list[dict[str, str]]) -> dict[str, Any]:
        """The body that answers these messages."""
        self.requests.append(messages)
        text = self.fitness
        if not _asks_for_fitness(messages):
            text = self._rewards.pop(0) if len(self._rewards) > 1 else self._rewards[0]
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": text},
        }
        usage = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}
        fields = {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny"}
        return {**fields, "choices": [choice], "usage": usage}

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _asks_for_fitness(messages: list[dict[str, str]]) -> bool:
    return any(ORDER in message["content"] for message in messages)
