"""Distributions in replies of all kinds."""

from __future__ import annotations

import pytest
from parameter_priors import PARAMETERS, prior

from eureka_agent.designer.distribution_reply import DistributionReply, parse_distributions
from eureka_agent.designer.offline.distributions import offline_distributions


def parsed(text: str, count: int = 4) -> DistributionReply:
    return parse_distributions(text, PARAMETERS, "openai/test", (), count)


WHOLE = """The mass matters {most}.

```json
{"distributions": [
  {"reason": "a load", "parameters": {"mass": [0.8, 1.5]}, "curriculum": []},
  {"reason": "later", "parameters": {"delay": [0, 2], "mass": [0.5, 2]},
   "curriculum": [{"from": 0, "parameters": {}}, {"from": 0.3}]}
]}
```
"""


def test_a_reply_as_it_was_asked_for() -> None:
    reply = parsed(WHOLE)
    assert reply.faults == ()
    first, second = reply.distributions
    assert (first.name, first.reason, first.author, first.notes) == (
        *("d1", "a load", "openai/test"),
        (),
    )
    assert first.text == "mass=0.8..1.5"
    # in the environment's order
    assert second.text == "defaults; from 30 %: mass=0.5..2, delay=0..2"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"parameters": {"mass": [0.8, 1.5]}}', ["mass=0.8..1.5"]),
        (
            '[{"parameters": {"mass": 1.5}}, {"parameters": {"delay": [1]}},]',
            ["mass=1.5", "delay=1"],
        ),
        ("{'parameters': {'mass': (0.8, 1.5),}, 'curriculum': None}", ["mass=0.8..1.5"]),
        ('{"parameters": {"mass": {"low": 0.8, "high": 1.5}}}', ["mass=0.8..1.5"]),
        ('{"parameters": {"mass": [1.5, 0.8]}, "curriculum": "none"}', ["mass=0.8..1.5"]),
        (
            '{"parameters": {"mass": [1, 2]}, "curriculum": [{"begins": "25%"}]}',
            ["defaults; from 25 %: mass=1..2"],
        ),
        ('{"parameters": {"mass": [1, 2]}, "curriculum": 0.5}', ["defaults; from 50 %: mass=1..2"]),
        (
            '{"parameters": {"mass": [1, 2]}, "curriculum": [{"from": 0.5}, {"from": 0,'
            ' "parameters": {"mass": [1, 1.5]}}]}',
            ["mass=1..1.5; from 50 %: mass=1..2"],
        ),
        (
            '<think>{"parameters": {"mass": [1, 2]}}</think>{"parameters": {"delay": 3}}',
            ["delay=3"],
        ),
    ],
)
def test_careless_replies(text: str, expected: list[str]) -> None:
    assert [each.text for each in parsed(text).distributions] == expected


def test_bounds_are_clipped_with_a_note() -> None:
    reply = parsed(
        '{"parameters": {"mass": [0.1, 9], "wind": [0, 1], "delay": "long"}, "curriculum":'
        ' [{"from": "soon"}]}'
    )
    (found,) = reply.distributions
    assert found.text == "mass=0.5..2"
    assert found.notes == (
        "mass=0.1..9 was clipped to the safe range 0.5..2",
        "the environment has no parameter 'wind'",
        "'delay' has no range: \"long\"",
        'a stage without its begin is left out: {"from": "soon"}',
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("I would rather not.", "the reply holds no JSON object with 'parameters'"),
        ('{"parameters": {}}', "distribution 1: it gives no parameter a range"),
        ('{"parameters": [1, 2]}', "distribution 1: it gives no parameter a range"),
        (
            '{"parameters": {"mass": [NaN, 1' + "0" * 400 + "]}}",
            "distribution 1: 'mass' has no range: [NaN, 1000",
        ),
        ('{"parameters": {"mass": 1}}', "distribution 1: it gives no parameter a range"),
        (
            '{"parameters": {"mass": 2}, "curriculum": ['
            + ",".join(f'{{"from": 0.0{place}}}' for place in range(1, 10))
            + "]}",
            "distribution 1: it has 10 stages, expected at most 8",
        ),
        ("{" * 5000, "the reply holds no JSON object"),
    ],
)
def test_what_cannot_be_used(text: str, fault: str) -> None:
    reply = parsed(text)
    assert reply.distributions == ()
    (told,) = reply.faults
    assert told.startswith(fault)


def test_the_same_again_and_more_than_asked_for() -> None:
    known = offline_distributions(PARAMETERS, prior((0.8, 1.2), (0.0, 1.0)), (), 1)
    texts = ['{"parameters": {"delay": [0, 1], "mass": [0.8, 1.2]}}', '{"parameters": {"mass": 2}}']
    texts += [texts[1], '{"parameters": {"mass": 0.5}}', '{"parameters": {"mass": 0.6}}']
    reply = parse_distributions("\n".join(texts), PARAMETERS, "openai/test", known, 2)
    assert [(each.name, each.text) for each in reply.distributions] == [
        ("d2", "mass=2"),
        ("d3", "mass=0.5"),
    ]
    assert reply.faults == ("distribution 1 is the same as d1", "distribution 3 is the same as d2")
