"""Special features of OpenAI's two interfaces."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from eureka_agent.llm.openai_client import OpenAIModel
from model_access import Waits
from model_server import ModelServer, Raw

from eureka_agent.llm.access import Access
from eureka_agent.llm.interface import (
    ChatMessage,
    CompletionRequest,
    FinishReason,
    LanguageModelError,
)

SYSTEM, USER = ChatMessage("system", "you design"), ChatMessage("user", "a reward, please")
BOUND = CompletionRequest(messages=(SYSTEM, USER), temperature=0.7, max_tokens=500)


async def test_chat_completions_on_the_wire(model_server: ModelServer) -> None:
    model_server.answers = ["ok"]
    await OpenAIModel("tiny", Access(base_url=model_server.base_url)).complete(BOUND)
    assert model_server.paths == ["/v1/chat/completions"]
    assert model_server.bodies == [
        {
            "model": "tiny",
            "messages": [
                {"role": "system", "content": "you design"},
                {"role": "user", "content": "a reward, please"},
            ],
            "temperature": 0.7,
            "max_tokens": 500,
        }
    ]


async def test_responses_on_the_wire(model_server: ModelServer) -> None:
    model_server.answers = ["ok"]
    await OpenAIModel("tiny", Access(base_url=model_server.base_url, api="responses")).complete(
        BOUND
    )
    assert model_server.paths == ["/v1/responses"]
    assert model_server.bodies == [
        {
            "model": "tiny",
            "instructions": "you design",
            "input": [{"role": "user", "content": "a reward, please"}],
            "temperature": 0.7,
            "max_output_tokens": 500,
            "store": False,
        }
    ]


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_what_nobody_asked_for_is_not_sent(
    model_server: ModelServer, api: Literal["chat", "responses"]
) -> None:
    model_server.answers = ["ok"]
    await OpenAIModel("tiny", Access(base_url=model_server.base_url, api=api)).complete(
        CompletionRequest(messages=(USER,))
    )
    assert (
        set(model_server.bodies[0]) == {"model", "messages"}
        if api == "chat"
        else {"model", "input", "store"}
    )


@pytest.mark.parametrize(
    ("address", "api", "expected"),
    [
        (None, "auto", "/responses"),
        ("https://api.openai.com/v1", "auto", "/responses"),
        ("https://eu.api.openai.com/v1", "auto", "/responses"),
        (None, "chat", "/chat/completions"),
        ("http://127.0.0.1:1/v1", "auto", "/chat/completions"),
        ("https://api.openai.com.evil.example/v1", "auto", "/chat/completions"),
        ("http://127.0.0.1:1/v1", "responses", "/responses"),
    ],
)
@pytest.mark.parametrize("by", ["flag", "variable"])
def test_which_interface_is_asked(
    monkeypatch: pytest.MonkeyPatch,
    address: str | None,
    api: Literal["auto", "chat", "responses"],
    expected: str,
    by: str,
) -> None:
    if by == "variable" and address is not None:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
    model = OpenAIModel("tiny", Access(base_url=address if by == "flag" else None, api=api))
    assert model.path == expected


async def test_a_response_that_failed_on_the_server_is_tried_again(
    model_server: ModelServer, waits: Waits
) -> None:
    def failed(code: str) -> Raw:
        error = {"code": code, "message": "it broke"}
        return Raw(
            json.dumps({"id": "r", "status": "failed", "error": error, "output": []}).encode()
        )

    model_server.answers = [
        failed("server_error"),
        failed("rate_limit_exceeded"),
        failed("invalid_prompt"),
    ]
    access = Access(
        base_url=model_server.base_url,
        api="responses",
        retries=waits.policy(),
        on_retry=waits.told.append,
    )
    reply = await OpenAIModel("tiny", access).complete(BOUND)
    assert reply.finish_reason is FinishReason.REFUSED
    assert [line.split(",")[0] for line in waits.told] == [
        "openai/tiny: the error 'server_error'",
        "openai/tiny: the error 'rate_limit_exceeded'",
    ]
    model_server.answers = [Raw(b'{"id": "r", "status": "failed", "error": null, "output": []}')]
    with pytest.raises(LanguageModelError, match="failed: without a reason"):
        await OpenAIModel("tiny", access).complete(BOUND)


async def test_a_setting_that_the_model_does_not_take_is_named(model_server: ModelServer) -> None:
    words = "Unsupported value: 'temperature' does not support 0.7 with this model."
    model_server.answers = [Raw(json.dumps({"error": {"message": words}}).encode(), status=400)]
    with pytest.raises(LanguageModelError, match="HTTP 400: Unsupported value") as caught:
        await OpenAIModel("tiny", Access(base_url=model_server.base_url)).complete(BOUND)
    assert "another --temperature, or without" in caught.value.hint


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            {"content": [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]},
            "in parts",
        ),
        ({"content": 42}, ""),
        ({}, ""),
        (None, ""),
    ],
)
async def test_odd_contents_of_compatible_servers(
    model_server: ModelServer, message: dict[str, object] | None, text: str
) -> None:
    body = {
        "choices": [{"finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": "many"},
    }
    model_server.answers = [Raw(json.dumps(body).encode())]
    reply = await OpenAIModel("tiny", Access(base_url=model_server.base_url)).complete(BOUND)
    assert (reply.text, reply.prompt_tokens) == (text, None)


@pytest.mark.parametrize(
    ("content", "text"),
    [(5, ""), (True, ""), (None, ""), ("abc", "abc"), ({"type": "output_text", "text": "a"}, "a")],
)
async def test_a_message_whose_content_is_no_list(
    model_server: ModelServer, content: object, text: str
) -> None:
    body = {"id": "1", "object": "response", "status": "completed"}
    model_server.answers = [
        Raw(json.dumps({**body, "output": [{"type": "message", "content": content}]}).encode())
    ]
    model = OpenAIModel("tiny", Access(base_url=model_server.base_url, api="responses"))
    reply = await model.complete(BOUND)
    assert (reply.text, reply.finish_reason) == (text, FinishReason.STOP)


async def test_a_reply_without_choices_is_empty(model_server: ModelServer) -> None:
    model_server.answers = [Raw(b'{"choices": []}')]
    reply = await OpenAIModel("tiny", Access(base_url=model_server.base_url)).complete(BOUND)
    assert (reply.text, reply.finish_reason) == ("", FinishReason.OTHER)


@pytest.mark.parametrize(
    "body",
    [
        {"error": "model 'x' not found"},
        {"detail": "model 'x' not found"},
        {"message": "model 'x' not found"},
    ],
)
async def test_other_servers_forms_of_an_error(
    model_server: ModelServer, body: dict[str, str]
) -> None:
    model_server.answers = [Raw(json.dumps(body).encode(), status=404)]
    with pytest.raises(LanguageModelError, match=r"\(HTTP 404\): model 'x' not found"):
        await OpenAIModel("tiny", Access(base_url=model_server.base_url)).complete(BOUND)
