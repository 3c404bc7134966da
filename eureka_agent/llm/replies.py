"""Reading of replies, in which SDKs pass on values of any type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from eureka_agent.llm.failures import RequestFailedError, Trouble, failure_in_body, failure_of_body
from eureka_agent.llm.interface import Completion, FinishReason
from eureka_agent.records import known_tokens

CHAT_ENDINGS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.CUT_OFF,
    "model_length": FinishReason.CUT_OFF,
    "content_filter": FinishReason.REFUSED,
    "tool_calls": FinishReason.TOOL_CALL,
    "function_call": FinishReason.TOOL_CALL,
}
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
    raise failure_of_body(thing) or RequestFailedError(Trouble.NONSENSE)


def read_content(content: Any) -> Content:
    """Read a text, a list of parts, or a list of messages with parts.

    Texts that follow each other are one text, which some servers split within a sentence. A text
    begins a line of its own after anything else, and where code fences would meet.
    """
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
        inner.calls_tool = inner.calls_tool or kind.endswith(("tool_use", "_call"))
        read.text = _joined(read.text, inner.text, apart)
        read.reasoning = _joined(read.reasoning, inner.reasoning, True)
        read.refusal += inner.refusal
        read.calls_tool = read.calls_tool or inner.calls_tool
        if inner.text or kind not in _TEXTS:
            apart = kind not in _TEXTS
    return read


def completed(
    content: Content,
    ending: FinishReason,
    *,
    prompt_tokens: int | None,
    completion_tokens: int | None,
    cached_tokens: int | None,
    cache_write_tokens: int | None,
    reasoning_tokens: int | None = None,
) -> Completion:
    """The completion with this content, without surrogates, which no file can store."""
    if reasoning_tokens is None and not content.reasoning:
        reasoning_tokens = 0
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
    return Completion(
        text=text,
        reasoning=reasoning,
        finish_reason=ending,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        reasoning_tokens=reasoning_tokens,
        cached_tokens=cached_tokens,
        cache_write_tokens=cache_write_tokens,
    )


def tokens(*amounts: Any) -> int | None:
    """Sum of token counts; None where the first is missing or one is invalid."""
    numbers = [known_tokens(amount) for amount in amounts]
    if numbers[0] is None or any(
        number is None and amount is not None
        for number, amount in zip(numbers, amounts, strict=True)
    ):
        return None
    return known_tokens(sum(number or 0 for number in numbers))


def read_chat(response: Any) -> Completion:
    """Read a reply of Chat Completions. Raises RequestFailedError for an invalid one."""
    choices = listed(response, "choices")
    first = choices[0] if choices else None
    broken_off = failure_in_body(part(first, "error"))
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
    content.calls_tool = content.calls_tool or bool(
        part(message, "tool_calls") or part(message, "function_call")
    )
    usage = part(response, "usage")
    details = part(usage, "prompt_tokens_details")
    prompt = tokens(part(usage, "prompt_tokens")) or None  # litellm gives 0 for unknown
    return completed(
        content,
        CHAT_ENDINGS.get(str(part(first, "finish_reason")), FinishReason.OTHER),
        prompt_tokens=prompt,
        completion_tokens=None if prompt is None else tokens(part(usage, "completion_tokens")),
        cached_tokens=tokens(part(details, "cached_tokens")),
        cache_write_tokens=tokens(part(details, "cache_write_tokens")),
        reasoning_tokens=tokens(part(usage, "completion_tokens_details", "reasoning_tokens")),
    )


def refused() -> Completion:
    """A refusal without text, by a filter that does not count tokens."""
    return Completion(
        text="", finish_reason=FinishReason.REFUSED, prompt_tokens=None, completion_tokens=None
    )


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
