"""Reading of replies in the wire formats, whose values may be of any type."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from eureka_agent.llm import failures, tool_calls
from eureka_agent.llm.interface import (
    LONGEST_REPLY_TOKENS,
    ChatMessage,
    Completion,
    CompletionRequest,
    FinishReason,
)
from eureka_agent.records import Cost, ToolCall, known_tokens

BOUNDS = ("max_tokens", "max_completion_tokens")
"""Names of the bound on tokens: newer models refuse the first, older servers know no other."""
SYSTEM = "a system message"
TOOLS = "tools"
"""Native tools: a server that refuses them gets them in writing."""
OPTIONAL = ("store", "cache_control")
"""Parameters that are left out where they are refused."""
_LONGEST_WORDS = 4_000
_OTHER_REASONS = (401, 402, 403, 404, 408, 409, 429)
_REFUSED = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|unexpected|extra[ _](?:inputs|fields|forbidden)"
    r"|(?:not|n['’]t) (?:support|permit|allow|accept|recogni)|invalid (?:param|arg|field|property)",
    re.IGNORECASE,
)
_TOOLS_REFUSED = re.compile(
    r"\btools?\b.{0,80}(?:support|require|not |n['’]t |unknown|invalid|unexpected|extra)"
    r"|(?:support|require|unsupported|unknown|unexpected|extra).{0,80}\btools?\b",
    re.IGNORECASE | re.DOTALL,
)
_NOT_OF_TOOLS = (401, 402, 403, 408, 409, 429)
"""A missing page may mean that no server behind a router takes tools."""
_SYSTEM = r"(?:system|developer)"
_NOT = r"(?:\bnot|n['’]t|unsupported|unexpected|unknown|invalid)\b"
_SYSTEM_REFUSED = re.compile(
    r"roles must alternate|only user and assistant roles|should be 'user' or 'assistant'"
    rf"|\b{_SYSTEM}\W{{1,3}}(?:role|message|prompt|instruction)s?\b.{{0,40}}{_NOT}"
    rf"|{_NOT}.{{0,40}}\b{_SYSTEM}\W{{1,3}}(?:role|message|prompt|instruction)"
    rf"|\brole\b.{{0,60}}{_NOT}.{{0,40}}\b{_SYSTEM}\b|{_NOT}.{{0,20}}\brole\W{{1,4}}{_SYSTEM}\b"
    rf"|\brole\W{{1,4}}{_SYSTEM}\b.{{0,40}}{_NOT}",
    re.IGNORECASE | re.DOTALL,
)
"""Chat templates of Gemma, of early Mistral models, and of OpenAI's first reasoning models."""


class Forms:
    """The forms in which one model's server takes requests, as far as it has said so."""

    def __init__(self, *bounds: str) -> None:
        """`bounds`: names of the bound on tokens, each sent once those before it are refused. The
        last one is kept, since a reply without a bound costs what nobody has allowed."""
        self._bounds = bounds
        self.refused: frozenset[str] = frozenset()

    def write_tools(self) -> None:
        """Give tools in writing alone."""
        self.refused |= {TOOLS}

    def of(self, request: CompletionRequest) -> CompletionRequest:
        """The request with its tools and its system message where the server takes them."""
        if TOOLS in self.refused:
            request = tool_calls.written(request)
        if SYSTEM not in self.refused or not request.turns or not request.system.strip():
            return request
        first, *others = request.turns
        first = replace(first, content=f"{request.system}\n\n{first.content}")
        return replace(request, messages=(first, *others))

    @property
    def bound(self) -> str:
        return next(name for name in self._bounds if name not in self.refused)

    def learn(self, failure: failures.RequestFailedError, known: frozenset[str]) -> str:
        """Take in a refusal of a form, by a server that was asked without the forms in `known`.
        Returns the refused form; empty for another failure."""
        if failure.trouble not in (failures.Trouble.STATUS, failures.Trouble.OTHER):
            return ""
        words, found = failure.words[:_LONGEST_WORDS], ""
        if failure.status not in _NOT_OF_TOOLS and _TOOLS_REFUSED.search(words):
            found = TOOLS
        elif failure.status in _OTHER_REASONS:
            return ""
        elif _SYSTEM_REFUSED.search(words):
            found = SYSTEM
        elif _REFUSED.search(words):
            names = (*self._bounds[:-1], *OPTIONAL)
            found = next((name for name in names if re.search(rf"\b{name}\b", words)), "")
        if not found or found in known:
            return ""
        self.refused |= {found}
        return found


