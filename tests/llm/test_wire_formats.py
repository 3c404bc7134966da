"""Requests to the byte, pictures, and odd replies in each wire format."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from model_access import KEYS, LITELLM, SYSTEM, USER, WIRES, Waits, refused_by
from model_server import ModelServer, Raw, Reply

from eureka_agent.llm.access import ModelAccess, redact
from eureka_agent.llm.budget import IMAGE_TOKENS, Budget, BudgetSpentError, ModelLimits
from eureka_agent.llm.clients import language_model
from eureka_agent.llm.interface import (
    ChatMessage,
    CompletionRequest,
    FinishReason,
    ImagePart,
    message_key,
    transcript,
)
from eureka_agent.llm.prices import Price

BOUND = CompletionRequest(messages=(SYSTEM, USER), temperature=0.7, max_tokens=500)
BARE = CompletionRequest(messages=(ChatMessage("system", " "), USER))
ASKED = {"role": "user", "content": "a reward, please"}
CACHED = {"type": "text", "text": "you design", "cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("wire", "request_", "body"),
    [
        (
            "chat",
            BOUND,
            {
                "messages": [{"role": "system", "content": "you design"}, ASKED],
                "temperature": 0.7,
                "max_tokens": 500,
            },
        ),
        (
            "responses",
            BOUND,
            {
                "instructions": "you design",
                "input": [ASKED],
                "temperature": 0.7,
                "max_output_tokens": 500,
                "store": False,
            },
        ),
        (
            "messages",
            BOUND,
            {"max_tokens": 500, "system": [CACHED], "messages": [ASKED], "temperature": 0.7},
        ),
        ("messages", BARE, {"max_tokens": 16_000, "messages": [ASKED]}),
        (
            "messages",
            replace(BARE, max_tokens=128_000),  # for which an SDK may want another timeout
            {"max_tokens": 128_000, "messages": [ASKED]},
        ),
    ],
)
async def test_a_request_on_the_wire(
    model_server: ModelServer,
    waits: Waits,
    wire: str,
    request_: CompletionRequest,
    body: dict[str, Any],
) -> None:
    model_server.answers = ["ok"]
    await WIRES[wire].open(model_server, waits).complete(request_)
    assert model_server.paths == [WIRES[wire].path]
    assert model_server.bodies == [{"model": "tiny", **body}]


@pytest.mark.parametrize(
    ("address", "api", "expected"),
    [
        (None, "auto", "/responses"),
        ("https://eu.api.openai.com/v1", "auto", "/responses"),
        (None, "chat", "/chat/completions"),
        ("http://127.0.0.1:1/v1", "auto", "/chat/completions"),
        ("https://api.openai.com.evil.example/v1", "auto", "/chat/completions"),
        ("http://127.0.0.1:1/v1", "responses", "/responses"),
    ],
)
@pytest.mark.parametrize("by", ["flag", "variable"])
def test_which_interface_is_asked(
    monkeypatch: pytest.MonkeyPatch, address: str | None, api: Any, expected: str, by: str
) -> None:
    if by == "variable" and address is not None:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
    access = ModelAccess(base_url=address if by == "flag" else None, api=api)
    model: Any = language_model("openai/tiny", access)
    assert model.wire.path == expected


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
@pytest.mark.parametrize("by", ["flag", "variable"])
async def test_an_address_of_messages_with_and_without_its_version(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, end: str, by: str
) -> None:
    model_server.answers = ["ok"]
    if by == "variable":
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model_server.root + end)
    access = ModelAccess(base_url=model_server.root + end) if by == "flag" else ModelAccess()
    await language_model("anthropic/tiny", access).complete(BARE)
    assert model_server.paths == ["/v1/messages"]


async def test_a_prompts_tokens_are_all_of_them(model_server: ModelServer, waits: Waits) -> None:
    """Messages tell 20 fresh ones, 1000 read and 300 written apart."""
    model_server.answers = [
        Reply(text="ok", prompt_tokens=1320, cached_tokens=1000, cache_write_tokens=300)
    ]
    cost = (await WIRES["messages"].open(model_server, waits).complete(BARE)).cost
    assert (cost.prompt_tokens, cost.cached_tokens, cost.cache_write_tokens) == (1320, 1000, 300)


async def test_a_response_that_failed_on_the_server_is_tried_again(
    model_server: ModelServer, waits: Waits
) -> None:
    def failed(code: str | None) -> Raw:
        error = code and {"code": code, "message": "it broke"}
        body = {"id": "r", "status": "failed", "error": error, "output": []}
        return Raw(json.dumps(body).encode())

    codes = ("server_error", "rate_limit_exceeded", "invalid_prompt")
    model_server.answers = [failed(code) for code in codes]
    model = WIRES["responses"].open(model_server, waits)
    assert (await model.complete(BOUND)).finish_reason is FinishReason.REFUSED
    assert [line.split(",")[0] for line in waits.told] == [
        "openai/tiny: the error 'server_error'",
        "openai/tiny: the error 'rate_limit_exceeded'",
    ]
    model_server.answers = [failed(None)]
    assert "failed: without a reason" in (await refused_by(model)).message


@pytest.mark.parametrize(
    ("content", "text"), [(5, ""), ({"type": "output_text", "text": "a"}, "a")]
)
async def test_a_message_whose_content_is_no_list(
    model_server: ModelServer, waits: Waits, content: object, text: str
) -> None:
    output = [{"type": "message", "content": content}]
    body = {"id": "1", "object": "response", "status": "completed", "output": output}
    model_server.answers = [Raw(json.dumps(body).encode())]
    reply = await WIRES["responses"].open(model_server, waits).complete(BOUND)
    assert (reply.text, reply.finish_reason) == (text, FinishReason.STOP)


@pytest.mark.parametrize("field", ["error", "detail"])
async def test_other_servers_forms_of_an_error(
    model_server: ModelServer, waits: Waits, field: str
) -> None:
    model_server.answers = [Raw(json.dumps({field: "model 'x' not found"}).encode(), status=404)]
    error = await refused_by(WIRES["chat"].open(model_server, waits))
    assert "(HTTP 404): model 'x' not found" in error.message


IMAGES = tuple(ImagePart(b"\xff\xd8" + each.encode(), f"a {each} one") for each in ("red", "blue"))
SEEN = ChatMessage("user", "what do you see?", IMAGES)
SEEING = CompletionRequest(messages=(SYSTEM, SEEN))


@pytest.mark.parametrize("wire", [*WIRES.values(), LITELLM], ids=lambda wire: wire.protocol)
async def test_pictures_come_after_the_text_as_they_were(
    wire: Any, model_server: ModelServer, waits: Waits
) -> None:
    model_server.answers = ["a red and a blue one"]
    assert (await wire.open(model_server, waits).complete(SEEING)).text == "a red and a blue one"
    body = model_server.bodies[-1]
    text, *pictures = (body.get("input") or body["messages"])[-1]["content"]
    assert text["text"] == "what do you see?"
    for part, image in zip(pictures, IMAGES, strict=True):
        found = part.get("source") or part["image_url"]
        if wire.protocol == "Messages":
            assert found["media_type"] == "image/jpeg"
            data = found["data"]
        else:
            url = found["url"] if isinstance(found, dict) else found
            kind, _, data = url.partition(",")
            assert kind == "data:image/jpeg;base64"
        assert base64.b64decode(data) == image.data


def test_another_picture_is_another_request_and_the_record_holds_none() -> None:
    shown = [(), IMAGES[:1], IMAGES[1:], IMAGES]
    requests = [CompletionRequest(messages=(replace(SEEN, images=each),)) for each in shown]
    assert len({message_key("openai/tiny", each) for each in requests}) == 4
    # a description is for the record alone
    renamed = replace(SEEN, images=(replace(IMAGES[0], description="other words"),))
    same = CompletionRequest(messages=(renamed,))
    assert message_key("openai/tiny", same) == message_key("openai/tiny", requests[1])
    text = transcript(SEEING.messages)
    assert f"(picture: a red one, {IMAGES[0].digest[:12]})" in text
    assert IMAGES[0].base64 not in text


async def test_pictures_count_for_the_budget() -> None:
    prices = {"openai/tiny": Price(prompt=Decimal(1), completion=Decimal(1), origin="a test")}
    bounded = replace(SEEING, max_tokens=100)
    text_alone = replace(bounded, messages=(SYSTEM, replace(SEEN, images=())))
    # room for the reply and the words, and for one picture, but not for two
    limits = ModelLimits(tokens=200 + IMAGE_TOKENS)
    await Budget(limits, prices).reserve("openai/tiny", text_alone)
    with pytest.raises(BudgetSpentError):
        await Budget(limits, prices).reserve("openai/tiny", bounded)


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ("OPENAI_API_KEY MY_PROXY_APIKEY AWS_SECRET_ACCESS_KEY HF_TOKEN DB_PASSWORD", "<key>"),
        ("GOOGLE_APPLICATION_CREDENTIALS AWS_BEARER_TOKEN_BEDROCK SNOWFLAKE_JWT", "<key>"),
        ("TOKENIZERS_PARALLELISM KEYBOARD HOME_FOLDER", "abcdefgh12345678"),
    ],
)
def test_values_of_variables_named_like_keys_are_struck(
    names: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in names.split():
        with monkeypatch.context() as patch:
            patch.setenv(name, "abcdefgh12345678")
            assert redact("it is abcdefgh12345678.") == f"it is {shown}."
    monkeypatch.setenv("USE_API_KEY", "true")  # a switch is no key
    assert redact("that is true") == "that is true"
    assert redact(KEYS["OPENAI_API_KEY"]) == "<key>"
