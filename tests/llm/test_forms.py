"""Servers that refuse a form of a request, and say so: they are asked in another one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from model_access import REQUEST, WIRES, Patient, Waits
from model_server import Asked, HttpFailure, ModelServer

from eureka_agent.llm.interface import LanguageModelError, message_key

BOUND = replace(REQUEST, max_tokens=500)
MERGED = "you design\n\na reward, please"


def refusing(refuses: Callable[[Asked], bool], message: str, status: int = 400) -> Any:
    """A server that answers those requests with an error."""
    return lambda asked: HttpFailure(status, message) if refuses(asked) else "ok"


def has(name: str) -> Callable[[Asked], bool]:
    return lambda asked: name in asked.body


@pytest.mark.parametrize(
    "words",
    [
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
        " 'max_completion_tokens' instead.",
        "Extra inputs are not permitted, field: 'max_tokens'",
    ],
)
async def test_the_bound_on_tokens_has_another_name(
    model_server: ModelServer, waits: Waits, words: str
) -> None:
    model_server.answers = refusing(has("max_tokens"), words)
    model = WIRES["chat"].open(model_server, waits)
    assert [(await model.complete(BOUND)).text for _ in range(2)] == ["ok", "ok"]
    first, second, third = model_server.bodies
    assert first["max_tokens"] == 500
    assert second["max_completion_tokens"] == third["max_completion_tokens"] == 500
    assert "max_tokens" not in second
    assert waits.seconds == [], "it is asked at once"
    assert waits.told == ["openai/tiny refuses max_tokens: asked in another form"]


@pytest.mark.parametrize(
    "words", ["max_tokens is too large: 500. This model supports at most 100 completion tokens"]
)
async def test_a_bound_that_is_too_large_is_told(
    model_server: ModelServer, waits: Waits, words: str
) -> None:
    """Under another name it might be ignored."""
    model_server.answers = [HttpFailure(400, words)]
    model = WIRES["chat"].open(model_server, waits)
    with pytest.raises(LanguageModelError, match="HTTP 400") as caught:
        await model.complete(BOUND)
    assert "--reply-tokens" in caught.value.hint
    assert len(model_server.requests) == 1


async def test_a_bound_that_is_refused_under_both_names_is_told(
    model_server: ModelServer, waits: Waits
) -> None:
    both = "max_tokens and max_completion_tokens are not supported"
    model_server.answers = [HttpFailure(400, both)]
    model = WIRES["chat"].open(model_server, waits)
    for tries in (2, 3):
        with pytest.raises(LanguageModelError, match="not supported") as caught:
            await model.complete(BOUND)
        assert "--reply-tokens, or without" in caught.value.hint
        assert len(model_server.requests) == tries


SYSTEM_REFUSALS = [
    # templates of Gemma and Mistral in vLLM, llama.cpp (500) and LM Studio; Gemini; Bedrock; OpenAI
    (400, "System role not supported"),
    (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    (400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."),
]


@pytest.mark.parametrize(("status", "words"), SYSTEM_REFUSALS)
@pytest.mark.parametrize("wire", ["chat", "responses", "messages", "litellm"])
async def test_a_system_message_goes_before_the_first_turn(
    model_server: ModelServer, waits: Waits, wire: str, status: int, words: str
) -> None:
    model_server.answers = refusing(lambda asked: bool(asked.system), words, status)
    if wire == "litellm":
        model = Patient("deepseek/tiny", waits.access(model_server.base_url))
    else:
        model = WIRES[wire].open(model_server, waits)
    key = message_key(model.name, REQUEST)
    replies = await asyncio.gather(*(model.complete(REQUEST) for _ in range(3)))
    assert [each.text for each in replies] == ["ok"] * 3
    assert [asked.turns for asked in model_server.requests if not asked.system] == [
        [("user", MERGED)]
    ] * 3
    assert len(model_server.requests) <= 6
    assert message_key(model.name, REQUEST) == key
    assert len(waits.told) == 1
    assert waits.seconds == []


@pytest.mark.parametrize(("wire", "name"), [("responses", "store"), ("messages", "cache_control")])
async def test_what_is_not_needed_is_left_out(
    model_server: ModelServer, waits: Waits, wire: str, name: str
) -> None:
    model_server.answers = refusing(
        lambda asked: f'"{name}"' in json.dumps(asked.body),
        f"{name}: Extra inputs are not permitted",
    )
    assert (await WIRES[wire].open(model_server, waits).complete(REQUEST)).text == "ok"
    assert len(model_server.requests) == 2
    assert model_server.requests[1].system == "you design"


async def test_a_temperature_that_a_person_chose_is_not_left_out(
    model_server: ModelServer, waits: Waits
) -> None:
    words = "Unsupported parameter: 'temperature' is not supported with this model."
    model_server.answers = refusing(has("temperature"), words)
    model = WIRES["chat"].open(model_server, waits)
    with pytest.raises(LanguageModelError, match="temperature") as caught:
        await model.complete(replace(REQUEST, temperature=0.7))
    assert "another --temperature, or without" in caught.value.hint
    assert len(model_server.requests) == 1