def chat_body(model: str, request: CompletionRequest, forms: Forms) -> dict[str, Any]:
    """Body for Chat Completions, also of litellm."""
    messages = _turns(
        request.messages,
        "text",
        lambda url, _: {"type": "image_url", "image_url": {"url": url}},
        tool_calls.with_chat_calls,
    )
    tools = {"tools": tool_calls.chat_tools(request.tools)} if request.tools else {}
    return {"model": model, "messages": messages, **tools} | _options(request, forms.bound)


def responses_body(model: str, request: CompletionRequest, forms: Forms) -> dict[str, Any]:
    """Body for Responses; nothing is stored on the server, as the archive has it."""
    turns = _turns(
        request.turns,
        "input_text",
        lambda url, _: {"type": "input_image", "image_url": url},
        tool_calls.with_response_calls,
    )
    return {
        "model": model,
        "input": turns,
        **({} if "store" in forms.refused else {"store": False}),
        **({"instructions": request.system} if request.system else {}),
        **({"tools": tool_calls.responses_tools(request.tools)} if request.tools else {}),
        **_options(request, "max_output_tokens"),
    }


def messages_body(model: str, request: CompletionRequest, forms: Forms) -> dict[str, Any]:
    """Body for Messages, which demand a bound on the reply."""
    turns = tool_calls.joined_results(
        _turns(
            request.turns,
            "text",
            lambda _, source: {"type": "image", "source": source},
            tool_calls.with_message_calls,
        )
    )
    body: dict[str, Any] = {"model": model, "messages": turns, "max_tokens": LONGEST_REPLY_TOKENS}
    # all requests of a run begin alike: the part before this mark is cached for minutes
    takes_mark = "cache_control" not in forms.refused
    cached = {"cache_control": {"type": "ephemeral"}} if takes_mark else {}
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, **cached}]
    if request.tools:
        body["tools"] = tool_calls.messages_tools(request.tools)
        if cached and turns:  # the conversation goes on from here
            last = turns[-1]["content"]
            parts = last if isinstance(last, list) else [{"type": "text", "text": last}]
            turns[-1]["content"] = [*parts[:-1], {**parts[-1], **cached}]
    return body | _options(request, "max_tokens")


def _options(request: CompletionRequest, bound: str) -> dict[str, Any]:
    found = {"temperature": request.temperature, bound: request.max_tokens}
    return {name: value for name, value in found.items() if value is not None}


def _turns(
    messages: Iterable[ChatMessage],
    kind: str,
    picture: Callable[[str, Any], dict[str, Any]],
    with_calls: Callable[[dict[str, Any], ChatMessage], list[dict[str, Any]]],
) -> list[dict[str, Any]]:
    """Messages with their pictures after the text, a part of that kind. `picture` makes a part of a
    picture's URL or source, `with_calls` the parts of a turn with calls or an answer to one. A
    message without pictures stays plain text."""
    turns = []
    for each in messages:
        parts: list[dict[str, Any]] = [{"type": kind, "text": each.content}]
        for image in each.images:
            source = {"type": "base64", "media_type": image.media_type, "data": image.base64}
            parts.append(picture(f"data:{image.media_type};base64,{image.base64}", source))
        turn = {"role": each.role, "content": parts if each.images else each.content}
        turns += with_calls(turn, each)
    return turns


ENDINGS = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence"), FinishReason.STOP),
    **dict.fromkeys(("length", "model_length", "max_tokens"), FinishReason.CUT_OFF),
    "model_context_window_exceeded": FinishReason.CUT_OFF,
    **dict.fromkeys(("content_filter", "refusal"), FinishReason.REFUSED),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), FinishReason.TOOL_CALL),
}
"""Endings of Chat Completions and of Messages."""
LONGEST_REASONING = 400_000
"""Most characters of a reply's reasoning that are kept, from its end."""
_TEXTS = ("text", "output_text")
_REASONING = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
"""Fields of a chat message with its reasoning: servers do not agree on a name."""
_WORDS = ("thinking", "reasoning", "summary", "content", "text")
"""Fields of a part with reasoning, each a text or a list of parts."""
_MOST_LEVELS = 4
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)


