"""Specifications of rewards, as they are stored and sent."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from eureka_agent.boundary.commands import COMMAND, Train
from eureka_agent.records import Operator, Proposal, TaskDescription
from eureka_agent.rewards import CodeReward

SOURCE = "def compute_reward(x):\n    return x, {}\n"


def test_a_proposed_reward_is_never_trusted() -> None:
    reward = CodeReward(source=SOURCE, author="openai/tiny", trusted=True)
    with pytest.raises(ValidationError, match="may not read private variables"):
        Proposal(reward=reward, reasoning="", operator=Operator.FRESH)
    stored = {"reward": reward.model_dump(), "reasoning": "", "operator": "fresh"}
    with pytest.raises(ValidationError, match="may not read private variables"):
        Proposal.model_validate(stored)


def test_baselines_are_stored_as_source_and_are_the_environments_own(
    description: TaskDescription,
) -> None:
    content = json.loads(description.model_dump_json())
    content |= {"human_reward": SOURCE, "sparse_reward": None}
    read = TaskDescription.model_validate_json(json.dumps(content))
    assert read.baselines == {
        "human": CodeReward(source=SOURCE, author="environment", trusted=True)
    }
    assert json.loads(read.model_dump_json()) == content


def test_a_reward_of_an_unknown_kind_is_no_command() -> None:
    command = Train(job="a", reward=CodeReward(source=SOURCE, author="given"), seed=3)
    text = command.model_dump_json()
    assert COMMAND.validate_json(text) == command
    with pytest.raises(ValidationError, match="kind"):
        COMMAND.validate_json(text.replace('"code"', '"unheard-of"'))
