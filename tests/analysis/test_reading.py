"""Readings of a wish: what the model is asked, and what is made of its reply."""

from __future__ import annotations

import pytest

from eureka_agent.analysis.wishes import parse_reading
from eureka_agent.feedback_records import Given, Measure, Wish
from eureka_agent.llm.prompts import render
from eureka_agent.records import TaskDescription

GOOD = """It is about the torso.

```json
{"reading": "torso height about 0.35 m, even if slower", "stays": ["forward"], "goes": [],
 "changes": ["upright: a target of 0.35 m"], "unread": ["sneaky"],
 "measure": {"variable": "cart_position", "statistic": "mean size", "aim": 0.35}}
```
"""


def test_a_reading_is_taken_from_the_last_block(description: TaskDescription) -> None:
    found = parse_reading(GOOD, "tiny", description)
    assert found is not None
    assert found.text == "torso height about 0.35 m, even if slower"
    assert (found.stays, found.goes) == (("forward",), ())
    assert found.changes == ("upright: a target of 0.35 m",)
    assert found.unread == ("sneaky",)
    assert found.author == "tiny"
    measure = Measure(variable="cart_position", statistic="mean size", aim=0.35)
    assert found.measure == measure


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I cannot say.",
        '{"reading": ""}',
        '{"reading": 3}',
        "```json\n[1, 2]\n```",
        "{" * 5000,
    ],
)
def test_a_reply_without_a_reading_is_none(reply: str, description: TaskDescription) -> None:
    assert parse_reading(reply, "tiny", description) is None


def test_a_careless_reply_is_read_and_bounded(description: TaskDescription) -> None:
    reply = "{'reading': 'lower\x1b[2J', 'goes': {'upright': 'it fights'}, 'stays': 'all',}"
    found = parse_reading(reply, "tiny", description)
    assert found is not None
    assert found.text.startswith("lower")
    assert "\x1b" not in found.text
    assert found.goes == ("upright: it fights",)
    assert found.stays == ("all",)
    long = parse_reading('{"reading": "' + "x" * 9000 + '"}', "tiny", description)
    assert long is not None
    assert len(long.text) <= 4000


def test_the_order_holds_the_wish_the_reward_and_what_stands() -> None:
    standing = [Given(number=7, time="", who="ada", feedback=Wish(wants="go slower"))]
    text = render(
        "reading_order.md",
        wish=Wish(attempt="1-02", saw="it bounces", wants="lower torso"),
        standing=standing,
        reward="def compute_reward(torso_height):\n    return torso_height, {}\n",
        behaviour="torso_height [m]  0.55 0.61",
        correction="not the legs",
    )
    for part in (
        "1-02",
        "> it bounces",
        "> lower torso",
        "go slower",
        "> not the legs",
        "0.55 0.61",
    ):
        assert part in text
    assert "def compute_reward(torso_height)" in text
