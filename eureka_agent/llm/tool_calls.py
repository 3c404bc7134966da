"""Tools that a model may call: their forms in the wire formats, and a written form for servers and
programs that know none. In that form a call is a code block, and an answer the user's next turn."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from eureka_agent.llm.interface import ChatMessage, Completion, CompletionRequest, ToolSpec
from eureka_agent.llm.spoken import Block, split, spoken
from eureka_agent.markup import fenced
from eureka_agent.records import ToolCall

BLOCK = "call"
"""Language of a written call's code block."""
MOST_CALLS = 16
"""Most calls of a reply that are read."""
LONGEST_ARGUMENTS = 60_000
_LONGEST_NAME = 100


def tool_call(number: int, id_: Any, name: Any, arguments: Any) -> ToolCall:
    """A call as a server sent it. `number` stands for a missing id. Servers send arguments as JSON
    or as an object."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return ToolCall(
        id=id_ if isinstance(id_, str) and id_ else f"call-{number}",
        name=(name if isinstance(name, str) else "")[:_LONGEST_NAME],
        arguments=text.encode("utf-8", "replace").decode()[:LONGEST_ARGUMENTS] or "{}",
    )


# ── the wire formats ──────────────────────────────────────────────────────────────────────────────


def chat_tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {"name": it.name, "description": it.doc, "parameters": dict(it.schema)},
        }
        for it in tools
    ]


def responses_tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "name": it.name,
            "description": it.doc,
            "parameters": dict(it.schema),
            "strict": False,  # strict schemas know no optional arguments
        }
        for it in tools
    ]


def messages_tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    return [
        {"name": it.name, "description": it.doc, "input_schema": dict(it.schema)} for it in tools
    ]


def with_chat_calls(turn: dict[str, Any], message: ChatMessage) -> list[dict[str, Any]]:
    """A turn of Chat Completions with its calls, or as the answer to one."""
    if message.role == "tool":
        return [{"role": "tool", "tool_call_id": message.answers, "content": message.content}]
    if message.calls:
        turn["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.calls
        ]
    return [turn]


def with_response_calls(turn: dict[str, Any], message: ChatMessage) -> list[dict[str, Any]]:
    """Items of Responses. Calls go back without the ids of items, which belong to reasoning that is
    not stored."""
    if message.role == "tool":
        output = {"call_id": message.answers, "output": message.content}
        return [{"type": "function_call_output", **output}]
    calls = [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }
        for call in message.calls
    ]
    return [*([turn] if message.content.strip() or not calls else []), *calls]


def with_message_calls(turn: dict[str, Any], message: ChatMessage) -> list[dict[str, Any]]:
    """A turn of Messages, of which `joined_results` joins the answers."""
    if message.role == "tool":
        result = {"tool_use_id": message.answers, "content": message.content}
        return [{"role": "user", "content": [{"type": "tool_result", **result}]}]
    if message.calls:
        text = [{"type": "text", "text": message.content}] if message.content.strip() else []
        turn["content"] = text + [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_of(call)}
            for call in message.calls
        ]
    return [turn]


def joined_results(turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The turns of Messages, which want all answers to a turn in one."""

    def is_result(turn: dict[str, Any]) -> bool:
        content = turn["content"]
        return isinstance(content, list) and content[0].get("type") == "tool_result"

    joined: list[dict[str, Any]] = []
    for together, group in itertools.groupby(turns, is_result):
        if together:
            parts = [part for turn in group for part in turn["content"]]
            joined.append({"role": "user", "content": parts})
        else:
            joined += group
    return joined


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments by name; empty where they are no object."""
    try:
        found = json.loads(call.arguments, strict=False)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


# ── the written form ──────────────────────────────────────────────────────────────────────────────


def written(request: CompletionRequest) -> CompletionRequest:
    """The request with its tools described in its system message, and calls and answers as text."""
    if not request.tools:
        return request
    about = _description(request.tools)
    messages: list[ChatMessage] = []
    for is_answer, group in itertools.groupby(request.messages, lambda each: each.role == "tool"):
        if is_answer:
            texts = (f"`{each.tool}` answers:\n\n{fenced(each.content)}" for each in group)
            messages.append(ChatMessage("user", "\n\n".join(texts)))
        else:
            messages += [_plain(each, request.tools) for each in group]
    if messages and messages[0].role == "system":
        system = f"{messages[0].content.rstrip()}\n\n{about}"
        messages[0] = replace(messages[0], content=system)
    else:
        messages.insert(0, ChatMessage("system", about))
    return replace(request, messages=tuple(messages), tools=())


def _plain(message: ChatMessage, tools: Sequence[ToolSpec]) -> ChatMessage:
    """A turn whose calls stand in its text: those that are not written there are added."""
    if not message.calls:
        return message
    content = message.content
    if not _written_calls(content, tools):
        blocks = (fenced(f"{each.name} {each.arguments}", BLOCK) for each in message.calls)
        content = "\n\n".join(filter(None, (content.strip(), *blocks)))
    return replace(message, content=content, calls=())


def _description(tools: Sequence[ToolSpec]) -> str:
    lines = []
    for tool in tools:
        properties = tool.schema.get("properties", {})
        required = tool.schema.get("required", ())
        arguments = ", ".join(
            f"{name}{'' if name in required else ' (optional)'}: {about.get('description', '')}"
            for name, about in properties.items()
        )
        lines.append(
            f"- `{tool.name}`: {tool.doc} {f'Arguments: {arguments}' if arguments else ''}"
        )
    code = next((each for each in tools if each.text_argument), None)
    example = next((each for each in tools if not each.text_argument), None)
    parts = [
        f"# Tools\n\nCall one by a code block of the language `{BLOCK}`: its name, then its"
        " arguments as one JSON object. Several blocks in a reply are several calls. A reply with"
        " a call holds nothing else; the answers come in the next turn.",
        "\n".join(line.rstrip() for line in lines),
    ]
    if example is not None:
        required = example.schema.get("required", ())
        sample = json.dumps(dict.fromkeys(required, "…"), ensure_ascii=False)
        parts.append(f"For example:\n\n{fenced(f'{example.name} {sample}', BLOCK)}")
    if code is not None:
        parts.append(
            f"`{code.name}` takes its {code.text_argument} as it is, from the block's second line"
            " on."
        )
    return "\n\n".join(parts) + "\n"


def with_written_calls(completion: Completion, tools: Sequence[ToolSpec]) -> Completion:
    """The completion with the calls that its text holds, unless it has others."""
    if completion.calls or not tools:
        return completion
    return replace(completion, calls=tuple(_written_calls(completion.text, tools)))


def _written_calls(text: str, tools: Sequence[ToolSpec]) -> list[ToolCall]:
    blocks = [each for each in split(spoken(text).text) if isinstance(each, Block)]
    bodies = [each.body for each in blocks if each.language == BLOCK and each.body.strip()]
    return [_written_call(place, body, tools) for place, body in enumerate(bodies[:MOST_CALLS])]


def _written_call(place: int, body: str, tools: Sequence[ToolSpec]) -> ToolCall:
    head, _, rest = body.strip("\n").partition("\n")
    name, _, arguments = head.strip().partition(" ")
    name = name.rstrip(":(")
    text_of: dict[str, str] = {each.name: each.text_argument for each in tools}
    given = text_of.get(name, "")
    if given and rest.strip():
        call = ToolCall(id="", name="", arguments=arguments.strip() or "{}")
        found = {given: f"{rest.strip()}\n", **arguments_of(call)}
        arguments = json.dumps(found, ensure_ascii=False)
    else:
        arguments = f"{arguments}\n{rest}".strip()
    return tool_call(place + 1, None, name, arguments)
