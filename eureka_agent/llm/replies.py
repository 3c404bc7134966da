"""Reads replies with care: SDKs hand on whatever a server sends, of whatever type."""

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
    """What lies under these names, in objects and dictionaries alike; None where something is
    missing on the way."""
    for name in names:
        thing = thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)
    return thing


def listed(thing: Any, name: str) -> list[Any]:
    """The list under this name. Raises RequestFailedError where there is none, with the server's
    own error if it sent one."""
    found = part(thing, name)
    if isinstance(found, list):
        return found
    raise failure_in_body(part(thing, "error")) or RequestFailedError(Trouble.NONSENSE)


def joined_text(content: Any) -> str:
    """The text of a content that is one, or a list of parts. Half characters are replaced: no file
    could take them."""
    parts = content if isinstance(content, list) else [content]
    texts = [found if isinstance(found, str) else part(found, "text") for found in parts]
    return (
        "".join(text for text in texts if isinstance(text, str)).encode("utf-8", "replace").decode()
    )


def tokens(*amounts: Any) -> int | None:
    """The sum of a server's numbers of tokens, of which those that are missing count nothing; None
    where the first is missing, or one is no such number."""
    numbers = [known_tokens(amount) for amount in amounts]
    if numbers[0] is None or any(
        number is None and amount is not None
        for number, amount in zip(numbers, amounts, strict=True)
    ):
        return None
    return known_tokens(sum(number or 0 for number in numbers))


def read_chat(response: Any) -> Completion:
    """A reply of Chat Completions. Raises RequestFailedError for what is none."""
    choices = listed(response, "choices")
    first = choices[0] if choices else None
    message = part(first, "message")
    ending = CHAT_ENDINGS.get(str(part(first, "finish_reason")), FinishReason.OTHER)
    text = joined_text(part(message, "content"))
    if part(message, "refusal") or (
        not text and part(message, "provider_specific_fields", "refusal")
    ):
        ending = FinishReason.REFUSED
    details = part(response, "usage", "prompt_tokens_details")
    prompt = (
        tokens(part(response, "usage", "prompt_tokens")) or None
    )  # 0 is litellm's word for unknown
    return Completion(
        text=text,
        finish_reason=ending,
        prompt_tokens=prompt,
        completion_tokens=None
        if prompt is None
        else tokens(part(response, "usage", "completion_tokens")),
        cached_tokens=tokens(part(details, "cached_tokens")),
        cache_write_tokens=tokens(part(details, "cache_write_tokens")),
    )


def refused() -> Completion:
    """A refusal without words, by a filter that does not tell what it read."""
    return Completion(
        text="", finish_reason=FinishReason.REFUSED, prompt_tokens=None, completion_tokens=None
    )
