"""The server of the page: its socket, its address, its end."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import threading
import webbrowser
from collections.abc import Callable
from types import FrameType

import uvicorn

from eureka_agent.errors import EurekaError, system_reason
from eureka_agent.invocation import command
from eureka_agent.web.app import Page
from eureka_agent.web.security import Access, check_reach, is_loopback

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8321
BACKLOG = 128
LONGEST_END_S = 1
"""Seconds that the end waits for answers under way."""
_WILDCARDS = ("0.0.0.0", "::")


def bind(host: str, port: int | None) -> socket.socket:
    """Listening socket. Without a port `DEFAULT_PORT` is taken, or any free one. Raises EurekaError
    for a host that is not this machine's and for a port in use."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no name of a host"
        raise EurekaError(
            f"--host is {host!r}, which cannot be looked up: {reason}",
            f"expected a name or an address of this machine, such as {LOOPBACK} or 0.0.0.0",
        ) from None
    family, _, _, _, address = found[0]
    wanted = [DEFAULT_PORT, 0] if port is None else [port]
    for number in wanted:
        # asyncio sends short answers at once only where the protocol is named
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            # a port whose last connections are closing can be used at once
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((address[0], number))
            listening.listen(BACKLOG)
        except OSError as error:
            listening.close()
            if number == wanted[-1]:
                raise _not_bound(host, number, error) from None
        else:
            return listening
    raise AssertionError("the loop returns or raises")


def _not_bound(host: str, port: int, error: OSError) -> EurekaError:
    if error.errno == errno.EADDRINUSE:
        fault = f"the port {port} is in use by another program"
        return EurekaError(fault, f"name another, or leave it out: {command('ui')}")
    if error.errno == errno.EACCES:
        fault = f"the port {port} needs more rights than this program has"
        return EurekaError(fault, "name one from 1024 on")
    if error.errno == errno.EADDRNOTAVAIL:
        fault = f"--host is {host!r}, which is no address of this machine"
        return EurekaError(fault, f"expected one of this machine's, such as {LOOPBACK} or 0.0.0.0")
    return EurekaError(f"cannot listen at {host}, port {port}: {system_reason(error)}")


def access_of(listening: socket.socket, host: str, password: str) -> Access:
    """Secrets and names of a server on this socket. Raises EurekaError where other machines could
    reach it without a password."""
    address, port = listening.getsockname()[:2]
    check_reach(host, address, password)
    named = socket.gethostname() if address in _WILDCARDS else host
    return Access(port, named, not is_loopback(address), password)


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


def serve(
    listening: socket.socket, access: Access, say: Callable[[str], None], *, browser: bool
) -> None:
    """Serve until Ctrl-C, which raises KeyboardInterrupt at the end. `browser`: open one."""
    server = Server(access)
    say(f"the page is at {access.address}")
    if access.beyond_loopback:
        say("its traffic is not encrypted: use it in a network that you trust, or ssh -L")
    if browser and _has_screen():
        # a browser of the terminal would wait for its end
        address = access.address_for_once()
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    server.run(sockets=[listening])


def _has_screen() -> bool:
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
