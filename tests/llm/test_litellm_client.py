"""litellm over real HTTP. Its import takes seconds, so every test of it is in this file; the last
ones look at that import in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

import pytest
from model_access import KEYS, Waits
from model_server import (
    HTML,
    NO_JSON,
    Answer,
    Cut,
    Ending,
    HttpFailure,
    ModelServer,
    Raw,
    Reply,
    Stall,
)

from eureka_agent.errors import SettingsError
from eureka_agent.llm.clients import Access, language_model
from eureka_agent.llm.interface import (
    ChatMessage,
    CompletionRequest,
    FinishReason,
    LanguageModel,
    LanguageModelError,
)

SYSTEM, USER = ChatMessage("system", "you design"), ChatMessage("user", "a reward, please")
REQUEST = CompletionRequest(messages=(SYSTEM, USER))
NAME = "openrouter/some/tiny"
KEY = KEYS["OPENROUTER_API_KEY"]


def opened(server: ModelServer, waits: Waits, name: str = NAME, **options: Any) -> LanguageModel:
    return language_model(name, waits.access(server.base_url, **options))


async def refused_by(
    model: LanguageModel, request: CompletionRequest = REQUEST
) -> LanguageModelError:
    with pytest.raises(LanguageModelError) as caught:
        await model.complete(request)
    assert "\n" not in caught.value.message
    assert "Traceback" not in caught.value.message
    assert "litellm." not in caught.value.message
    assert not any(key in str(caught.value) for key in KEYS.values())
    return caught.value


async def test_a_reply_comes_back_with_its_tokens(model_server: ModelServer, waits: Waits) -> None:
    model_server.answers = [Reply(text="here it is", reasoning="let me see", cached_tokens=90)]
    request = CompletionRequest(messages=(SYSTEM, USER), temperature=0.7, max_tokens=500)
    reply = await opened(model_server, waits).complete(request)
    assert (reply.text, reply.finish_reason) == ("here it is", FinishReason.STOP)
    assert (reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens) == (120, 90, 30)
    asked = model_server.requests[0]
    assert (asked.path, asked.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert (asked.model, asked.system, asked.prompt) == (
        "some/tiny",
        "you design",
        "a reward, please",
    )
    assert (asked.body["temperature"], asked.body["max_tokens"]) == (0.7, 500)


@pytest.mark.parametrize(
    "answer",
    [
        Raw(b"[" * 100_000),
        Raw(b"[" * 100_000, status=400),
        Raw(json.dumps({"error": {"message": "upstream is odd", "code": "\u00b2"}}).encode()),
    ],
    ids=["nested", "nested error", "odd code"],
)
@pytest.mark.usefixtures("no_collection")
async def test_a_body_that_nobody_can_read_is_one_line(
    model_server: ModelServer, waits: Waits, answer: Raw
) -> None:
    model_server.answers = [answer]
    await refused_by(opened(model_server, waits, "deepseek/tiny"))


@pytest.mark.parametrize(
    ("ending", "text", "expected"),
    [
        ("stop", "", FinishReason.STOP),
        ("cut_off", "half of it", FinishReason.CUT_OFF),
        ("refused", "I will not", FinishReason.REFUSED),
        ("filtered", "", FinishReason.REFUSED),
    ],
)
async def test_what_the_model_did_is_data(
    model_server: ModelServer, waits: Waits, ending: Ending, text: str, expected: FinishReason
) -> None:
    model_server.answers = [Reply(text=text, ending=ending)]
    reply = await opened(model_server, waits).complete(REQUEST)
    assert (reply.text, reply.finish_reason) == (text, expected)


@pytest.mark.parametrize(
    "error",
    [
        {"type": "overloaded_error", "message": "Overloaded"},
        {"message": "upstream is down", "code": 502},
        {"message": "oops", "type": "server_error"},
    ],
)
@pytest.mark.parametrize("model", ["deepseek/tiny", "hosted_vllm/tiny", "openrouter/a/tiny"])
async def test_an_error_under_a_good_status_is_asked_again(
    model_server: ModelServer, waits: Waits, model: str, error: dict[str, Any]
) -> None:
    model_server.answers = [Raw(json.dumps({"error": error}).encode()), "ok"]
    assert (await opened(model_server, waits, model).complete(REQUEST)).text == "ok"


async def test_tokens_that_are_not_told_are_unknown(
    model_server: ModelServer, waits: Waits
) -> None:
    """litellm makes zeros of them."""
    model_server.answers = [Reply(text="x" * 200_000, usage=False)]
    reply = await opened(model_server, waits).complete(REQUEST)
    assert (len(reply.text), reply.prompt_tokens, reply.completion_tokens) == (200_000, None, None)


@pytest.mark.parametrize(
    ("status", "message", "tries"),
    [
        (400, "answers with HTTP 400: no, <key>", 1),
        (401, "does not accept the key (HTTP 401)", 1),
        (402, "asks to be paid first (HTTP 402): no", 1),
        (404, "was not found (HTTP 404): no", 1),
        (429, "refuses more requests (HTTP 429): no", 6),
        (500, "answers with HTTP 500: no", 6),
        (503, "answers with HTTP 503: no", 6),
        (529, "answers with HTTP 529: no", 6),
    ],
)
async def test_an_error_is_one_clear_line(
    model_server: ModelServer, waits: Waits, status: int, message: str, tries: int
) -> None:
    model_server.answers = [HttpFailure(status, f"no, {KEY}")]
    error = await refused_by(opened(model_server, waits))
    assert f"{NAME} at {model_server.base_url} {message}" in error.message
    assert len(model_server.requests) == tries


async def test_a_passing_failure_is_waited_out_and_told(
    model_server: ModelServer, waits: Waits
) -> None:
    model_server.answers = [
        HttpFailure(429, retry_after="20"),
        HttpFailure(503, retry_after_ms="1500"),
        Cut(),
        Cut("within"),
        Raw(b'{"error": {"message": "upstream is down", "code": 502}}'),
        "ok",
    ]
    reply = await opened(model_server, waits).complete(REQUEST)
    assert reply.text == "ok"
    assert waits.seconds == [20, 1.5, 8, 16, 30]
    assert waits.told[0] == f"{NAME}: HTTP 429, tried again in 20 s"
    assert "broke off" in waits.told[2]
    assert len(model_server.requests) == 6


async def test_gemini_tells_its_wait_in_the_body(model_server: ModelServer, waits: Waits) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]
    body = {
        "error": {
            "code": 429,
            "message": "quota",
            "status": "RESOURCE_EXHAUSTED",
            "details": details,
        }
    }
    model_server.answers = [Raw(json.dumps(body).encode(), status=429), "ok"]
    await opened(model_server, waits).complete(REQUEST)
    assert waits.seconds == [34]


@pytest.mark.parametrize("answer", [HTML, NO_JSON, Raw(b'{"answer": 42}')])
async def test_what_is_no_reply_is_said_to_be_none(
    model_server: ModelServer, waits: Waits, answer: Answer
) -> None:
    model_server.answers = [answer]
    error = await refused_by(opened(model_server, waits))
    assert "answers, but not as the servers of 'openrouter' do" in error.message
    assert len(model_server.requests) == 1


async def test_a_body_that_confuses_litellm_is_no_traceback(
    model_server: ModelServer, waits: Waits
) -> None:
    model_server.answers = [Raw(b"[1, 2]")]
    await refused_by(opened(model_server, waits))
    assert len(model_server.requests) == 1


async def test_a_spent_quota_is_not_waited_for(model_server: ModelServer, waits: Waits) -> None:
    model_server.answers = [HttpFailure(429, "all spent", code="insufficient_quota")]
    assert "HTTP 429): all spent" in (await refused_by(opened(model_server, waits))).message
    assert len(model_server.requests) == 1


async def test_a_filter_before_the_model_is_a_refusal(
    model_server: ModelServer, waits: Waits
) -> None:
    model_server.answers = [HttpFailure(400, "no", code="content_policy_violation")]
    assert (
        await opened(model_server, waits).complete(REQUEST)
    ).finish_reason is FinishReason.REFUSED


async def test_a_server_that_never_answers_is_asked_twice(
    model_server: ModelServer, waits: Waits
) -> None:
    model_server.answers = [Stall()]
    error = await refused_by(opened(model_server, waits, timeout_s=0.3))
    assert "did not answer within 0.3 s (2 tries)" in error.message
    assert len(model_server.requests) == 2


async def test_an_address_where_nobody_listens_is_given_up_soon(waits: Waits) -> None:
    server = ModelServer()
    server.close()
    error = await refused_by(opened(server, waits))
    assert f"cannot reach {NAME} at {server.base_url}" in error.message
    assert waits.seconds == [0.5, 1]


@pytest.mark.parametrize("answer", [HttpFailure(429, retry_after="600"), Stall()])
async def test_a_cancellation_ends_at_once_what_waits(
    model_server: ModelServer, answer: Answer
) -> None:
    model_server.answers = [answer]
    told: list[str] = []
    access = Access(base_url=model_server.base_url, on_retry=told.append)
    task = asyncio.create_task(language_model(NAME, access).complete(REQUEST))
    while not (told or (isinstance(answer, Stall) and model_server.requests)):
        await asyncio.sleep(0.005)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 1


async def test_no_proxy_stands_between_us_and_this_machine(
    model_server: ModelServer, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, "")
        model_server.answers = ["ok"]
        model = opened(model_server, waits, "deepseek/tiny", timeout_s=2)
        assert (await model.complete(REQUEST)).text == "ok"


async def test_a_setting_that_a_model_does_not_take_is_not_dropped_in_silence(
    model_server: ModelServer, waits: Waits
) -> None:
    request = CompletionRequest(messages=(USER,), temperature=0.3)
    error = await refused_by(opened(model_server, waits, "azure/gpt-5"), request)
    assert "temperature" in error.message
    assert "another --temperature, or without" in error.hint
    assert model_server.requests == []


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("opnai/gpt-5", "did you mean 'openai'?"),
        ("antropic/claude", "did you mean 'anthropic'?"),
        ("deepsek/chat", "did you mean 'deepseek'?"),
        ("qqqqzz/x", "--base-url"),
    ],
)
def test_a_provider_that_nobody_knows(
    model: str, hint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SettingsError, match="there is no provider") as caught:
        language_model(model)
    assert hint in caught.value.hint
    assert "--model offline" in caught.value.hint
    assert "".join(capfd.readouterr()) == ""


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("deepseek/chat", "DEEPSEEK_API_KEY"),
        ("gemini/gemini-2.5-pro", "GEMINI_API_KEY"),
        ("groq/x", "GROQ_API_KEY"),
    ],
)
def test_without_a_key_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, model: str, variable: str
) -> None:
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(SettingsError, match=f"{variable} is not set") as caught:
        language_model(model)
    assert f"export {variable}" in caught.value.hint
    monkeypatch.setenv(variable, "a-key-of-the-test")
    assert language_model(model).name == model


@pytest.mark.parametrize(
    "model", ["ollama/llama3", "ollama_chat/llama3", "hosted_vllm/x", "bedrock/x", "vertex_ai/x"]
)
def test_what_needs_no_key_or_logs_in_otherwise_is_let_through(model: str) -> None:
    assert language_model(model).name == model


async def test_a_server_of_ones_own_needs_no_key(
    model_server: ModelServer, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DEEPSEEK_API_KEY")
    model_server.answers = ["ok"]
    assert (await opened(model_server, waits, "deepseek/tiny").complete(REQUEST)).text == "ok"


GUARDED = """
import asyncio, os, socket, sys, threading, time
connect = socket.socket.connect
def guarded(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1"):
        raise SystemError(f"connects to {address}")
    return connect(self, address)
def resolving(host, *rest, **options):
    if host not in ("127.0.0.1", "localhost", None):
        raise SystemError(f"looks up {host}")
    return getaddrinfo(host, *rest, **options)
socket.socket.connect, getaddrinfo, socket.getaddrinfo = guarded, socket.getaddrinfo, resolving
from eureka_agent.llm.interface import ChatMessage, CompletionRequest
from eureka_agent.llm.clients import Access, language_model
async def main():
    model = language_model("openrouter/some/tiny", Access(base_url=sys.argv[1]))
    request = CompletionRequest(messages=(ChatMessage("user", "hi"),))
    assert "litellm" not in sys.modules and "LITELLM_LOCAL_MODEL_COST_MAP" not in os.environ
    seen_importing = False
    task = asyncio.gather(*(model.complete(request) for _ in range(4)))
    while not task.done():
        await asyncio.sleep(0.01)
        module = sys.modules.get("litellm")
        seen_importing |= module is not None and module.__spec__._initializing
    import litellm
    print([reply.text for reply in await task], os.environ["LITELLM_LOCAL_MODEL_COST_MAP"], seen_importing)
    print(litellm.callbacks, litellm.success_callback, litellm.failure_callback, "FROM_DOTENV" in os.environ)
asyncio.run(main())
"""


@pytest.mark.slow
def test_the_import_asks_nobody_blocks_nobody_and_prints_nothing(
    model_server: ModelServer, tmp_path: Any
) -> None:
    (tmp_path / ".env").write_text("FROM_DOTENV=1\n")
    model_server.answers = ["ok"]
    done = subprocess.run(
        [sys.executable, "-c", GUARDED, model_server.base_url],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["['ok', 'ok', 'ok', 'ok'] True True", "[] [] [] False"]
