"""Replies as models really write them."""

from __future__ import annotations

import pytest

from eureka_agent.designer.reply import parse_reply

FUNCTION = "def compute_reward(height):\n    return height, {'height': height}"


def test_prose_then_one_block() -> None:
    reply = parse_reply(f"Height is what counts.\n\n```python\nimport torch\n\n{FUNCTION}\n```\n")
    assert reply.source == f"import torch\n\n{FUNCTION}\n"
    assert reply.reasoning == "Height is what counts."


def test_prose_around_stays_the_reasoning() -> None:
    reply = parse_reply(f"First.\n```\n{FUNCTION}\n```\nLast.")
    assert reply.reasoning == "First.\n\nLast."


def test_helpers_and_constants_before_the_function_in_one_block_are_kept() -> None:
    source = f"SCALE = 2.0\n\n\ndef bounded(x):\n    return x.clamp(0, SCALE)\n\n\n@torch.jit.script\n{FUNCTION}\n"
    assert parse_reply(f"```python\n{source}```").source == source


def test_helpers_in_a_block_of_their_own_are_joined() -> None:
    text = (
        "A constant:\n```python\nSCALE = 2.0\n```\nA helper:\n```python\ndef bounded(x):\n    return x.clamp(0, SCALE)\n```\n"
        "An aside that is not needed:\n```python\nprint('hello')\n```\n"
        "```python\ndef compute_reward(height):\n    total = bounded(height)\n    return total, {'total': total}\n```"
    )
    source = parse_reply(text).source
    assert "print" not in source
    names: dict[str, object] = {}
    exec(source.replace(".clamp(0, SCALE)", " * SCALE"), names)
    assert names["compute_reward"](3.0)[0] == 6.0  # type: ignore[operator]


def test_the_last_of_several_versions_counts() -> None:
    draft = "def compute_reward(height):\n    return 0 * height, {}"
    reply = parse_reply(f"A draft:\n```python\n{draft}\n```\nBetter:\n```python\n{FUNCTION}\n```\n")
    assert reply.source == FUNCTION + "\n"


def test_an_example_of_usage_after_the_function_is_left_out() -> None:
    reply = parse_reply(f"```python\n{FUNCTION}\n```\nUse it:\n```python\nreward, parts = compute_reward(height)\n```")
    assert reply.source == FUNCTION + "\n"


def test_a_block_that_was_cut_off_is_kept_for_the_critic() -> None:
    assert parse_reply("Here:\n```python\ndef compute_reward(height):\n    return height, {'hei").source.endswith(
        "{'hei\n"
    )


def test_thinking_aloud_is_not_the_answer() -> None:
    reply = parse_reply(
        f"<think>Maybe\n```python\ndef compute_reward(x):\n    return x\n```\n</think>Done.\n```python\n{FUNCTION}\n```"
    )
    assert (reply.source, reply.reasoning) == (FUNCTION + "\n", "Done.")


@pytest.mark.parametrize("fence", ["~~~", "````"])
def test_other_fences(fence: str) -> None:
    assert parse_reply(f"{fence}py\n{FUNCTION}\n{fence}").source == FUNCTION + "\n"


def test_an_indented_block_in_a_list_and_windows_line_ends() -> None:
    indented = "\n".join(f"   {line}" for line in FUNCTION.splitlines())
    assert (
        parse_reply(f"1. Here:\n\n   ```python\n{indented}\n   ```\n".replace("\n", "\r\n")).source == FUNCTION + "\n"
    )


def test_code_without_a_fence() -> None:
    reply = parse_reply(
        f"Sure, from what I see this works.\n\nimport torch\n\n{FUNCTION}\n\nIt rewards height, I hope."
    )
    assert reply.source == f"import torch\n\n{FUNCTION}\n"
    assert reply.reasoning == "Sure, from what I see this works.\n\nIt rewards height, I hope."


@pytest.mark.parametrize("text", ["", "I cannot help with that.", "```python\nprint('no function here')\n```", "```"])
def test_no_code_is_no_source(text: str) -> None:
    assert parse_reply(text).source == ""


def test_other_fenced_languages_do_not_confuse() -> None:
    reply = parse_reply(f'```json\n{{"a": 1}}\n```\n```python\n{FUNCTION}\n```')
    assert reply.source == FUNCTION + "\n"
