"""Access to the page: a token in the printed address, checks before every request, and headers on
every answer. A page on another site can make a browser send requests here, and can make its own
name lead to this machine (DNS rebinding). So the Host and the Origin must be this server's, a
cookie that other sites cannot send is needed, and a request that changes something needs a header
that no form has."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import URL, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eureka_agent.invocation import command


@dataclass(frozen=True)
class Access:
    """Secrets and names of one server."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """Value of the cookie of a browser that was let in."""

    @property
    def cookie(self) -> str:
        """Name of the cookie; browsers keep one jar for all ports of a host."""
        return f"eureka_{self.port}"

    @property
    def address(self) -> str:
        """Address to open, with the token."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    @property
    def hosts(self) -> set[str]:
        """Host headers that name this server."""
        return {f"{name}:{self.port}" for name in ("localhost", "127.0.0.1")}


def _equal(one: str, other: str) -> bool:
    """Comparison in a time that does not tell where two texts differ."""
    return hmac.compare_digest(one.encode(errors="replace"), other.encode(errors="replace"))


MOST_BODY_BYTES = 512 << 10
"""A reward of 100,000 characters, each of which a form may write as three or more."""
OPEN_PATH = "/static/"
"""Beginning of paths for which nobody has to be let in: the program's own files."""
SAFE_METHODS = ("GET", "HEAD")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self';"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
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
        static = request.url.path.startswith(OPEN_PATH)
        await self._app(scope, bounded(receive), _with_headers(send, static=static))

    def _refusal(self, request: Request) -> Response | None:
        """Answer to a request that is not from this server's own pages."""
        given = request.headers.getlist("host")
        if len(given) != 1 or given[0].lower() not in self._access.hosts:
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
            if _equal(token, self._access.token):
                return self._let_in(request.url)
            fault = "the token in this address is not of this start of the server"
            return self._refuse(request, 401, fault, _open_the_address())
        if request.url.path.startswith(OPEN_PATH):
            return None
        session = request.cookies.get(self._access.cookie)
        if session is not None and _equal(session, self._access.session):
            return None
        fault = "this browser was let in by an earlier start of the server"
        if session is None:
            fault = "this browser was not let in yet"
        return self._refuse(request, 401, fault, _open_the_address())

    def _let_in(self, url: URL) -> Response:
        """Answer with the cookie, which leads to the same address without the token."""
        given = parse_qsl(url.query, keep_blank_values=True)
        kept = [(name, value) for name, value in given if name != "token"]
        # a path of two slashes or a backslash would lead to another host
        path = f"/{quote(url.path.lstrip('/'))}"
        answer = self._enter(path + (f"?{urlencode(kept)}" if kept else ""))
        name, session = self._access.cookie, self._access.session
        answer.set_cookie(name, session, httponly=True, samesite="strict", path="/")
        return answer


def _open_the_address() -> str:
    return f"open the address that `{command('ui')}` printed last, with its token"


_TOO_LONG = (f"the request has more than {MOST_BODY_BYTES:,} bytes", "send less")


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


def bounded(receive: Receive) -> Receive:
    """Receive a body of at most `MOST_BODY_BYTES`, whatever its length is said to be."""
    size = 0

    async def receive_bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MOST_BODY_BYTES:
            raise HTTPException(413, "\n".join(_TOO_LONG))
        return message

    return receive_bounded
