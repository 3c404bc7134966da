"""The real SDKs over real HTTP, in every wire format: replies, what models do, and every way in
which a server fails."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from typing import Any

import pytest
from model_access import LITELLM, REQUEST, WIRES, At, Patient, Waits, Wire, refused_by
from model_server import HTML, Answer, Cut, Ending, HttpFailure, ModelServer, Raw, Reply, Stall

from eureka_agent.llm.access import ModelAccess, ask_loopback_directly
from eureka_agent.llm.interface import FinishReason

TRIES = 6
OWN_WAITS_S = [2, 4, 8, 16, 30]
"""Half of 4, 8, 16, 32 and of the bound 60: the shortest waits that jitter gives."""
with_litellm = pytest.mark.parametrize("wire", [*WIRES, "litellm"], indirect=True)


@with_litellm
async def test_a_reply_comes_back_with_its_tokens(at: At) -> None:
    at.server.answers = [
        Reply(text="here it is", prompt_tokens=120, cached_tokens=90, completion_tokens=30)
    ]
    reply = await at.open().complete(REQUEST)
    assert (reply.text, reply.finish_reason) == ("here it is", FinishReason.STOP)
    assert (reply.cost.prompt_tokens, reply.cost.cached_tokens, reply.cost.completion_tokens) == (
        120,
        90,
        30,
    )
    asked = at.server.requests[0]
    assert (asked.path, asked.headers["authorization"]) == (at.wire.path, f"Bearer {at.wire.key}")
    assert (asked.model, asked.system, asked.turns) == (
        at.wire.sent,
        "you design",
        [("user", "a reward, please")],
    )
    assert at.waits.seconds == []


@with_litellm
@pytest.mark.parametrize(
    ("ending", "text", "expected"),
    [
        ("stop", "all of it", FinishReason.STOP),
        ("stop", "", FinishReason.STOP),
        ("cut_off", "half of it", FinishReason.CUT_OFF),
        ("refused", "I will not", FinishReason.REFUSED),
        ("filtered", "", FinishReason.REFUSED),
        ("other", "something", FinishReason.OTHER),
    ],
)
async def test_what_the_model_did_is_data(
    at: At, ending: Ending, text: str, expected: FinishReason
) -> None:
    if at.wire is LITELLM and ending == "other":
        expected = FinishReason.STOP  # its own word for what it does not know
    at.server.answers = [Reply(text=text, ending=ending)]
    reply = await at.open().complete(REQUEST)
    words = "" if ending == "refused" and at.wire is WIRES["messages"] else text
    assert (reply.text, reply.finish_reason) == (words, expected)
    assert len(at.server.requests) == 1


@with_litellm
@pytest.mark.parametrize(
    ("status", "message", "hint", "tries"),
    [
        (400, "answers with HTTP 400: no, {key}", "", 1),
        (401, "does not accept the key (HTTP 401)", "_API_KEY", 1),
        (402, "asks to be paid first (HTTP 402): no", "the account", 1),
        (403, "does not accept the key (HTTP 403): no", "_API_KEY", 1),
        (404, "was not found (HTTP 404): no", "the model's name; --base-url must end where", 1),
        (429, "refuses more requests (HTTP 429): no", "quota", TRIES),
        (503, "answers with HTTP 503: no", "", TRIES),
    ],
)
async def test_an_error_is_one_clear_line_after_as_many_tries_as_make_sense(
    at: At, status: int, message: str, hint: str, tries: int
) -> None:
    at.server.answers = [HttpFailure(status, f"no, {at.wire.key}")]
    error = await refused_by(at.open())
    assert f"{at.wire.model} at {at.server.root}" in error.message
    assert message.format(key="<key>") in error.message
    assert at.wire is LITELLM or hint in error.hint
    assert len(at.server.requests) == tries
    assert (f"({TRIES} tries)" in error.message) == (tries == TRIES)
    assert at.waits.seconds == OWN_WAITS_S[: tries - 1]


@with_litellm
async def test_a_passing_failure_is_waited_out_and_told(at: At) -> None:
    at.server.answers = [
        HttpFailure(429, retry_after="20"),
        HttpFailure(503),
        Cut(),
        Cut("within"),
        "ok",
    ]
    reply = await at.open().complete(REQUEST)
    assert reply.text == "ok"
    assert at.waits.seconds == [20, 4, 8, 16]
    assert at.waits.told == [
        f"{at.wire.model}: HTTP 429, tried again in 20 s",
        f"{at.wire.model}: HTTP 503, tried again in 4 s",
        f"{at.wire.model}: the connection broke off, tried again in 8 s",
        f"{at.wire.model}: the connection broke off, tried again in 16 s",
    ]


@pytest.mark.parametrize(
    ("failure", "least", "most"),
    [
        (HttpFailure(429, retry_after="400"), 400, 400),
        (HttpFailure(529, retry_after_ms="1500", retry_after="7"), 1.5, 1.5),
        (HttpFailure(429, retry_after="soon"), 2, 2),
        (HttpFailure(429, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), 2, 2),
    ],
)
async def test_what_a_server_asks_to_wait_is_waited(
    at: At, failure: HttpFailure, least: float, most: float
) -> None:
    at.server.answers = [failure, "ok"]
    await at.open().complete(REQUEST)
    assert least <= at.waits.seconds[0] <= most


@pytest.mark.parametrize(
    ("asked", "said"), [("901", "15 min"), ("10800", "3 h"), ("1e300", " h: slow")]
)
async def test_a_wait_that_is_too_long_is_said_and_not_waited(
    at: At, asked: str, said: str
) -> None:
    at.server.answers = [HttpFailure(429, "slow", retry_after=asked)]
    error = await refused_by(at.open())
    assert "refuses more requests (HTTP 429) and asks to wait" in error.message
    assert said in error.message
    assert (len(at.server.requests), at.waits.seconds) == (1, [])


@with_litellm
@pytest.mark.parametrize(
    "failure",
    [
        HttpFailure(429, "You exceeded your current quota", code="insufficient_quota"),
        HttpFailure(500, "You exceeded your current quota", headers={"x-should-retry": "false"}),
    ],
)
async def test_what_no_wait_mends_is_not_waited_for(at: At, failure: HttpFailure) -> None:
    at.server.answers = [failure]
    error = await refused_by(at.open())
    assert f"HTTP {failure.status}" in error.message
    assert error.message.endswith(": You exceeded your current quota")
    assert len(at.server.requests) == 1


@with_litellm
@pytest.mark.parametrize("code", ["content_filter", "content_policy_violation"])
async def test_a_filter_before_the_model_is_a_refusal(at: At, code: str) -> None:
    at.server.answers = [HttpFailure(400, "filtered", code=code)]
    reply = await at.open().complete(REQUEST)
    assert (reply.text, reply.finish_reason, reply.cost.prompt_tokens) == (
        "",
        FinishReason.REFUSED,
        None,
    )


@pytest.mark.parametrize(
    "answer",
    [HTML, Raw(b'{"answer": 42}'), Raw(b""), Raw(b"[" * 100_000), Raw(b'{"choices": "\xff"}')],
    ids=lambda answer: repr(answer.body[:14]),
)
@pytest.mark.usefixtures("no_collection")
async def test_what_is_no_reply_is_said_to_be_none(at: At, answer: Answer) -> None:
    at.server.answers = [answer]
    error = await refused_by(at.open())
    assert f"{at.server.root}" in error.message
    assert f"answers, but not as {at.wire.protocol} do" in error.message
    assert "--base-url must end where" in error.hint
    assert len(at.server.requests) == 1


async def test_an_error_under_a_good_status_counts_as_one(at: At) -> None:
    """Gateways answer like this when their own provider is down."""
    down = Raw(json.dumps({"error": {"message": "upstream is down", "code": 502}}).encode())
    at.server.answers = [down, "ok"]
    assert (await at.open().complete(REQUEST)).text == "ok"
    at.server.answers = [Raw(b'{"error": {"message": "no such model", "code": 404}}')]
    error = await refused_by(at.open())
    assert "(HTTP 404): no such model" in error.message


PASSING_ERRORS = [
    {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}},
    {"error": {"message": "oops", "type": "server_error", "param": None, "code": None}},
    {"error": {"message": "full", "type": "tokens", "code": "rate_limit_exceeded"}},
    {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}},
    {"error": {"message": "full", "status": "RESOURCE_EXHAUSTED"}},
    {"object": "error", "message": "busy", "type": "ServiceUnavailableError", "code": 503},
]
LASTING_ERRORS = [
    ({"type": "error", "error": {"type": "authentication_error", "message": "no"}}, "check A"),
    ({"type": "error", "error": {"type": "billing_error", "message": "no"}}, "the account"),
    ({"type": "error", "error": {"type": "not_found_error", "message": "no"}}, "model's name"),
    ({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}, ""),
]


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("body", PASSING_ERRORS)
async def test_the_type_of_an_error_decides_and_not_the_status(
    at: At, body: dict[str, Any], status: int
) -> None:
    """Gateways send the errors of others under a status of their own."""
    at.server.answers = [Raw(json.dumps(body).encode(), status=status), "ok"]
    kind = str(body)
    generic = any(each in kind for each in ("api_error", "server_error", "InternalServer"))
    if status == 400 and generic:  # Ollama calls any error so
        assert "HTTP 400" in (await refused_by(at.open())).message
        return
    assert (await at.open().complete(REQUEST)).text == "ok"
    assert len(at.waits.told) == 1
    assert status == 400 or "HTTP" not in at.waits.told[0]


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize(("body", "hint"), LASTING_ERRORS)
async def test_an_error_that_stays_is_told_by_its_type(
    at: At, body: dict[str, Any], hint: str, status: int
) -> None:
    at.server.answers = [Raw(json.dumps(body).encode(), status=status)]
    error = await refused_by(at.open())
    assert (
        hint.replace(
            "check A", f"check {'ANTHROPIC' if at.wire.protocol == 'Messages' else 'OPENAI'}"
        )
        in error.hint
    )
    assert len(at.server.requests) == 1


@pytest.mark.parametrize("code", ["²", "9" * 5000, "no_such_thing"])
async def test_a_code_that_is_no_status_is_none(at: At, code: str) -> None:
    at.server.answers = [
        Raw(json.dumps({"error": {"message": "upstream is odd", "code": code}}).encode())
    ]
    error = await refused_by(at.open())
    assert f"answers with the error '{code[:50]}" in error.message
    assert error.message.endswith(": upstream is odd")
    assert len(at.server.requests) == 1


async def test_a_key_at_the_edge_of_what_is_shown_is_hidden_whole(at: At) -> None:
    at.server.answers = [HttpFailure(400, "x" * 295 + at.wire.key)]
    error = await refused_by(at.open())
    assert at.wire.key[:4] not in error.message


@with_litellm
async def test_a_server_that_never_answers_is_asked_twice(at: At) -> None:
    at.server.answers = [Stall()]
    error = await refused_by(at.open(timeout_s=0.2))
    assert "did not answer within 0.2 s (2 tries)" in error.message
    assert "--request-timeout" in error.hint
    assert at.waits.told == [f"{at.wire.model}: no answer in time, tried again in 2 s"]


@with_litellm
async def test_an_address_where_nobody_listens_is_given_up_soon(wire: Wire, waits: Waits) -> None:
    server = ModelServer()
    server.close()
    error = await refused_by(wire.open(server, waits))
    assert f"cannot reach {wire.model} at {server.root}" in error.message
    assert "(3 tries)" in error.message
    assert "check the address" in error.hint
    assert waits.seconds == [0.5, 1]


@with_litellm
@pytest.mark.parametrize("answer", [HttpFailure(429, retry_after="600"), Stall()])
async def test_a_cancellation_ends_at_once_what_waits(
    wire: Wire, model_server: ModelServer, answer: Answer
) -> None:
    model_server.answers = [answer]
    told: list[str] = []
    access = ModelAccess(base_url=model_server.base_url, api=wire.api, on_retry=told.append)
    task = asyncio.create_task(Patient(wire.model, access).complete(REQUEST))
    while not (told or (isinstance(answer, Stall) and model_server.requests)):
        await asyncio.sleep(0.005)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 1
    assert len(model_server.requests) == 1


@with_litellm
@pytest.mark.parametrize("exempt", ["example.com"])
async def test_no_proxy_stands_between_us_and_this_machine(
    at: At, monkeypatch: pytest.MonkeyPatch, exempt: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, exempt)
        at.server.answers = ["ok"]
        assert (await at.open(timeout_s=2).complete(REQUEST)).text == "ok"


def test_hosts_that_are_exempt_from_a_proxy_stay_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "example.com, localhost")
    monkeypatch.delenv("NO_PROXY", raising=False)
    ask_loopback_directly()
    hosts = os.environ["NO_PROXY"].split(",")
    assert hosts[:2] == ["example.com", "localhost"]
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"]
    assert "127.0.0.1" in hosts
    assert len(set(hosts)) == len(hosts)