@dataclass
class Content:
    """The content of a reply, by kind."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls_tool: bool = False
    calls: list[ToolCall] = field(default_factory=list)

    def call(self, id_: Any, name: Any, arguments: Any) -> None:
        """Add a call of a tool."""
        if len(self.calls) < tool_calls.MOST_CALLS:
            number = len(self.calls) + 1
            self.calls.append(tool_calls.tool_call(number, id_, name, arguments))


def decoded(body: bytes) -> Any:
    """The value of a JSON body. Raises RequestFailedError for another body."""
    try:
        return json.loads(body)
    except failures.BAD_BODIES:
        raise failures.RequestFailedError(failures.Trouble.NONSENSE) from None


def part(thing: Any, *names: str) -> Any:
    """The value under these names, in objects or dictionaries; None if one is missing."""
    for name in names:
        thing = thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)
    return thing


def listed(thing: Any, name: str) -> list[Any]:
    """The list under a name. Raises RequestFailedError without one."""
    found = part(thing, name)
    if isinstance(found, list):
        return found
    raise failures.failure_of_body(thing) or failures.RequestFailedError(failures.Trouble.NONSENSE)


def read_content(content: Any) -> Content:
    """Read a text, a list of parts, or a list of messages with parts. Texts that follow each other
    are one text, which some servers split within a sentence. A text begins a line of its own after
    anything else, and where code fences would meet."""
    read = Content()
    apart = False
    for each in content if isinstance(content, list) else [content]:
        kind = "text" if isinstance(each, str) else str(part(each, "type") or "text")
        inner = Content()
        if kind in _TEXTS:
            inner.text = each if isinstance(each, str) else _string(part(each, "text"))
        elif kind == "message":
            inner = read_content(part(each, "content"))
            apart = True
        elif kind == "refusal":
            inner.refusal = _string(part(each, "refusal"))
        elif "reasoning" in kind or "thinking" in kind:
            inner.reasoning = _words(each)
        elif kind == "tool_use":
            read.call(part(each, "id"), part(each, "name"), part(each, "input"))
        elif kind == "function_call":
            read.call(part(each, "call_id"), part(each, "name"), part(each, "arguments"))
        inner.calls_tool = inner.calls_tool or kind.endswith(("tool_use", "_call"))
        read.text = _joined(read.text, inner.text, apart)
        read.reasoning = _joined(read.reasoning, inner.reasoning, True)
        read.refusal += inner.refusal
        read.calls_tool = read.calls_tool or inner.calls_tool
        if inner.text or kind not in _TEXTS:
            apart = kind not in _TEXTS
    return read


def completed(content: Content, ending: FinishReason, cost: Cost) -> Completion:
    """The completion with this content, without surrogates, which no file can store."""
    if cost.reasoning_tokens is None and not content.reasoning:
        cost = cost.model_copy(update={"reasoning_tokens": 0})
    if content.refusal:
        ending = FinishReason.REFUSED
    elif not content.text.strip() and ending in (FinishReason.STOP, FinishReason.OTHER):
        if content.calls_tool:
            ending = FinishReason.TOOL_CALL
        elif content.reasoning.strip():
            ending = FinishReason.REASONING_ALONE
    text, reasoning = (
        each.encode("utf-8", "replace").decode()
        for each in (content.text or content.refusal, content.reasoning[-LONGEST_REASONING:])
    )
    calls = () if ending is FinishReason.CUT_OFF else tuple(content.calls)
    return Completion(text=text, finish_reason=ending, reasoning=reasoning, cost=cost, calls=calls)


def _cost(usage: Any, prompt: str, reply: str) -> Cost:
    """The tokens of OpenAI's wire formats, where `Cost` takes impossible numbers as unknown."""
    return Cost(
        prompt_tokens=part(usage, prompt),
        completion_tokens=part(usage, reply),
        reasoning_tokens=part(usage, f"{reply}_details", "reasoning_tokens"),
        cached_tokens=part(usage, f"{prompt}_details", "cached_tokens"),
        cache_write_tokens=part(usage, f"{prompt}_details", "cache_write_tokens"),
    )


