"""The server of the page: its socket, its address, its end."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from eureka_agent.errors import EurekaError, system_reason
from eureka_agent.invocation import command
from eureka_agent.web.app import Page
from eureka_agent.web.security import Access

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8321
BACKLOG = 128
LONGEST_END_S = 1
"""Seconds that the end waits for answers under way."""


def bind(port: int | None) -> socket.socket:
    """Listening socket of this machine alone. Without a port `DEFAULT_PORT` is taken, or any free
    one. Raises EurekaError for a port that cannot be taken."""
    wanted = [DEFAULT_PORT, 0] if port is None else [port]
    for number in wanted:
        # asyncio sends short answers at once only where the protocol is named
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            # a port whose last connections are closing can be used at once
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((LOOPBACK, number))
            listening.listen(BACKLOG)
        except OSError as error:
            listening.close()
            if number == wanted[-1]:
                reason = system_reason(error)
                if error.errno == errno.EADDRINUSE:
                    reason = "it is in use by another program"
                raise EurekaError(
                    f"cannot listen at the port {number}: {reason}",
                    f"name another from 1024 on, or leave it out: {command('ui')}",
                ) from None
        else:
            return listening
    raise AssertionError("the loop returns or raises")


class Server(uvicorn.Server):
    """Server that ends its streams at once, where uvicorn waits for them."""

    def __init__(self, access: Access) -> None:
        self.page = Page(access)
        super().__init__(
            uvicorn.Config(
                self.page.app,
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                # the socket's own address counts, not a header of the request
                proxy_headers=False,
                timeout_graceful_shutdown=LONGEST_END_S,
            )
        )
        # whoever sends nonsense shall not fill the terminal
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)

    def stop(self) -> None:
        """End the server; called on its event loop."""
        self.should_exit = True
        # an answer that is broken off is no news to who ends the server
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self.page.close()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the server, and a refinement that it works on: its trainings are saved."""
        await super().shutdown(sockets)
        await self.page.refining.close()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the server at a signal."""
        super().handle_exit(sig, frame)
        asyncio.get_running_loop().call_soon_threadsafe(self.stop)


def serve(listening: socket.socket, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C, which raises KeyboardInterrupt at the end."""
    access = Access(listening.getsockname()[1])
    say(f"the page is at {access.address}")
    Server(access).run(sockets=[listening])
