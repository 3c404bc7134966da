"""The writer of distributions: its prompts, its second request, and replies of all kinds."""

from __future__ import annotations

import pytest
from parameter_priors import PARAMETERS, prior
from scripted_gateway import NamedModel, ScriptedGateway

from eureka_agent.designer.distribution_writer import (
    DistributionRequest,
    DistributionWriter,
    Found,
    offline_distributions,
    parse_distributions,
)
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.llm.interface import LanguageModelError, Role
from eureka_agent.records import TaskDescription
from eureka_agent.rewards import CodeReward
from eureka_agent.settings import SearchSettings

PRIOR = prior((0.8, 1.2), (0.0, 1.0))
KNOWN = tuple(offline_distributions(PARAMETERS, PRIOR, (), 1))
REWARD = CodeReward(source="# SOURCE OF THE REWARD", author="offline")
GOOD = '{"parameters": {"mass": [0.6, 1.5]}, "reason": "a load"}'
OTHER = '{"parameters": {"delay": [0, 3]}}'


def listed(*texts: str) -> str:
    """A reply with these distributions."""
    return f'{{"distributions": [{", ".join(texts)}]}}'


def writer(gateway: ScriptedGateway, description: TaskDescription) -> DistributionWriter:
    described = description.model_copy(update={"parameters": PARAMETERS})
    model = ConfiguredModel(NamedModel(), gateway)
    return DistributionWriter(model, described, "BALANCE THE POLE", SearchSettings())


def request(count: int) -> DistributionRequest:
    return DistributionRequest("1-02", REWARD, PRIOR, KNOWN, count)


async def test_the_prompt_tells_reward_prior_and_safe_ranges(description: TaskDescription) -> None:
    gateway = ScriptedGateway(listed(GOOD, OTHER))
    found, faults = await writer(gateway, description).write(request(2))
    assert [(each.name, each.author) for each in found] == [
        ("d2", "openai/scripted"),
        ("d3", "openai/scripted"),
    ]
    assert faults == ()
    (asked,) = gateway.requests
    assert (asked.role, asked.attempt) == (Role.RANDOMISER, "1-02")
    system, order = (message.content for message in asked.messages)
    assert "BALANCE THE POLE" in system
    assert "# SOURCE OF THE REWARD" in order
    for told in (
        "it has a fitness of 10 there, and had 2 when its training began",
        "the fitness stays at 6 or more",
        (
            "- `mass`: factor on the mass: with more it falls. Default 1, safe range 0.5 to 2,"
            " prior 0.8 to 1.2.\n  Fitness by value: 0.5: 7.125, 1: unknown\n"
        ),
        "- `delay` (s): late actions. Default 0, safe range 0 to 4, prior 0 to 1.",
        "# Distributions that are trained already\n\n- mass=0.8..1.2, delay=0..1\n",
        "Propose 2 distributions.",
    ):
        assert told in order
    assert "{{" not in system + order
    assert "{%" not in system + order


async def test_what_can_be_used_comes_with_the_faults_of_the_rest(
    description: TaskDescription,
) -> None:
    gateway = ScriptedGateway(listed(GOOD, '{"parameters": {"wind": [0, 1]}}'))
    found, faults = await writer(gateway, description).write(request(3))
    assert [(each.name, each.text) for each in found] == [("d2", "mass=0.6..1.5")]
    assert len(faults) == 1
    with pytest.raises(LanguageModelError, match="no server"):
        await writer(ScriptedGateway(LanguageModelError("no server")), description).write(
            request(1)
        )


def parsed(text: str, count: int = 4) -> Found:
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
    (first, second), faults = parsed(WHOLE)
    assert faults == ()
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
        # without a block, and with more braces than are tried one by one
        (
            'So: {"distributions": ['
            + ", ".join(f'{{"parameters": {{"mass": [1, 1.{place}]}}}}' for place in range(1, 9))
            + "]}",
            ["mass=1..1.1", "mass=1..1.2", "mass=1..1.3", "mass=1..1.4"],
        ),
        ("{'parameters': {'mass': (0.8, 1.5),}, 'curriculum': None}", ["mass=0.8..1.5"]),
        (
            '{"distributions": [{"parameters": {"mass": 1.5}}, 3, {"parameters": {"delay": [1]}}]}',
            ["mass=1.5", "delay=1"],
        ),
        (
            '{"parameters": {"mass": [1, 2]}, "curriculum": [{"from": 0.5}, {"from": 0,'
            ' "parameters": {"mass": [1, 1.5]}}]}',
            ["mass=1..1.5; from 50 %: mass=1..2"],
        ),
    ],
)
def test_careless_replies(text: str, expected: list[str]) -> None:
    assert [each.text for each in parsed(text)[0]] == expected


def test_bounds_are_clipped_with_a_note() -> None:
    (found,), _ = parsed(
        '{"parameters": {"mass": [0.1, 9], "wind": [0, 1], "delay": "long"}, "curriculum":'
        ' [{"from": "soon"}]}'
    )
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
    ],
)
def test_what_cannot_be_used(text: str, fault: str) -> None:
    found, faults = parsed(text)
    assert found == ()
    (told,) = faults
    assert told.startswith(fault)


def test_the_same_again_and_more_than_asked_for() -> None:
    known = offline_distributions(PARAMETERS, prior((0.8, 1.2), (0.0, 1.0)), (), 1)
    texts = ['{"parameters": {"delay": [0, 1], "mass": [0.8, 1.2]}}', '{"parameters": {"mass": 2}}']
    texts += [texts[1], '{"parameters": {"mass": 0.5}}', '{"parameters": {"mass": 0.6}}']
    found, faults = parse_distributions(listed(*texts), PARAMETERS, "openai/test", known, 2)
    assert [(each.name, each.text) for each in found] == [("d2", "mass=2"), ("d3", "mass=0.5")]
    assert faults == ("distribution 1 is the same as d1", "distribution 3 is the same as d2")
