"""Who may see the page: a token in the printed address, or a password; checks before every request,
and headers on every answer.

A page on another site can make a browser send requests here, and can make its own name lead to
this machine (DNS rebinding). So the Host and the Origin must be this server's, a cookie that other
sites cannot send is needed, and a request that changes something needs a header that no form has.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import URL, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eureka_agent.archive.safe_files import read_plain
from eureka_agent.errors import EurekaError, SettingsError, system_reason
from eureka_agent.invocation import command

PASSWORD_VARIABLE = "EUREKA_UI_PASSWORD"
FEWEST_CHARACTERS = 8
MOST_PASSWORD_BYTES = 1024


def is_loopback(address: str) -> bool:
    """True for an IP address that only this machine reaches."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def read_password(file: Path | None) -> str:
    """Password from a file's first line or from `PASSWORD_VARIABLE`; empty without one. Raises
    SettingsError for a short one and for an unreadable file."""
    place, password = PASSWORD_VARIABLE, os.environ.get(PASSWORD_VARIABLE, "")
    if file is not None:
        place = f"the file {str(file)!r}"
        try:
            content = read_plain(file, MOST_PASSWORD_BYTES).decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = system_reason(error) if isinstance(error, OSError) else "it is not UTF-8"
            raise SettingsError(
                f"cannot read the password in {place}: {reason}",
                "name a file whose first line is the password",
            ) from None
        password = content.partition("\n")[0].rstrip("\r")
    if (file is not None or password) and len(password) < FEWEST_CHARACTERS:
        raise SettingsError(
            f"the password in {place} has {len(password)} characters, expected at least"
            f" {FEWEST_CHARACTERS}",
            "choose a longer one",
        )
    return password


def check_reach(host: str, address: str, password: str) -> None:
    """Raises EurekaError where other machines could reach the page without a password."""
    if password or is_loopback(address):
        return
    raise EurekaError(
        f"--host {host} lets other machines reach the page, and there is no password",
        f"set {PASSWORD_VARIABLE}, or name a file with --password-file; or leave --host out and"
        " forward the port with ssh -L",
    )


@dataclass(frozen=True)
class Access:
    """Secrets and names of one server."""

    port: int
    host: str
    """As the person gave it."""
    beyond_loopback: bool = False
    password: str = ""
    """Empty: the token in the address lets a browser in."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """Value of the cookie of a browser that was let in."""
    _tickets: set[str] = field(default_factory=set)
    """Tokens that let one browser in."""

    @property
    def cookie(self) -> str:
        """Name of the cookie; browsers keep one jar for all ports of a host."""
        return f"eureka_{self.port}"

    @property
    def address(self) -> str:
        """Address to open, with the token if there is one."""
        return self._with_token(self.token)

    def address_for_once(self) -> str:
        """Address whose token lets one browser in: all users of a machine can read the arguments of
        the program that opens it."""
        ticket = secrets.token_urlsafe(24)
        self._tickets.add(ticket)
        return self._with_token(ticket)

    def _with_token(self, token: str) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        query = "" if self.password else f"?token={token}"
        return f"http://{host}:{self.port}/{query}"

    def hosts(self, arrived_at: str) -> set[str]:
        """Host headers that name this server. `arrived_at`: local IP address of the connection."""
        names = {"localhost", "127.0.0.1", "[::1]"}
        if self.beyond_loopback:
            own = f"[{arrived_at}]" if ":" in arrived_at else arrived_at
            names |= {own, self.host.lower(), socket.gethostname().lower()}
        return {f"{name}:{self.port}" for name in names}

    def takes_token(self, text: str) -> bool:
        """True for this server's token, and once for each that lets one browser in."""
        ticket = next((each for each in self._tickets if _equal(text, each)), None)
        self._tickets.discard(ticket or "")
        return not self.password and (ticket is not None or _equal(text, self.token))

    def is_password(self, text: str) -> bool:
        """True for this server's password."""
        return bool(self.password) and _equal(text, self.password)

    def is_session(self, text: str) -> bool:
        """True for the cookie of a browser that was let in."""
        return _equal(text, self.session)


def _equal(one: str, other: str) -> bool:
    """Comparison in a time that does not tell where two texts differ."""
    return hmac.compare_digest(one.encode(errors="replace"), other.encode(errors="replace"))


