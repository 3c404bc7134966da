"""Prompts for distributions of parameters, and the second request."""

from __future__ import annotations

import pytest
from parameter_priors import PARAMETERS, prior
from scripted_gateway import NamedModel, ScriptedGateway

from eureka_agent.designer.distribution_writer import DistributionRequest, DistributionWriter
from eureka_agent.designer.offline.distributions import offline_distributions
from eureka_agent.llm.budget import BudgetSpentError
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


def writer(gateway: ScriptedGateway, description: TaskDescription) -> DistributionWriter:
    described = description.model_copy(update={"parameters": PARAMETERS})
    model = ConfiguredModel(NamedModel(), gateway)
    return DistributionWriter(model, described, "BALANCE THE POLE", SearchSettings())


def request(count: int) -> DistributionRequest:
    return DistributionRequest("1-02", REWARD, PRIOR, KNOWN, count)


async def test_the_prompt_tells_reward_prior_and_safe_ranges(description: TaskDescription) -> None:
    gateway = ScriptedGateway(GOOD + OTHER)
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


async def test_missing_ones_are_asked_for_once_more(description: TaskDescription) -> None:
    broken = '{"parameters": {"wind": [0, 1]}}'
    gateway = ScriptedGateway(GOOD + broken, broken + OTHER + GOOD)
    found, faults = await writer(gateway, description).write(request(3))
    assert [(each.name, each.text) for each in found] == [
        ("d2", "mass=0.6..1.5"),
        ("d3", "delay=0..3"),
    ]
    assert len(faults) == 2
    assert faults[1] == "distribution 3 is the same as d2"
    first, second = gateway.requests
    assert second.messages[:2] == first.messages
    assert [each.role for each in second.messages[2:]] == ["assistant", "user"]
    told = second.messages[3].content
    assert "Of these distributions 1 can be used: mass=0.6..1.5." in told
    assert "- distribution 2: the environment has no parameter 'wind'" in told
    assert "Propose 2 more" in told


async def test_what_is_in_hand_outlives_a_budget(description: TaskDescription) -> None:
    gateway = ScriptedGateway(GOOD, BudgetSpentError("the money is spent"))
    found, faults = await writer(gateway, description).write(request(2))
    assert [each.text for each in found] == ["mass=0.6..1.5"]
    assert faults == ("the money is spent",)
    with pytest.raises(LanguageModelError, match="no server"):
        await writer(ScriptedGateway(LanguageModelError("no server")), description).write(
            request(1)
        )
