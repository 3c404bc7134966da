"""Special features of litellm, over real HTTP; the last test looks at its import in a process of its
own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from model_access import LITELLM, REQUEST, USER, Patient, Waits, refused_by
from model_server import HTML, NO_JSON, Answer, ModelServer, Raw

from eureka_agent.errors import SettingsError
from eureka_agent.llm.clients import language_model
from eureka_agent.llm.interface import CompletionRequest


def opened(server: ModelServer, waits: Waits, name: str = LITELLM.model) -> Patient:
    return Patient(name, waits.access(server.base_url))


@pytest.mark.parametrize(
    "answer",
    [
        Raw(b"[" * 100_000),
        Raw(json.dumps({"error": {"message": "upstream is odd", "code": "\u00b2"}}).encode()),
    ],
    ids=["nested", "odd code"],
)
@pytest.mark.usefixtures("no_collection")
async def test_a_body_that_nobody_can_read_is_one_line(
    model_server: ModelServer, waits: Waits, answer: Raw
) -> None:
    model_server.answers = [answer]
    await refused_by(opened(model_server, waits, "deepseek/tiny"))
    assert len(model_server.requests) == 1


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


async def test_a_setting_that_a_model_does_not_take_is_not_dropped_in_silence(
    model_server: ModelServer, waits: Waits
) -> None:
    request = CompletionRequest(messages=(USER,), temperature=0.3)
    error = await refused_by(opened(model_server, waits, "azure/gpt-5"), request)
    assert "temperature" in error.message
    assert "another --temperature, or without" in error.hint
    assert model_server.requests == []


@pytest.mark.parametrize(
    ("model", "hint"), [("opnai/gpt-5", "did you mean 'openai'?"), ("qqqqzz/x", "--base-url")]
)
def test_a_provider_that_nobody_knows(
    model: str, hint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SettingsError, match="there is no provider") as caught:
        language_model(model)
    assert hint in caught.value.hint
    assert "--model offline" in caught.value.hint
    assert "".join(capfd.readouterr()) == ""


@pytest.mark.parametrize(("model", "variable"), [("deepseek/chat", "DEEPSEEK_API_KEY")])
def test_without_a_key_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, model: str, variable: str
) -> None:
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(SettingsError, match=f"{variable} is not set") as caught:
        language_model(model)
    assert f"export {variable}" in caught.value.hint
    monkeypatch.setenv(variable, "a-key-of-the-test")
    assert language_model(model).name == model


@pytest.mark.parametrize("model", ["ollama/llama3", "bedrock/x"])
def test_what_needs_no_key_or_logs_in_otherwise_is_let_through(model: str) -> None:
    assert language_model(model).name == model


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
from eureka_agent.llm.access import ModelAccess
from eureka_agent.llm.interface import ChatMessage, CompletionRequest
from eureka_agent.llm.clients import language_model
async def main():
    model = language_model("openrouter/some/tiny", ModelAccess(base_url=sys.argv[1]))
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
