"""A model's text, made fit to be shown."""

from __future__ import annotations

import pytest

from eureka_agent.llm.spoken import Block, split_blocks
from eureka_agent.text import clipped, one_line, printable, without_headings


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb\rc\u2028d\x0ce", "a\nb\nc\nd\ne"),
        (
            "\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x07 \x9b2Jgone\x1b7\x1b(B",
            "red link gone",
        ),
        ("\x1b]52;c;cm0gLXJm never ended\nnext", "\nnext"),
        ("\x1b", ""),
        ("no\x00ne\x7f\x08", "none"),
        ("\ufeffabc\u202edef\u2066g\u200b", "abcdefg"),
        ("half \ud83d of one", "half  of one"),
        ("hidden\U000e0041\U000e0042", "hidden"),
        ("Füße 奖励 🤖 می‌روم", "Füße 奖励 🤖 می‌روم"),
    ],
)
def test_only_what_can_be_seen_stays(text: str, clean: str) -> None:
    assert printable(text) == clean
    clean.encode()


def test_one_line_is_one_line_of_bounded_length() -> None:
    assert one_line(" a\n\n b\tc ", 80) == "a b c"
    assert one_line("abcdef", 6) == "abcdef"
    assert one_line("abcdefg", 6) == "abcde…"


def test_a_clipped_text_says_so() -> None:
    assert clipped("abc", 3) == "abc"
    assert clipped("abcdef", 2) == "ab\n[… 4 more characters]"


def test_marks_of_headings_and_blocks_go_but_no_numbers_of_issues() -> None:
    text = "# One\n  ### Two\n#3 is no heading\n```python\nx = 1\n```\n~~~\n"
    assert without_headings(text).split("\n") == [
        "One",
        "Two",
        "#3 is no heading",
        "",
        "x = 1",
        "",
        "",
        "",
    ]


def test_blocks_and_the_prose_around_them() -> None:
    blocks, prose = split_blocks("Before\n\n```Python title=x\nx = 1\n```\nbetween\n~~~\ny\n")
    assert blocks == [Block("python", "x = 1\n"), Block("", "y\n\n")]
    assert prose == "Before\n\nbetween"
