"""From settings to a proposal over real HTTP, with the archive as the store."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_server import ChatServer, completion, failure

from eureka_agent.archive.database import Archive
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.designer.llm_designer import LanguageModelDesigner
from eureka_agent.llm.interface import LanguageModelError
from eureka_agent.llm.registry import language_model
from eureka_agent.records import Operator, TaskDescription

REWARD = "def compute_reward(cart_position):\n    return -cart_position.abs(), {'centred': -cart_position.abs()}\n"


def designer_of(server: ChatServer, folder: Path) -> LanguageModelDesigner:
    return LanguageModelDesigner(language_model("openai/tiny", server.base_url), Archive(folder))


async def test_a_proposal_is_paid_once_and_survives_the_process(
    chat_server: ChatServer, description: TaskDescription, tmp_path: Path
) -> None:
    chat_server.answers = [completion(f"Reason.\n```python\n{REWARD}```")]
    request = DesignRequest(description, "centre the cart", Operator.FRESH, (), (), 11)
    first = await designer_of(chat_server, tmp_path).propose(request)
    again = await designer_of(chat_server, tmp_path).propose(request)
    assert first == again
    assert (first.source, first.designer) == (REWARD, "openai/tiny")
    assert len(chat_server.requests) == 1
    assert "centre the cart" in chat_server.requests[0]["messages"][1]["content"]


async def test_a_failed_request_is_not_stored(
    chat_server: ChatServer, description: TaskDescription, tmp_path: Path
) -> None:
    chat_server.answers = [failure(401, "no"), completion(f"```python\n{REWARD}```")]
    designer = designer_of(chat_server, tmp_path)
    request = DesignRequest(description, "centre the cart", Operator.FRESH, (), (), 11)
    with pytest.raises(LanguageModelError):
        await designer.propose(request)
    assert (await designer.propose(request)).source == REWARD