def tokens(first: Any, *others: Any) -> int | None:
    """Sum of token counts; None where the first is missing or one is invalid."""
    amounts = (first, *(each for each in others if each is not None))
    known = [each for each in map(known_tokens, amounts) if each is not None]
    return known_tokens(sum(known)) if len(known) == len(amounts) else None


def read_chat(response: Any) -> Completion:
    """Read a reply of Chat Completions. Raises RequestFailedError for an invalid one."""
    choices = listed(response, "choices")
    first = choices[0] if choices else None
    broken_off = failures.failure_in_body(part(first, "error"))
    if broken_off is not None:
        raise broken_off
    message = part(first, "message")
    content = read_content(part(message, "content"))
    fields = (_words(part(message, name)) for name in _REASONING)
    content.reasoning = next((each for each in fields if each.strip()), content.reasoning)
    content.refusal = content.refusal or _string(part(message, "refusal"))
    if not content.text:
        hidden = part(message, "provider_specific_fields", "refusal")
        content.refusal = content.refusal or _string(hidden)
    called = part(message, "tool_calls")
    for each in called if isinstance(called, list) else []:
        function = part(each, "function")
        content.call(part(each, "id"), part(function, "name"), part(function, "arguments"))
    content.calls_tool = bool(content.calls_tool or called or part(message, "function_call"))
    cost = _cost(part(response, "usage"), "prompt_tokens", "completion_tokens")
    if not cost.prompt_tokens:  # litellm gives 0 for unknown
        cost = cost.model_copy(update={"prompt_tokens": None, "completion_tokens": None})
    ending = ENDINGS.get(str(part(first, "finish_reason")), FinishReason.OTHER)
    return completed(content, ending, cost)


def read_response(response: Any) -> Completion:
    """Read a reply of Responses, or of a server that answers them as Chat Completions. Raises
    RequestFailedError for an invalid one."""
    if part(response, "choices") is not None:
        return read_chat(response)
    status = part(response, "status")
    if status == "failed":
        failure = failures.failure_in_body(part(response, "error"))
        raise failure or failures.RequestFailedError(failures.Trouble.OTHER, "without a reason")
    content = read_content(listed(response, "output"))
    ending = FinishReason.STOP if status in ("completed", None) else FinishReason.OTHER
    if status == "incomplete":
        reason = part(response, "incomplete_details", "reason")
        ending = FinishReason.REFUSED if reason == "content_filter" else FinishReason.CUT_OFF
    cost = _cost(part(response, "usage"), "input_tokens", "output_tokens")
    return completed(content, ending, cost)


def read_message(message: Any) -> Completion:
    """Read a reply of Messages. Raises RequestFailedError for an invalid one."""
    content, usage = read_content(listed(message, "content")), part(message, "usage")
    read = part(usage, "cache_read_input_tokens")
    written = part(usage, "cache_creation_input_tokens")
    cost = Cost(
        prompt_tokens=tokens(part(usage, "input_tokens"), read, written),
        completion_tokens=part(usage, "output_tokens"),
        cached_tokens=read,
        cache_write_tokens=written,
    )
    ending = ENDINGS.get(str(part(message, "stop_reason")), FinishReason.OTHER)
    return completed(content, ending, cost)


def refused() -> Completion:
    """A refusal without text, by a filter that does not count tokens."""
    return Completion(text="", finish_reason=FinishReason.REFUSED)


def _string(found: Any) -> str:
    return found if isinstance(found, str) else ""


def _words(found: Any, levels: int = _MOST_LEVELS) -> str:
    """Text of reasoning, in whichever of its fields and lists it is."""
    if isinstance(found, str) or found is None or levels == 0:
        return _string(found)
    parts = found if isinstance(found, list) else [part(found, name) for name in _WORDS]
    return "\n".join(filter(None, (_words(each, levels - 1) for each in parts)))


def _joined(before: str, after: str, apart: bool) -> str:
    """Two texts as one, on lines of their own if they are `apart` or a fence is between them."""
    if not before or not after or before.endswith("\n"):
        return before + after
    last = before.rpartition("\n")[2]
    closes = _FENCE.match(last) and len(_FENCE.findall(before)) % 2 == 0
    line_end = "\n" if apart or closes or _FENCE.match(after) else ""
    return before + line_end + after
