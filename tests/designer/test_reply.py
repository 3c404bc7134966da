"""Replies as models really write them."""

from __future__ import annotations

import time

import pytest

from eureka_agent.designer.reply import parse_reply

FUNCTION = "def compute_reward(height):\n    return height, {'height': height}"


def test_a_block_that_was_cut_off_is_kept_for_the_critic() -> None:
    assert parse_reply(
        "Here:\n```python\ndef compute_reward(height):\n    return height, {'hei"
    ).source.endswith("{'hei\n")


@pytest.mark.parametrize(
    "text", ["", "I cannot help with that.", "```python\nprint('no function here')\n```", "```"]
)
def test_no_code_is_no_source(text: str) -> None:
    assert parse_reply(text).source == ""


# ── several blocks ────────────────────────────────────────────────────────────────────────────────

WHOLE = FUNCTION + "\n"


@pytest.mark.parametrize(
    "later",
    [
        "```python\ndef compute_reward(height): ...\n```",
        "```python\ndef compute_reward(height):\n    # unchanged\n    return height, {}\n```",
        "```diff\n-def compute_reward(x):\n+def compute_reward(height):\n```",
    ],
)
def test_a_part_after_the_whole_function_is_asked_for_again(later: str) -> None:
    reply = parse_reply(f"```python\n{FUNCTION}\n```\nIn short:\n{later}\n")
    assert reply.source == ""
    assert reply.problem


def test_a_revised_version_with_a_fault_is_still_the_answer() -> None:
    typo = "def compute_reward(height):\n    return height, {'height': height"
    reply = parse_reply(f"A draft:\n```python\n{FUNCTION}\n```\nBetter:\n```python\n{typo}\n```\n")
    assert reply.source == typo + "\n", "what the model settled on goes to the critic"


def test_helpers_after_the_function_and_helpers_of_helpers_are_joined() -> None:
    text = (
        "```python\ndef compute_reward(height):\n    return bound(height), {}\n```\nwith\n"
        "```python\ndef bound(x):\n    return min(x, LIMIT)\n```\nand\n```python\nLIMIT = 3.0\n```"
    )
    names: dict[str, object] = {}
    exec(parse_reply(text).source, names)
    assert names["compute_reward"](5.0)[0] == 3.0  # type: ignore[operator]


# ── fences ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        f"````markdown\nThe idea.\n```python\n{FUNCTION}\n```\nThat is all.\n````",
        f"```markdown\nThe idea.\n```python\n{FUNCTION}\n```\nThat is all.\n```",
    ],
)
def test_a_block_in_a_block(text: str) -> None:
    reply = parse_reply(text)
    assert reply.source == WHOLE
    assert reply.reasoning == "The idea.\n\nThat is all."


@pytest.mark.parametrize("language", ["python3", "py {.line-numbers}", "{.python}"])
def test_whatever_the_fence_says(language: str) -> None:
    assert parse_reply(f"Here:\n```{language}\n{FUNCTION}\n```").source == WHOLE


def test_fences_behind_the_marks_of_lists_and_quotations() -> None:
    indented = FUNCTION.replace("\n", "\n   ")
    assert parse_reply(f"1. ```python\n   {indented}\n   ```\n").source == WHOLE
    quoted = FUNCTION.replace("\n", "\n> ")
    assert parse_reply(f"> ```python\n> {quoted}\n> ```\n").source == WHOLE


@pytest.mark.parametrize(
    "text",
    [
        "```javascript\nfunction compute_reward(height) {\n  return [height, {height}];\n}\n```",
        "Define compute_reward yourself, as the sum of heights.",
    ],
)
def test_other_languages_are_no_reward(text: str) -> None:
    reply = parse_reply(text)
    assert reply.source == ""
    assert "`compute_reward`" in reply.problem


# ── characters ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "code",
    [
        FUNCTION.replace("\n", "\x00\r\n"),
        "\ufeff" + FUNCTION.replace("height,", "\u200bheight,\u2060"),
        FUNCTION.replace("height}", "\u202eheight\u202c}"),
    ],
)
def test_characters_that_cannot_be_seen_are_left_out(code: str) -> None:
    assert parse_reply(f"```python\n{code}\n```").source == WHOLE


