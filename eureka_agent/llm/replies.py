"""Reading of replies, in which SDKs pass on values of any type."""

from __future__ import annotations

from typing import Any

from eureka_agent.llm.failures import RequestFailedError, Trouble, failure_in_body
from eureka_agent.llm.interface import Completion, FinishReason
from eureka_agent.records import known_tokens

CHAT_ENDINGS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.CUT_OFF,
    "content_filter": FinishReason.REFUSED,
}


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
    raise failure_in_body(part(thing, "error")) or RequestFailedError(Trouble.NONSENSE)


def joined_text(content: Any) -> str:
    """Text of a string or a list of parts, without surrogates, which no file can store."""
    parts = content if isinstance(content, list) else [content]
    texts = [found if isinstance(found, str) else part(found, "text") for found in parts]
    joined = "".join(text for text in texts if isinstance(text, str))
    return joined.encode("utf-8", "replace").decode()


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
    message = part(first, "message")
    ending = CHAT_ENDINGS.get(str(part(first, "finish_reason")), FinishReason.OTHER)
    text = joined_text(part(message, "content"))
    silent = not text and part(message, "provider_specific_fields", "refusal")
    if part(message, "refusal") or silent:
        ending = FinishReason.REFUSED
    usage = part(response, "usage")
    details = part(usage, "prompt_tokens_details")
    prompt = tokens(part(usage, "prompt_tokens")) or None  # litellm gives 0 for unknown
    completion = None if prompt is None else tokens(part(usage, "completion_tokens"))
    return Completion(
        text=text,
        finish_reason=ending,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=tokens(part(details, "cached_tokens")),
        cache_write_tokens=tokens(part(details, "cache_write_tokens")),
    )


def refused() -> Completion:
    """A refusal without text, by a filter that does not count tokens."""
    return Completion(
        text="", finish_reason=FinishReason.REFUSED, prompt_tokens=None, completion_tokens=None
    )
