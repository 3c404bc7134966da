"""Notifications over real HTTP: what is sent and when, and no address in any error."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from eureka_agent.batch.notifications import Notifications, notifier
from eureka_agent.errors import SettingsError


@pytest.fixture
def inbox() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Address of a server, and what it has received."""
    received: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(json.loads(body))
            self.send_response(500 if "refuse" in self.path else 200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"json://127.0.0.1:{server.server_port}", received
    server.shutdown()
    server.server_close()


async def test_start_first_failure_and_end_are_told(
    inbox: tuple[str, list[dict[str, Any]]],
) -> None:
    address, received = inbox
    warnings: list[str] = []
    told = Notifications(notifier({"EUREKA_NOTIFY": address}), warnings.append)
    told.send("night: started", "12 searches wait.")
    told.failed("night", "ant-1", "no engine")
    told.failed("night", "ant-2", "no engine")
    told.send("night: ended", "11 finished")
    await told.finish()
    assert sorted(each["title"] for each in received) == [
        "night: ant-1 failed",
        "night: ended",
        "night: started",
    ]
    assert warnings == []


async def test_one_that_does_not_arrive_is_a_warning_without_its_address(
    inbox: tuple[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    address, _ = inbox
    file = tmp_path / "addresses"
    file.write_text(f"{address}/refuse-secret\n")
    warnings: list[str] = []
    told = Notifications(notifier({"EUREKA_NOTIFY_FILE": str(file)}), warnings.append)
    told.send("night: started", "1 searches wait.")
    await told.finish()
    assert warnings == ["the notification 'night: started' did not arrive everywhere"]


def test_an_unknown_address_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="address 1 in EUREKA_NOTIFY is none") as caught:
        notifier({"EUREKA_NOTIFY": "hunter2:/secret"})
    assert "hunter2" not in str(caught.value)
    with pytest.raises(SettingsError, match="there is no such file"):
        notifier({"EUREKA_NOTIFY_FILE": str(tmp_path / "none")})
    assert notifier({}) is None