def test_what_a_terminal_would_obey_is_not_kept() -> None:
    reply = parse_reply(
        f"\x1b]0;owned\x07It \x1b[2Jpays\x9b31m.\x08\u202e\n```python\n{FUNCTION}\n```"
    )
    assert reply.reasoning == "It pays."


# ── thinking, and code without a fence ────────────────────────────────────────────────────────────


def test_broken_code_without_a_fence_goes_to_the_critic_without_the_prose() -> None:
    reply = parse_reply(
        "Here:\n\ndef compute_reward(height):\n    return height, {'up': (height}\n\nThat (I hope)"
        " works."
    )
    assert reply.source == "def compute_reward(height):\n    return height, {'up': (height}\n"
    assert reply.reasoning == "Here:\n\nThat (I hope) works."


# ── size ──────────────────────────────────────────────────────────────────────────────────────────

LINES = 15_000
HUGE = {
    "prose around code without a fence": "\n".join(
        ["lorem ipsum (", FUNCTION, *["dolor sit amet ("] * LINES]
    ),
    "prose before it": "\n".join([*["x = dolor sit amet ("] * LINES, FUNCTION]),
    "thousands of blocks": "```python\nx = 1\n```\n" * 8_000 + f"```python\n{FUNCTION}\n```",
    "a chain of helpers": (
        "".join(f"```python\ndef f{n}(x):\n    return f{n + 1}(x)\n```\n" for n in range(3_000))
        + f"```python\n{FUNCTION}\n```"
    ),
    "blank lines": "    \n" * 40_000 + "\n" + FUNCTION,
    "escape sequences": "\x1b]" * 100_000 + f"\n```python\n{FUNCTION}\n```",
    "imports": "from a import\n" * LINES + FUNCTION,
}
EMPTY = {
    "fences": "```\n" * 50_000,
    "shorter and shorter fences": "\n".join("`" * (600 - number) for number in range(590)),
    "thoughts": "<think>" * 30_000,
    "braces": "{" * 200_000 + "def compute_reward",
    "spaces": " " * 200_000,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE.keys())
def test_a_huge_reply_is_read_in_one_pass(text: str) -> None:
    begin = time.process_time()
    assert parse_reply(text).source == WHOLE
    assert time.process_time() - begin < 5.0, (
        "0.3 s at most on a slow core; what goes over it line by line takes minutes"
    )


@pytest.mark.parametrize("text", EMPTY.values(), ids=EMPTY.keys())
def test_huge_nonsense_is_read_in_one_pass(text: str) -> None:
    begin = time.process_time()
    reply = parse_reply(text)
    assert time.process_time() - begin < 5.0
    assert reply.source in ("", "def compute_reward\n", "def  compute_reward\n")
    assert len(reply.reasoning) < 11_000


@pytest.mark.parametrize("expression", ["(" * 40_000, "x" + ".a" * 20_000, "lambda:" * 6_000])
def test_nesting_that_python_cannot_read_is_left_to_the_critic(expression: str) -> None:
    source = f"def compute_reward(x):\n    return {expression}\n"
    assert parse_reply(f"```python\n{source}```").source == source


@pytest.mark.parametrize(
    "line",
    ["#" * 45_000, " " * 45_000 + "x = 1", "( " * 20_000],
    ids=["hashes", "spaces", "brackets"],
)
def test_long_lines_in_source_hold_nothing_up(line: str) -> None:
    """A search for dots that stand for the rest took minutes over a line of hashes, and so did the
    whole search."""
    begin = time.process_time()
    reply = parse_reply(
        f"```python\n{FUNCTION}\n{line}\n```\n\n```python\n{FUNCTION}\n```\n\n```diff\n{FUNCTION}\n{line * 4}\n```"
    )
    assert time.process_time() - begin < 5.0
    assert bool(reply.source) != bool(reply.problem)
