"""Each check of the page, with its attack."""

from __future__ import annotations

import pytest
from page_server import PageServer
from starlette.exceptions import HTTPException
from starlette.types import Message

from eureka_agent.web.security import MOST_BODY_BYTES, bounded

RUN = "/runs/20260101-000000_jumper_jump"
POST = {"hx-request": "true", "content-type": "application/x-www-form-urlencoded"}


# ── the door ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/runs/20260101-000000_jumper_jump",
        "/runs/20260101-000000_jumper_jump/live",
        "/runs/20260101-000000_jumper_jump/attempts/1-01",
        "/runs/20260101-000000_jumper_jump/videos/1-01/video.mp4",
        "/static",
    ],
)
def test_without_token_and_cookie_nothing_is_shown(server: PageServer, path: str) -> None:
    with server.stranger() as stranger:
        answer = stranger.get(path)
    assert answer.status_code in (401, 405)
    assert "jump" not in answer.text


def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_can_use(
    server: PageServer,
) -> None:
    with server.stranger() as stranger:
        answer = stranger.get(f"/?token={server.access.token}&page=1")
        cookie = answer.headers["set-cookie"]
        assert answer.status_code == 200
        # the token leaves the address bar at once
        assert 'content="0;url=/?page=1"' in answer.text
        assert server.access.token not in answer.text
        assert server.access.token not in cookie
        assert stranger.get("/").status_code == 200
    assert cookie.startswith(f"eureka_{server.access.port}=")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))


@pytest.mark.parametrize("token", ["", "x", "é", "A" * 5000, "0" * 32])
def test_a_stale_token_is_refused_in_one_line(server: PageServer, token: str) -> None:
    with server.stranger() as stranger:
        answer = stranger.get("/", params={"token": token})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "not of this start of the server" in answer.text


@pytest.mark.parametrize("path", ["//evil.example/a", "/%5Cevil.example", "/%2F%2Fevil.example"])
def test_the_token_leads_to_no_other_host(server: PageServer, path: str) -> None:
    request = f"GET {path}?token={server.access.token} HTTP/1.1\r\nHost: 127.0.0.1:{server.access.port}\r\nConnection: close\r\n\r\n"
    answer = server.raw(request)
    (target,) = [part.partition('"')[0] for part in answer.split("0;url=")[1:]]
    assert target.startswith("/")
    assert not target.startswith(("//", "/\\"))


# ── other sites ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1.evil.example:{port}",
        "localhost:{port}.evil.example",
        "localhost:{port}@evil.example",
        "",
    ],
)
def test_another_host_is_refused_though_it_has_the_cookie(server: PageServer, host: str) -> None:
    """A name of the attacker's that leads here (DNS rebinding)."""
    with server.client() as client:
        answer = client.get("/", headers={"host": host.format(port=server.access.port)})
    assert answer.status_code == 403
    assert "does not answer to the host" in answer.text
    assert "jump" not in answer.text


def test_a_request_without_or_with_two_hosts_is_refused(server: PageServer) -> None:
    cookie = f"Cookie: {server.access.cookie}={server.access.session}\r\n"
    good = f"Host: 127.0.0.1:{server.access.port}\r\n"
    for hosts in ("", good + "Host: evil.example\r\n"):
        answer = server.raw(f"GET / HTTP/1.1\r\n{hosts}{cookie}Connection: close\r\n\r\n")
        assert answer.split()[1] in ("400", "403")
    assert "403" in server.raw(f"GET / HTTP/1.0\r\n{cookie}\r\n").split()


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_origin_is_refused(server: PageServer, method: str, origin: str) -> None:
    headers = {**POST, "origin": origin.format(port=server.access.port)}
    with server.client() as client:
        answer = client.request(method, "/", headers=headers)
    assert answer.status_code == 403
    assert "a page of another site" in answer.text


@pytest.mark.parametrize("missing", ["origin", "hx-request"])
def test_a_post_needs_origin_and_header(server: PageServer, missing: str) -> None:
    headers = {**POST, "origin": server.origin}
    del headers[missing]
    with server.client() as client:
        answer = client.post(f"{RUN}/refine/begin", headers=headers)
    assert answer.status_code == 403
    assert "own script: use the page" in answer.text


def test_every_answer_has_the_headers(server: PageServer) -> None:
    policy = {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'"],
        "media-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
    plain = "/runs/20260101-000000_jumper_jump"
    with server.client() as client, server.stranger() as stranger:
        answers = [
            client.get(path)
            for path in ("/", plain, "/nothing", f"{plain}/live", "/static/page/page.js")
        ]
        answers += [stranger.get("/"), client.get("/", headers={"host": "evil.example"})]
    for answer in answers:
        given = answer.headers["content-security-policy"]
        assert {
            name: values for name, *values in (part.split() for part in given.split(";"))
        } == policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers
        static = answer.request.url.path.startswith("/static/")
        assert answer.headers["cache-control"] == ("no-cache" if static else "no-store")


@pytest.mark.parametrize(
    "line",
    [
        "GET /%00 HTTP/1.1",
        "GET /runs/%ff%fe HTTP/1.1",
        "GET /runs/%0d%0aSet-Cookie:%20a=b HTTP/1.1",
        "GET /?page=%ff&token HTTP/1.1",
        "GET /?token=%ff%00 HTTP/1.1",
        "GET /runs/\\..\\.. HTTP/1.1",
        "GET http://evil.example/ HTTP/1.1",
        "TRACE / HTTP/1.1",
        "G\x00T / HTTP/1.1",
        "GET / HTTP/9.9",
        f"GET /{'a' * 70_000} HTTP/1.1",
    ],
)
def test_nonsense_is_refused_and_fails_nothing(
    server: PageServer, line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = server.raw(
        f"{line}\r\nHost: 127.0.0.1:{server.access.port}\r\n"
        f"Cookie: {server.access.cookie}={server.access.session}\r\nConnection: close\r\n\r\n"
    )
    assert answer.split()[1] in ("200", "400", "401", "403", "404", "405")
    assert "a=b" not in answer.partition("\r\n\r\n")[0]
    assert capfd.readouterr().err == ""


# ── bodies ────────────────────────────────────────────────────────────────────────────────────────


def test_a_body_that_is_too_long_is_refused(server: PageServer) -> None:
    headers = {**POST, "origin": server.origin}
    with server.client() as client:
        content = b"x" * (MOST_BODY_BYTES + 1)
        announced = client.post(f"{RUN}/refine/say", headers=headers, content=content)
    assert announced.status_code == 413
    assert announced.text.strip() == "the request has more than 524,288 bytes: send less"


async def test_a_body_that_comes_in_parts_is_bounded_too() -> None:
    async def receive() -> Message:
        return {"type": "http.request", "body": b"x" * 8192, "more_body": True}

    receive_bounded = bounded(receive)
    for _ in range(MOST_BODY_BYTES // 8192):
        await receive_bounded()
    with pytest.raises(HTTPException, match="524,288 bytes"):
        await receive_bounded()