MOST_BODY_BYTES = 512 << 10
"""A reward of 100,000 characters, each of which a form may write as three or more."""
OPEN_PATHS = ("/static/", "/login")
"""Beginnings of paths for which nobody is let in: the program's own files, and the door."""
SAFE_METHODS = ("GET", "HEAD")
HEADERS = {
    "content-security-policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "media-src 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # not `no-referrer`, under which browsers send `Origin: null` with this page's own requests
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
Refuse = Callable[[Request, int, str, str], Response]
"""Makes the answer to a request from a status, a fault and a hint."""


class Guard:
    """Lets requests to an application through that pass all checks."""

    def __init__(
        self, app: ASGIApp, access: Access, refuse: Refuse, enter: Callable[[str], Response]
    ) -> None:
        """`enter` makes the answer that leads a browser which was let in to an address."""
        self._app = app
        self._access = access
        self._refuse = refuse
        self._enter = enter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        answer = self._refusal(request) or self._door(request)
        if answer is not None:
            await answer(scope, receive, _with_headers(send))
            return
        static = request.url.path.startswith("/static/")
        await self._app(scope, _bounded(receive), _with_headers(send, static=static))

    def _refusal(self, request: Request) -> Response | None:
        """Answer to a request that is not from this server's own pages."""
        given = request.headers.getlist("host")
        arrived_at, _ = request.scope.get("server") or ("", 0)
        if len(given) != 1 or given[0].lower() not in self._access.hosts(arrived_at):
            fault = f"this page does not answer to the host {', '.join(given)[:200]!r}"
            port = self._access.port
            hint = f"open it as localhost:{port}; forward the same port with ssh -L"
            return self._refuse(request, 403, fault, hint)
        origins = request.headers.getlist("origin")
        if any(origin.lower() != f"http://{given[0].lower()}" for origin in origins):
            fault = f"a page of another site, {', '.join(origins)[:200]!r}, asked for this"
            return self._refuse(request, 403, fault, "open it from this page")
        if request.method not in SAFE_METHODS:
            if not origins or request.headers.get("hx-request") != "true":
                fault = "the request does not come from this page's own script"
                return self._refuse(request, 403, fault, "use the page's buttons")
            length = request.headers.get("content-length", "0")
            if not length.isdecimal() or int(length) > MOST_BODY_BYTES:
                return self._refuse(request, 413, *_TOO_LONG)
        return None

    def _door(self, request: Request) -> Response | None:
        """Answer to a browser that was not let in, or that brings the token."""
        token = request.query_params.get("token")
        if token is not None and request.method in SAFE_METHODS:
            if self._access.takes_token(token):
                return self._let_in(request.url)
            fault = "the token in this address is not of this start of the server"
            return self._refuse(request, 401, fault, _open_the_address())
        if request.url.path.startswith(OPEN_PATHS):
            return None
        session = request.cookies.get(self._access.cookie)
        if session is not None and self._access.is_session(session):
            return None
        if session is not None:
            fault = "this browser was let in by an earlier start of the server"
        else:
            fault = "this browser was not let in yet"
        return self._refuse(
            request, 401, fault, "" if self._access.password else _open_the_address()
        )

    def _let_in(self, url: URL) -> Response:
        """Answer with the cookie, which leads to the same address without the token."""
        kept = [(name, value) for name, value in _query(url) if name != "token"]
        # a path of two slashes or a backslash would lead to another host
        path = f"/{quote(url.path.lstrip('/'))}"
        answer = self._enter(path + (f"?{urlencode(kept)}" if kept else ""))
        set_cookie(answer, self._access)
        return answer


def _open_the_address() -> str:
    return f"open the address that `{command('ui')}` printed last, with its token"


_TOO_LONG = (f"the request has more than {MOST_BODY_BYTES:,} bytes", "send less")


def set_cookie(answer: Response, access: Access) -> None:
    """Let the browser in that gets this answer."""
    answer.set_cookie(access.cookie, access.session, httponly=True, samesite="strict", path="/")


def _query(url: URL) -> list[tuple[str, str]]:
    return parse_qsl(url.query, keep_blank_values=True)


def _with_headers(send: Send, *, static: bool = False) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                answer[name] = value
            # the program's own files are asked for again, and mostly not sent again
            answer.setdefault("cache-control", "no-cache" if static else "no-store")
        await send(message)

    return with_headers


def _bounded(receive: Receive) -> Receive:
    """Receive a body of at most `MOST_BODY_BYTES`, whatever its length is said to be."""
    size = 0

    async def bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MOST_BODY_BYTES:
            raise HTTPException(413, "\n".join(_TOO_LONG))
        return message

    return bounded
