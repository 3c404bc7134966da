"""Tools in each wire format and in writing: what is sent, and the calls that are read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from model_access import LITELLM, SYSTEM, USER, WIRES, Waits
from model_server import HttpFailure, ModelServer, Raw

from eureka_agent.llm.interface import (
    ChatMessage,
    CompletionRequest,
    FinishReason,
    ToolSpec,
    message_key,
    transcript,
)
from eureka_agent.records import ToolCall

SCHEMA = {
    "type": "object",
    "properties": {"attempt": {"type": "string", "description": "its id"}},
    "required": ["attempt"],
}
LOOK = ToolSpec("look", "Looks.", SCHEMA)
TRY = ToolSpec(
    "try_it",
    "Tries.",
    {"type": "object", "properties": {"source": {"type": "string"}}, "required": ["source"]},
    text_argument="source",
)
CALLS = (
    ToolCall(id="a", name="look", arguments='{"attempt": "1-03"}'),
    ToolCall(id="b", name="look", arguments='{"attempt": "1-04"}'),
)
FIRST = CompletionRequest(messages=(SYSTEM, USER), tools=(LOOK, TRY))
LATER = replace(
    FIRST,
    messages=(
        SYSTEM,
        USER,
        ChatMessage("assistant", "let me see", calls=CALLS),
        ChatMessage("tool", "speed 3", answers="a", tool="look"),
        ChatMessage("tool", "speed 4", answers="b", tool="look"),
    ),
)
CHAT_TURNS = [
    {"role": "system", "content": "you design"},
    {"role": "user", "content": "a reward, please"},
    {
        "role": "assistant",
        "content": "let me see",
        "tool_calls": [
            {
                "id": it.id,
                "type": "function",
                "function": {"name": "look", "arguments": it.arguments},
            }
            for it in CALLS
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "speed 3"},
    {"role": "tool", "tool_call_id": "b", "content": "speed 4"},
]
RESPONSE_TURNS = [
    {"role": "user", "content": "a reward, please"},
    {"role": "assistant", "content": "let me see"},
    *(
        {"type": "function_call", "call_id": it.id, "name": "look", "arguments": it.arguments}
        for it in CALLS
    ),
    {"type": "function_call_output", "call_id": "a", "output": "speed 3"},
    {"type": "function_call_output", "call_id": "b", "output": "speed 4"},
]
MESSAGE_TURNS = [
    {"role": "user", "content": "a reward, please"},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "let me see"},
            {"type": "tool_use", "id": "a", "name": "look", "input": {"attempt": "1-03"}},
            {"type": "tool_use", "id": "b", "name": "look", "input": {"attempt": "1-04"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "speed 3"},
            {
                "type": "tool_result",
                "tool_use_id": "b",
                "content": "speed 4",
                "cache_control": {"type": "ephemeral"},
            },
        ],
    },
]
USAGE = {"prompt_tokens": 9, "completion_tokens": 3}
CHAT_CALL = {
    "choices": [
        {
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "a",
                        "type": "function",
                        "function": {"name": "look", "arguments": '{"attempt": "1-03"}'},
                    }
                ],
            },
        }
    ],
    "usage": USAGE,
}
RESPONSE_CALL = {
    "status": "completed",
    "output": [
        {"type": "reasoning", "summary": []},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "a",
            "name": "look",
            "arguments": '{"attempt": "1-03"}',
        },
    ],
    "usage": {"input_tokens": 9, "output_tokens": 3},
}
MESSAGE_CALL = {
    "type": "message",
    "role": "assistant",
    "stop_reason": "tool_use",
    "content": [
        {"type": "text", "text": "let me see"},
        {"type": "tool_use", "id": "a", "name": "look", "input": {"attempt": "1-03"}},
    ],
    "usage": {"input_tokens": 9, "output_tokens": 3},
}


@pytest.mark.parametrize(
    ("wire", "field", "turns", "reply", "tool"),
    [
        (
            "chat",
            "messages",
            CHAT_TURNS,
            CHAT_CALL,
            {
                "type": "function",
                "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA},
            },
        ),
        (
            "responses",
            "input",
            RESPONSE_TURNS,
            RESPONSE_CALL,
            {
                "type": "function",
                "name": "look",
                "description": "Looks.",
                "parameters": SCHEMA,
                "strict": False,
            },
        ),
        (
            "messages",
            "messages",
            MESSAGE_TURNS,
            MESSAGE_CALL,
            {"name": "look", "description": "Looks.", "input_schema": SCHEMA},
        ),
    ],
)
async def test_calls_and_answers_on_the_wire(
    model_server: ModelServer,
    waits: Waits,
    wire: str,
    field: str,
    turns: list[dict[str, Any]],
    reply: dict[str, Any],
    tool: dict[str, Any],
) -> None:
    model_server.answers = [Raw(json.dumps(reply).encode())]
    completion = await WIRES[wire].open(model_server, waits).complete(LATER)
    (body,) = model_server.bodies
    assert body[field] == turns
    assert body["tools"][0] == tool
    assert [each.name for each in completion.calls] == ["look"]
    assert completion.calls[0].id == "a"
    assert json.loads(completion.calls[0].arguments) == {"attempt": "1-03"}
    assert completion.finish_reason is FinishReason.TOOL_CALL


async def test_calls_through_litellm(model_server: ModelServer, waits: Waits) -> None:
    answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "tiny", **CHAT_CALL}
    model_server.answers = [Raw(json.dumps(answer).encode())]
    completion = await LITELLM.open(model_server, waits).complete(LATER)
    (body,) = model_server.bodies
    assert body["messages"][2]["tool_calls"] == CHAT_TURNS[2]["tool_calls"]
    assert [each.arguments for each in completion.calls] == ['{"attempt": "1-03"}']


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "registry.ollama.ai/library/gemma3:latest does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser'),
        (404, "No endpoints found that support tool use"),
        (500, "tools param requires --jinja flag"),
    ],
)
async def test_a_server_that_refuses_tools_gets_them_in_writing(
    model_server: ModelServer, waits: Waits, status: int, words: str
) -> None:
    written = 'I look.\n\n```call\nlook {"attempt": "1-03"}\n```\n'
    model_server.answers = [HttpFailure(status, words), written]
    model = WIRES["chat"].open(model_server, waits)
    completion = await model.complete(LATER)
    refused, body = model_server.bodies
    assert "tools" in refused
    assert "tools" not in body
    system, _, turn, answers = body["messages"]
    assert system["content"].startswith("you design")
    assert "`look`: Looks. Arguments: attempt: its id" in system["content"]
    assert '```call\nlook {"attempt": "1-04"}\n```' in turn["content"]
    assert answers["role"] == "user"
    assert "`look` answers:\n\n```\nspeed 3\n```" in answers["content"]
    assert [(each.name, each.arguments) for each in completion.calls] == [
        ("look", '{"attempt": "1-03"}')
    ]
    assert waits.told == ["openai/tiny refuses tools: asked in another form"]


async def test_code_is_written_as_it_is(model_server: ModelServer, waits: Waits) -> None:
    code = 'X = "\\n"\n\n\ndef f(a):\n    return a\n'
    model_server.answers = [f"```call\ntry_it\n{code}```\n\n```call\nlook not json\n```"]
    model = WIRES["chat"].open(model_server, waits, tools="written")
    completion = await model.complete(FIRST)
    assert "tools" not in model_server.bodies[0]
    tried, looked = completion.calls
    assert json.loads(tried.arguments) == {"source": code}
    assert (looked.name, looked.arguments) == ("look", "not json")


async def test_a_block_is_no_call_where_there_are_no_tools(
    model_server: ModelServer, waits: Waits
) -> None:
    model_server.answers = ["```call\nlook {}\n```"]
    model = WIRES["chat"].open(model_server, waits)
    assert (await model.complete(replace(FIRST, tools=()))).calls == ()


def test_calls_and_tools_are_part_of_the_key_and_of_the_record() -> None:
    other = (CALLS[0], CALLS[1].model_copy(update={"arguments": '{"attempt": "1-05"}'}))
    messages = list(LATER.messages)
    messages[2] = replace(messages[2], calls=other)
    keys = {
        message_key("m", each)
        for each in (
            FIRST,
            replace(FIRST, tools=()),
            LATER,
            replace(LATER, messages=tuple(messages)),
        )
    }
    assert len(keys) == 4
    # ids are drawn anew by a server that is asked again
    ids = tuple(each.model_copy(update={"id": f"{each.id}2"}) for each in CALLS)
    messages[2] = replace(messages[2], calls=ids)
    assert message_key("m", replace(LATER, messages=tuple(messages))) == message_key("m", LATER)
    assert '(calls look {"attempt": "1-03"})' in transcript(LATER.messages)
