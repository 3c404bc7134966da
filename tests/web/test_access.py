"""Each check of the page, with its attack."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from page_server import PageServer, serving

from eureka_agent.errors import EurekaError
from eureka_agent.web.security import MOST_BODY_BYTES, check_reach, read_password

PASSWORD = "correct horse"
POST = {"hx-request": "true", "content-type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def guarded(runs: Path) -> Iterator[PageServer]:
    """A server with a password."""
    with serving(runs, PASSWORD) as running:
        yield running


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
        "/login",
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


def test_the_address_for_a_browser_lets_in_once(server: PageServer) -> None:
    """Its token stands in the arguments of a program, which every user of the machine can read."""
    address = server.access.address_for_once()
    assert server.access.token not in address
    statuses = []
    for _ in range(2):
        with server.stranger() as stranger:
            statuses.append(stranger.get(address).status_code)
    assert statuses == [200, 401]


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
def test_a_post_needs_origin_and_header(guarded: PageServer, missing: str) -> None:
    headers = {**POST, "origin": guarded.origin}
    del headers[missing]
    with guarded.stranger() as stranger:
        answer = stranger.post("/login", headers=headers, content=f"password={PASSWORD}")
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


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


def test_a_body_that_is_too_long_is_refused(guarded: PageServer) -> None:
    headers = {**POST, "origin": guarded.origin}
    with guarded.stranger() as stranger:
        announced = stranger.post("/login", headers=headers, content=b"x" * (MOST_BODY_BYTES + 1))
    with guarded.stranger() as stranger:
        parts = (b"x" * 8192 for _ in range(MOST_BODY_BYTES // 8192 + 2))
        in_parts = stranger.post("/login", headers=headers, content=parts)
    for answer in (announced, in_parts):
        assert answer.status_code == 413
        assert answer.text.strip() == "the request has more than 524,288 bytes: send less"


# ── the password ──────────────────────────────────────────────────────────────────────────────────


def login(client: httpx.Client, server: PageServer, password: str) -> httpx.Response:
    headers = {**POST, "origin": server.origin}
    return client.post(
        "/login", headers=headers, content=httpx.QueryParams(password=password).__str__()
    )


def test_the_password_lets_in_and_the_token_does_not(guarded: PageServer) -> None:
    assert guarded.access.token not in guarded.access.address
    with guarded.stranger() as stranger:
        asked = stranger.get("/")
        assert asked.status_code == 401
        assert 'type="password"' in asked.text
        assert stranger.get("/", params={"token": guarded.access.token}).status_code == 401
        answer = login(stranger, guarded, PASSWORD)
        assert answer.status_code == 204
        assert answer.headers["hx-refresh"] == "true"
        assert stranger.get("/").status_code == 200


def test_wrong_passwords_wait_for_one_another(guarded: PageServer) -> None:
    """A thousand guesses at once are no faster than one after the other."""
    statuses: list[int] = []

    def guess(number: int) -> None:
        with guarded.stranger() as stranger:
            statuses.append(login(stranger, guarded, f"guess {number}").status_code)

    began = time.monotonic()
    threads = [threading.Thread(target=guess, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - began
    looked_at = statuses.count(403)
    assert set(statuses) <= {403, 429}
    assert 1 <= looked_at <= seconds  # one a second


def test_a_password_is_read_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "password"
    file.write_text("of the file\nnot this line\n")
    monkeypatch.setenv("EUREKA_UI_PASSWORD", "of the environment")
    assert read_password(file) == "of the file"
    assert read_password(None) == "of the environment"
    monkeypatch.delenv("EUREKA_UI_PASSWORD")
    assert read_password(None) == ""


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff\xfe\xff\xfe\xff\xfe\xff\xfe\xff"])
def test_a_useless_password_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    with pytest.raises(EurekaError, match="password"):
        read_password(file)
    with pytest.raises(EurekaError, match="no such file"):
        read_password(tmp_path / "missing")


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.5", "fe80::1%eth0"])
def test_beyond_loopback_a_password_is_needed(address: str) -> None:
    with pytest.raises(EurekaError, match="there is no password"):
        check_reach("there", address, "")
    check_reach("there", address, PASSWORD)
    check_reach("here", "127.0.0.1", "")
    check_reach("here", "::1", "")
