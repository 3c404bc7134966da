"""Messages with pictures in the forms of the interfaces. A message without one stays plain text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eureka_agent.llm.interface import ChatMessage, ImagePart


def for_chat(messages: Iterable[ChatMessage]) -> list[dict[str, Any]]:
    """Messages of Chat Completions, also of litellm."""
    return [
        _message(
            each,
            {"type": "text", "text": each.content},
            [{"type": "image_url", "image_url": {"url": _data_url(one)}} for one in each.images],
        )
        for each in messages
    ]


def for_responses(messages: Iterable[ChatMessage]) -> list[dict[str, Any]]:
    """Input of OpenAI's Responses."""
    return [
        _message(
            each,
            {"type": "input_text", "text": each.content},
            [{"type": "input_image", "image_url": _data_url(one)} for one in each.images],
        )
        for each in messages
    ]


def for_anthropic(messages: Iterable[ChatMessage]) -> list[dict[str, Any]]:
    """Messages of Anthropic's Messages API."""
    return [
        _message(
            each,
            {"type": "text", "text": each.content},
            [
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": one.media_type, "data": one.base64},
                }
                for one in each.images
            ],
        )
        for each in messages
    ]


def _message(
    message: ChatMessage, text: dict[str, Any], images: list[dict[str, Any]]
) -> dict[str, Any]:
    content: Any = [text, *images] if images else message.content
    return {"role": message.role, "content": content}


def _data_url(image: ImagePart) -> str:
    return f"data:{image.media_type};base64,{image.base64}"
