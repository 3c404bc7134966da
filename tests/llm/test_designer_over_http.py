"""From settings to a proposal over real HTTP, with the archive as the store."""

from __future__ import annotations

from pathlib import Path

import pytest
from model_server import HttpFailure, ModelServer

from eureka_agent.archive.database import Archive
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.designer.llm_designer import LanguageModelDesigner
from eureka_agent.llm.budget import Budget, Limits
from eureka_agent.llm.clients import Access, language_model
from eureka_agent.llm.gateway import ConfiguredModel, Gateway
from eureka_agent.llm.interface import LanguageModelError
from eureka_agent.records import Operator, TaskDescription

REWARD = (
    "def compute_reward(cart_position):\n    return -cart_position.abs(), {'centred':"
    " -cart_position.abs()}\n"
)


def designer_of(server: ModelServer, folder: Path) -> LanguageModelDesigner:
    model = language_model("openai/tiny", Access(base_url=server.base_url))
    return LanguageModelDesigner(
        [ConfiguredModel(model, Gateway(Archive(folder), Budget(Limits(), {}), 1))]
    )


async def test_a_proposal_is_paid_once_and_survives_the_process(
    model_server: ModelServer, description: TaskDescription, tmp_path: Path
) -> None:
    model_server.answers = [f"Reason.\n```python\n{REWARD}```"]
    request = DesignRequest(description, "centre the cart", Operator.FRESH, (), (), 11)
    first = await designer_of(model_server, tmp_path).propose(request)
    again = await designer_of(model_server, tmp_path).propose(request)
    assert first == again
    assert (first.reward.source, first.reward.author) == (REWARD, "openai/tiny")
    assert len(model_server.requests) == 1
    assert "centre the cart" in model_server.requests[0].system


async def test_a_failed_request_is_not_stored(
    model_server: ModelServer, description: TaskDescription, tmp_path: Path
) -> None:
    model_server.answers = [HttpFailure(401), f"```python\n{REWARD}```"]
    designer = designer_of(model_server, tmp_path)
    request = DesignRequest(description, "centre the cart", Operator.FRESH, (), (), 11)
    with pytest.raises(LanguageModelError):
        await designer.propose(request)
    assert (await designer.propose(request)).reward.source == REWARD
