"""Pictures reach a model in every wire format, as they were, and are part of what a reply is to."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from model_access import Waits
from model_server import ModelServer
from PIL import Image
from test_clients import SYSTEM, WIRES, Wire

from eureka_agent.llm.access import Access
from eureka_agent.llm.budget import IMAGE_TOKENS, Budget, BudgetSpentError, Limits
from eureka_agent.llm.clients import language_model
from eureka_agent.llm.interface import (
    ChatMessage,
    CompletionRequest,
    ImagePart,
    message_key,
    transcript,
)
from eureka_agent.llm.prices import Price


def picture(colour: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (12, 8), colour).save(file, "JPEG")
    return file.getvalue()


IMAGES = (ImagePart(picture("red"), "a red one"), ImagePart(picture("blue"), "a blue one"))
USER = ChatMessage("user", "what do you see?", IMAGES)
REQUEST = CompletionRequest(messages=(SYSTEM, USER))


def found_in(part: Mapping[str, Any]) -> bytes:
    """The picture of a message's part, in any wire format."""
    if part["type"] == "image":
        assert part["source"]["media_type"] == "image/jpeg"
        return base64.b64decode(part["source"]["data"])
    url = part["image_url"]["url"] if part["type"] == "image_url" else part["image_url"]
    kind, _, data = url.partition(",")
    assert kind == "data:image/jpeg;base64"
    return base64.b64decode(data)


def check(server: ModelServer) -> None:
    """The last request has the text, then both pictures to the byte."""
    body = server.bodies[-1]
    turns = body["input"] if "input" in body else body["messages"]
    text, *pictures = turns[-1]["content"]
    assert text["text"] == "what do you see?"
    assert [found_in(each) for each in pictures] == [each.data for each in IMAGES]
    for each in pictures:
        with Image.open(io.BytesIO(found_in(each))) as image:
            assert image.size == (12, 8)


@pytest.mark.parametrize("name", WIRES)
async def test_pictures_come_after_the_text(
    name: str, model_server: ModelServer, waits: Waits
) -> None:
    wire: Wire = WIRES[name]
    model_server.answers = ["a red and a blue one"]
    reply = await wire.open(model_server, waits).complete(REQUEST)
    assert reply.text == "a red and a blue one"
    check(model_server)


async def test_pictures_go_through_litellm(model_server: ModelServer) -> None:
    model_server.answers = ["a red and a blue one"]
    model = language_model("hosted_vllm/tiny", Access(base_url=model_server.base_url))
    assert (await model.complete(REQUEST)).text == "a red and a blue one"
    check(model_server)


def test_another_picture_is_another_request() -> None:
    plain = CompletionRequest(messages=(SYSTEM, replace(USER, images=())))
    one = CompletionRequest(messages=(SYSTEM, replace(USER, images=IMAGES[:1])))
    other = CompletionRequest(messages=(SYSTEM, replace(USER, images=IMAGES[1:])))
    keys = {message_key("openai/tiny", each) for each in (plain, one, other, REQUEST)}
    assert len(keys) == 4
    # a description is for the record alone
    renamed = replace(USER, images=(replace(IMAGES[0], description="other words"),))
    same = CompletionRequest(messages=(SYSTEM, renamed))
    assert message_key("openai/tiny", same) == message_key("openai/tiny", one)


def test_the_record_names_pictures_and_holds_none() -> None:
    text = transcript(REQUEST.messages)
    assert f"(picture: a red one, {IMAGES[0].digest[:12]})" in text
    assert IMAGES[0].base64 not in text
    assert len(text) < 300


async def test_pictures_count_for_the_budget() -> None:
    price = Price(prompt=Decimal(1), completion=Decimal(1), origin="a test")
    bounded = replace(REQUEST, max_tokens=100)
    text_alone = replace(bounded, messages=(SYSTEM, replace(USER, images=())))
    # room for the reply and the words, and for one picture, but not for two
    limits = Limits(tokens=200 + IMAGE_TOKENS)
    roomy = Budget(limits, {"openai/tiny": price})
    await roomy.reserve("openai/tiny", text_alone)
    with pytest.raises(BudgetSpentError):
        await Budget(limits, {"openai/tiny": price}).reserve("openai/tiny", bounded)
