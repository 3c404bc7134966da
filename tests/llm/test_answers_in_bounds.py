"""A hostile server of models may send us elsewhere, answer without end, or count absurdly. The real
SDKs and litellm meet it over real HTTP."""

from __future__ import annotations

import gzip
import json
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from model_access import LITELLM, REQUEST, WIRES, At, Wire, refused_by
from model_server import Asked, Endless, ModelServer, Raw, Reply, Trickle, _rendered

from eureka_agent.llm.clients import LONGEST_BODY_BYTES, requests_bounded
from eureka_agent.llm.failures import RequestFailedError
from eureka_agent.llm.litellm_client import imported_litellm
from eureka_agent.llm.replies import tokens
from eureka_agent.records import MOST_TOKENS, known_tokens

OWN_CLIENT = Wire("deepseek/tiny", "auto", "", "", "")
MODELS = {**WIRES, "litellm by openai's SDK": LITELLM, "litellm by its own client": OWN_CLIENT}
LARGEST_MEMORY_BYTES = 6 * LONGEST_BODY_BYTES
"""Python objects that an answer may take at the same time: the body, the text of it, and copies of
both."""


@pytest.fixture(params=MODELS)
def wire(request: pytest.FixtureRequest) -> Wire:
    return MODELS[request.param]


@pytest.fixture
def elsewhere() -> Iterator[ModelServer]:
    """Another server, which a key must not come to."""
    with ModelServer(["from elsewhere"]) as server:
        yield server


@pytest.mark.parametrize("status", [302, 307])
async def test_a_redirect_is_not_followed(at: At, elsewhere: ModelServer, status: int) -> None:
    at.server.answers = [
        Raw(b"", status=status, headers={"Location": f"{elsewhere.base_url}/chat/completions?k=1"})
    ]
    error = await refused_by(at.open())
    assert f"sends us on to {elsewhere.base_url}/chat/completions (HTTP {status})" in error.message
    assert "name its address with --base-url" in error.hint
    assert elsewhere.requests == []
    assert len(at.server.requests) == 1


async def test_an_address_that_a_redirect_names_shows_no_key_and_no_commands(at: At) -> None:
    def echo(asked: Asked) -> Raw:
        key = (asked.headers.get("x-api-key") or asked.headers["authorization"]).split()[-1]
        return Raw(
            b"",
            status=307,
            headers={"Location": f"http://user:{key}@127.0.0.1:9/{key}/\x9b31m{'x' * 1000}"},
        )

    at.server.answers = echo
    error = await refused_by(at.open())
    assert "user" not in error.message
    assert error.message.isprintable()
    assert len(error.message) < 600


@pytest.mark.parametrize("status", [200, 400, 500])
async def test_a_body_without_end_is_left_after_some_megabytes(at: At, status: int) -> None:
    at.server.answers = ["warm", Endless(status=status)]
    model = at.open()
    await model.complete(REQUEST)  # an SDK's import takes memory, too
    tracemalloc.start()
    try:
        error = await refused_by(model)
        assert tracemalloc.get_traced_memory()[1] < LARGEST_MEMORY_BYTES
    finally:
        tracemalloc.stop()
    assert "answers at greater length than any reply" in error.message
    assert len(at.server.requests) == 2
    # the sockets' buffers come on top
    assert at.server.sent_bytes < LONGEST_BODY_BYTES + (32 << 20)


async def test_a_compressed_answer_is_neither_asked_for_nor_read(at: At) -> None:
    """A few bytes may become gigabytes."""
    headers = {"Content-Encoding": "gzip"}
    at.server.answers = [Raw(gzip.compress(b" " * (1 << 20)), headers=headers)]
    error = await refused_by(at.open())
    assert "answers, but not as" in error.message
    assert at.server.requests[0].headers["accept-encoding"] == "identity"
    assert len(at.server.requests) == 1


async def test_an_answer_that_trickles_in_without_end_ends_with_the_requests_time(at: At) -> None:
    at.server.answers = ["warm", Trickle(pause_s=0.02)]
    model = at.open(timeout_s=1.0)
    await at.open().complete(REQUEST)
    started = time.monotonic()
    error = await refused_by(model)
    assert "did not answer within 1 s (2 tries)" in error.message
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
async def test_what_litellm_asks_is_bounded_with_either_http_library(
    model_server: ModelServer, library: str
) -> None:
    """The SDKs that litellm calls have moved from one to the other."""
    http = pytest.importorskip(library)
    imported_litellm()
    model_server.answers = [Raw(b" " * (LONGEST_BODY_BYTES + 1))]
    async with http.AsyncClient() as client:
        with requests_bounded(20.0), pytest.raises(RequestFailedError):
            await client.post(model_server.base_url, json={})
    with http.Client() as client, requests_bounded(20.0), pytest.raises(RequestFailedError):
        client.post(model_server.base_url, json={})


ABSURD = {
    "enormous": 10**4000,
    "negative": -5,
    "text": "many",
    "not a number": float("nan"),
    "beyond 64 bits": 2**64,
}


def _with_usage(asked: Asked, count: Any) -> bytes:
    """A reply's body in which every number of tokens is `count`."""
    status, _, body = _rendered(asked, Reply(text="a reply"))
    assert status == 200
    content = json.loads(body)
    content["usage"] = {
        name: dict.fromkeys(value, count) if isinstance(value, dict) else count
        for name, value in content["usage"].items()
    }
    return json.dumps(content).encode()


@pytest.mark.parametrize("count", ABSURD.values(), ids=ABSURD)
async def test_numbers_of_tokens_that_can_be_none_are_unknown(at: At, count: Any) -> None:
    at.server.answers = lambda asked: Raw(_with_usage(asked, count))
    model = at.open()
    if not at.wire.model.startswith(("openai", "anthropic")) and not isinstance(count, int):
        await refused_by(model)  # litellm itself reads no such reply
        return
    reply = await model.complete(REQUEST)
    assert reply.text == "a reply"
    cost = reply.cost
    assert (cost.prompt_tokens, cost.completion_tokens) == (None, None)
    assert (cost.cached_tokens, cost.cache_write_tokens) == (None, None)


@pytest.mark.parametrize("count", [*ABSURD.values(), True, "120", None, MOST_TOKENS + 1])
def test_no_count_of_tokens(count: Any) -> None:
    assert known_tokens(count) is None
    assert tokens(count) is None
    assert tokens(100, count) == (100 if count is None else None)
