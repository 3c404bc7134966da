"""Replies in the forms of real servers: their text, their reasoning, and why nothing came."""

from __future__ import annotations

import json
from typing import Any

import pytest
from model_access import REQUEST, WIRES, Waits
from model_server import ModelServer, Raw

from eureka_agent.llm.interface import Completion, FinishReason
from eureka_agent.llm.spoken import why_no_answer
from eureka_agent.records import Message

CODE = "```python\ndef compute_reward(x):\n    return x, {}\n```"
THOUGHT = f"I think.\n\n{CODE}"
USAGE = {"prompt_tokens": 900, "completion_tokens": 2000, "total_tokens": 2900}
STOP, CUT_OFF, REFUSED = FinishReason.STOP, FinishReason.CUT_OFF, FinishReason.REFUSED
TOOL_CALL, ALONE = FinishReason.TOOL_CALL, FinishReason.REASONING_ALONE


def chat(finish: str | None, **message: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    return {"id": "c", "object": "chat.completion", "model": "x", "choices": [choice]} | {
        "usage": USAGE
    }


def messages(stop: str, *content: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 900, "output_tokens": 300}
    body = {"id": "m", "type": "message", "role": "assistant", "model": "x", "usage": usage}
    return {**body, "content": list(content), "stop_reason": stop, "stop_sequence": None}


def responses(*output: dict[str, Any], status: str = "completed", why: str = "") -> dict[str, Any]:
    details = {"reason": why} if why else None
    body = {"id": "r", "object": "response", "model": "x", "created_at": 1, "status": status}
    return {**body, "incomplete_details": details, "output": list(output)}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def said(*words: str, kind: str = "output_text") -> dict[str, Any]:
    parts = [{"type": kind, "text": each, "annotations": []} for each in words]
    return {"id": "m", "type": "message", "role": "assistant", "content": parts}


THINKING = {"type": "thinking", "thinking": THOUGHT, "signature": "s"}
REDACTED = {"type": "redacted_thinking", "data": "x"}
USE = {"type": "tool_use", "id": "t", "name": "run", "input": {}}
SUMMARY = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": THOUGHT}]}
FUNCTION = {"type": "function_call", "id": "f", "call_id": "c", "name": "run", "arguments": "{}"}
REFUSAL = {"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}

SILENT = [
    # vLLM, SGLang, llama.cpp, LM Studio, Ollama, OpenRouter and what litellm makes of them
    ("chat", chat("length", content=None, reasoning_content=THOUGHT), CUT_OFF, THOUGHT),
    ("chat", chat("length", content="", reasoning=THOUGHT), CUT_OFF, THOUGHT),
    ("chat", chat("stop", content=None, reasoning_content=THOUGHT), ALONE, THOUGHT),
    (
        "chat",
        chat("stop", content="", reasoning_details=[{"type": "reasoning.text", "text": THOUGHT}]),
        ALONE,
        THOUGHT,
    ),
    # Mistral's own form
    ("chat", chat("stop", content=[{"type": "thinking", "thinking": [text("mm")]}]), ALONE, "mm"),
    ("chat", chat("content_filter", content=None), REFUSED, ""),
    ("messages", messages("end_turn", THINKING), ALONE, THOUGHT),
    ("messages", messages("refusal"), REFUSED, ""),
    ("messages", messages("tool_use", USE), TOOL_CALL, ""),
    ("messages", messages("end_turn", REDACTED), STOP, ""),
    ("responses", responses(SUMMARY), ALONE, THOUGHT),
    (
        "responses",
        responses(SUMMARY, status="incomplete", why="max_output_tokens"),
        CUT_OFF,
        THOUGHT,
    ),
    ("responses", responses(), STOP, ""),
]
WORDS = {
    CUT_OFF: "--reply-tokens",
    REFUSED: "refused",
    TOOL_CALL: "called a tool",
    ALONE: "reasoning alone",
    STOP: "is empty",
    FinishReason.OTHER: "is empty",
}


async def read(server: ModelServer, waits: Waits, wire: str, body: dict[str, Any]) -> Completion:
    server.answers = [Raw(json.dumps(body).encode())]
    return await WIRES[wire].open(server, waits).complete(REQUEST)


def as_stored(reply: Completion) -> Message:
    return Message(
        role="designer",
        model="x",
        request="",
        reply=reply.text,
        finish_reason=reply.finish_reason.value,
    )


@pytest.mark.parametrize(("wire", "body", "ending", "reasoning"), SILENT)
async def test_a_reply_without_text_says_why_and_keeps_the_reasoning(
    model_server: ModelServer,
    waits: Waits,
    wire: str,
    body: dict[str, Any],
    ending: FinishReason,
    reasoning: str,
) -> None:
    reply = await read(model_server, waits, wire, body)
    assert (reply.text.strip(), reply.finish_reason, reply.reasoning) == ("", ending, reasoning)
    assert WORDS[ending] in why_no_answer(as_stored(reply))[0]
    assert len(model_server.requests) == 1


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        ("chat", chat("stop", content=None, refusal="I will not.")),
        ("responses", responses(SUMMARY, REFUSAL)),
    ],
)
async def test_the_words_of_a_refusal_are_its_text(
    model_server: ModelServer, waits: Waits, wire: str, body: dict[str, Any]
) -> None:
    reply = await read(model_server, waits, wire, body)
    assert (reply.text, reply.finish_reason) == ("I will not.", REFUSED)
    assert "'I will not.'" in why_no_answer(as_stored(reply))[0]


