"""The real SDK over real HTTP, against a server on loopback: replies, refusals, and every way in which a server fails."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from chat_server import ChatServer, completion, failure

from eureka_agent.errors import SettingsError
from eureka_agent.llm.interface import ChatMessage, CompletionRequest, FinishReason, LanguageModelError, message_key
from eureka_agent.llm.openai_client import OpenAIModel
from eureka_agent.llm.registry import language_model

REQUEST = CompletionRequest(messages=(ChatMessage("system", "you design"), ChatMessage("user", "a reward, please")))
KEY = "sk-secret-of-the-test"


async def test_a_reply_comes_back_with_its_tokens(chat_server: ChatServer) -> None:
    chat_server.answers = [completion("here it is")]
    reply = await language_model("openai/tiny", chat_server.base_url).complete(REQUEST)
    assert (reply.text, reply.finish_reason) == ("here it is", FinishReason.STOP)
    assert (reply.prompt_tokens, reply.completion_tokens, reply.money) == (120, 30, None)
    assert chat_server.paths == ["/v1/chat/completions"]
    assert chat_server.authorizations == [f"Bearer {KEY}"]
    assert chat_server.requests == [
        {
            "model": "tiny",
            "messages": [{"role": "system", "content": "you design"}, {"role": "user", "content": "a reward, please"}],
        }
    ]


async def test_temperature_and_bound_are_sent_when_asked_for(chat_server: ChatServer) -> None:
    chat_server.answers = [completion("ok")]
    request = CompletionRequest(messages=REQUEST.messages, temperature=0.7, max_tokens=500)
    await OpenAIModel("tiny", chat_server.base_url).complete(request)
    assert (chat_server.requests[0]["temperature"], chat_server.requests[0]["max_tokens"]) == (0.7, 500)


@pytest.mark.parametrize(
    ("answer", "text", "reason"),
    [
        (completion("half of it", "length"), "half of it", FinishReason.CUT_OFF),
        (completion(None, "content_filter"), "", FinishReason.REFUSED),
        (completion(None, "stop", refusal="I will not"), "", FinishReason.REFUSED),
        (completion("", "something new"), "", FinishReason.OTHER),
        ((200, {"Content-Type": "application/json"}, b'{"choices": []}'), "", FinishReason.OTHER),
    ],
)
async def test_what_the_model_did_is_data(
    chat_server: ChatServer, answer: tuple[int, dict[str, str], bytes], text: str, reason: FinishReason
) -> None:
    chat_server.answers = [answer]
    reply = await OpenAIModel("tiny", chat_server.base_url).complete(REQUEST)
    assert (reply.text, reply.finish_reason) == (text, reason)


async def test_a_rate_limit_is_waited_out(chat_server: ChatServer) -> None:
    chat_server.answers = [
        failure(429, "slow down", retry_after_ms="10"),
        failure(503, "busy", retry_after_ms="10"),
        completion("ok"),
    ]
    reply = await OpenAIModel("tiny", chat_server.base_url).complete(REQUEST)
    assert reply.text == "ok"
    assert len(chat_server.requests) == 3


@pytest.mark.parametrize(
    ("answer", "message", "hint"),
    [
        (failure(401, f"Incorrect API key provided: {KEY}"), "does not accept the key (HTTP 401)", "OPENAI_API_KEY"),
        (failure(403, "not for you"), "does not accept the key (HTTP 403)", "OPENAI_API_KEY"),
        (failure(404, "The model `tiny` does not exist"), "The model `tiny` does not exist", "the model's name"),
        (failure(400, f"bad field, key {KEY}"), "HTTP 400: bad field, key <key>", "eureka resume"),
        (failure(429, "quota used up", retry_after_ms="1"), "refuses more requests (HTTP 429): quota used up", "quota"),
        (failure(500, "broken", retry_after_ms="1"), "HTTP 500: broken", "eureka resume"),
        ((200, {"Content-Type": "text/html"}, b"<html>a login page</html>"), "not as Chat Completions do", "/v1"),
        ((200, {"Content-Type": "application/json"}, b"{not json"), "not as Chat Completions do", "/v1"),
        ((200, {"Content-Type": "application/json"}, b'{"answer": 42}'), "not as Chat Completions do", "/v1"),
        ((200, {"Content-Type": "application/json"}, b"[1, 2]"), "not as Chat Completions do", "/v1"),
        ((404, {"Content-Type": "text/plain"}, b"no such page"), "HTTP 404", "--base-url"),
    ],
)
async def test_failures_are_one_clear_line(
    chat_server: ChatServer, answer: tuple[int, dict[str, str], bytes], message: str, hint: str
) -> None:
    chat_server.answers = [answer]
    with pytest.raises(LanguageModelError) as caught:
        await OpenAIModel("tiny", chat_server.base_url, max_retries=1).complete(REQUEST)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert "\n" not in caught.value.message
    assert KEY not in str(caught.value)


async def test_an_address_where_nobody_listens(chat_server: ChatServer) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(LanguageModelError, match=f"cannot reach openai/tiny at http://127.0.0.1:{port}/v1") as caught:
        await OpenAIModel("tiny", f"http://127.0.0.1:{port}/v1", max_retries=0).complete(REQUEST)
    assert "check the address" in caught.value.hint


async def test_a_server_that_never_answers_times_out(chat_server: ChatServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        model = OpenAIModel("tiny", f"http://127.0.0.1:{silent.getsockname()[1]}/v1", timeout_s=0.2, max_retries=0)
        with pytest.raises(LanguageModelError, match=r"did not answer within 0\.2 s"):
            await model.complete(REQUEST)


def test_without_a_key_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(SettingsError, match="OPENAI_API_KEY is not set") as caught:
        language_model("openai/gpt-5")
    assert "--model offline" in caught.value.hint


async def test_a_server_of_ones_own_needs_no_key(chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    chat_server.answers = [completion("ok")]
    assert (await language_model("openai/local", chat_server.base_url).complete(REQUEST)).text == "ok"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("gpt-5", "does not say whose it is"),
        ("anthropic/claude", "not to 'anthropic'"),
        ("openai/", "does not say whose it is"),
    ],
)
def test_other_providers_are_refused_with_a_way_out(model: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        language_model(model)
    assert "offline" in caught.value.hint


@pytest.mark.parametrize("address", ["not an address", "ftp://host/v1"])
async def test_a_base_url_that_is_none(chat_server: ChatServer, address: str) -> None:
    with pytest.raises((SettingsError, LanguageModelError)) as caught:
        await OpenAIModel("tiny", address, max_retries=0).complete(REQUEST)
    assert "\n" not in caught.value.message


def test_a_message_key_depends_on_all_that_the_reply_depends_on() -> None:
    other = CompletionRequest(messages=(*REQUEST.messages, ChatMessage("user", "again")))
    keys = {
        message_key("openai/a", REQUEST, 1),
        message_key("openai/b", REQUEST, 1),
        message_key("openai/a", REQUEST, 2),
        message_key("openai/a", other, 1),
    }
    assert len(keys) == 4
    assert message_key("openai/a", CompletionRequest(messages=REQUEST.messages), 1) in keys


def test_the_sdk_is_imported_only_when_it_is_asked_for() -> None:
    script = (
        "import sys, eureka_agent.llm.registry, eureka_agent.designer.llm_designer; sys.exit('openai' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
