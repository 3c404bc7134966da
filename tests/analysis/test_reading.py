"""Readings of a wish: what the model is asked, and what is made of its reply."""

from __future__ import annotations

import pytest

from eureka_agent.analysis.wishes import parse_reading
from eureka_agent.feedback_records import Measure
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


@pytest.mark.parametrize("reply", ["", '{"reading": 3}', "{" * 5000])
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
