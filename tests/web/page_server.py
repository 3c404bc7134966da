"""The page's real server in a thread, and its clients."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from eureka_agent.archive.run_folder import RUNS_VARIABLE
from eureka_agent.web.security import Access
from eureka_agent.web.server import Server, bind

if TYPE_CHECKING:
    from playwright.sync_api import Page


class PageServer:
    """A running server."""

    def __init__(self, server: Server, access: Access, loop: asyncio.AbstractEventLoop) -> None:
        self.server, self.access, self.loop = server, access, loop

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.access.port}"

    def enter(self, page: Page) -> None:
        """Open the printed address, which leads on to the list of runs."""
        page.goto(self.access.address)
        page.wait_for_url(f"{self.origin}/")

    def client(self) -> httpx.Client:
        """A client that was let in."""
        client = httpx.Client(base_url=self.origin, timeout=20.0)
        client.cookies.set(self.access.cookie, self.access.session)
        return client

    def stranger(self) -> httpx.Client:
        """A client that was not."""
        return httpx.Client(base_url=self.origin, timeout=20.0)

    def stop(self) -> None:
        """End it as Ctrl-C does, on its own event loop."""
        self.loop.call_soon_threadsafe(self.server.stop)

    def raw(self, request: str) -> str:
        """Answer to a request as it stands, which a client library would tidy up."""
        with socket.create_connection(("127.0.0.1", self.access.port), 10.0) as connection:
            connection.sendall(request.encode())
            connection.settimeout(10.0)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
        return b"".join(parts).decode(errors="replace")


@contextmanager
def serving(runs: Path) -> Iterator[PageServer]:
    """A server of this runs folder, at a free port."""
    before = os.environ.get(RUNS_VARIABLE)
    os.environ[RUNS_VARIABLE] = str(runs)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    listening = bind(port)
    access = Access(port)
    server = Server(access)
    loop = asyncio.new_event_loop()
    serve = server.serve(sockets=[listening])

    def work() -> None:
        # as `asyncio.run` does it: tasks that are left are cancelled, and the loop is closed
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    running = PageServer(server, access, loop)
    try:
        yield running
    finally:
        with suppress(RuntimeError):  # the test has ended it
            running.stop()
        thread.join(15.0)
        assert not thread.is_alive()
        os.environ.pop(RUNS_VARIABLE)
        if before is not None:
            os.environ[RUNS_VARIABLE] = before