@pytest.mark.parametrize(
    ("wire", "body", "count"),
    [
        ("chat", chat("stop", content="a"), 0),
        ("chat", chat("stop", content="a", reasoning="hm"), None),
        (
            "chat",
            chat("stop", content="a", reasoning="hm")
            | {"usage": USAGE | {"completion_tokens_details": {"reasoning_tokens": 7}}},
            7,
        ),
        (
            "responses",
            responses(SUMMARY, said("a"))
            | {
                "usage": {
                    "input_tokens": 9,
                    "output_tokens": 9,
                    "output_tokens_details": {"reasoning_tokens": 7},
                }
            },
            7,
        ),
        ("messages", messages("end_turn", THINKING, text("a")), None),
    ],
)
async def test_tokens_of_the_reasoning_are_counted_where_they_are_told(
    model_server: ModelServer, waits: Waits, wire: str, body: dict[str, Any], count: int | None
) -> None:
    assert (await read(model_server, waits, wire, body)).cost.reasoning_tokens == count


DRAFT = "A first try:\n```python\ndraft = 1\n```"


@pytest.mark.parametrize(
    ("wire", "body", "expected"),
    [
        ("messages", messages("end_turn", text(DRAFT), THINKING, text(CODE)), f"{DRAFT}\n{CODE}"),
        # a citation splits a sentence
        (
            "messages",
            messages("end_turn", text("It pays "), text("for height", citations=[]), text(".")),
            "It pays for height.",
        ),
        # a part that ends within a block goes on in the next one
        ("messages", messages("end_turn", text("```python\nx = "), text("1\n```")), None),
        ("chat", chat("stop", content=[text(DRAFT), text(CODE)]), f"{DRAFT}\n{CODE}"),
        (
            "chat",
            chat("stop", content=[{"type": "thinking", "thinking": [text(DRAFT)]}, text(CODE)]),
            CODE,
        ),
        ("responses", responses(said(DRAFT), SUMMARY, said(CODE)), f"{DRAFT}\n{CODE}"),
    ],
)
async def test_parts_of_a_text_keep_fences_on_their_own_lines(
    model_server: ModelServer, waits: Waits, wire: str, body: dict[str, Any], expected: str | None
) -> None:
    reply = await read(model_server, waits, wire, body)
    assert reply.text == ("```python\nx = 1\n```" if expected is None else expected)
    assert reply.finish_reason is STOP
