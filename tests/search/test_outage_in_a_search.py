"""A search whose model's server is out: it ends after a while, and nothing is paid twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from model_server import Asked, HttpFailure, ModelServer
from outage_clock import Clock, Search
from scripted_search import ScriptedSearch, TableTrials

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.designer.llm_designer import LanguageModelDesigner
from eureka_agent.llm.gateway import ConfiguredModel

SETTINGS: dict[str, Any] = {
    "iterations": 3,
    "samples": 4,
    "finalists": 0,
    "revisions": 0,
    "novelty": False,
}


class AnyReward(dict[Any, float | str]):
    """A table in which every reward has the fitness 1."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: Any) -> float:
        return 1.0


class Server(ModelServer):
    """Writes rewards until it is out."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.out_after = 10**9
        """Replies before the outage."""
        self.replies = 0

    def answer(self, asked: Asked) -> str | HttpFailure:
        if self.replies >= self.out_after:
            return HttpFailure(503, "overloaded")
        self.replies += 1
        return (
            f"```python\nGAIN = {self.replies}.5\n\n\ndef compute_reward(cart_position):\n"
            "    closeness = -GAIN * cart_position.abs()\n"
            '    return closeness, {"closeness": closeness}\n```\n'
        )


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        yield found


def search_with(run: Run, model: Search) -> ScriptedSearch:
    designer: Any = LanguageModelDesigner([ConfiguredModel(model.model, model.gateway)])
    return ScriptedSearch(run, designer, TableTrials(AnyReward()))


@pytest.mark.parametrize("schedule", ["generations", "steady"])
async def test_after_the_limit_the_search_ends_and_a_resumed_one_asks_for_the_rest(
    make_run: Callable[..., Run], server: Server, schedule: str
) -> None:
    run, clock = make_run(**SETTINGS, schedule=schedule), Clock()
    server.out_after = 5
    model = Search(clock, clock.breakers(), server.base_url, store=run.archive)
    async with asyncio.timeout(20):
        found = await search_with(run, model).engine.generations()
    assert 4 <= len(found) < 12
    assert 1600 <= clock.now < 1700
    end = run.archive.state.ended_early
    assert "answers with HTTP 503: overloaded; it has been out for 10 min" in end
    assert f"resume {run.folder}` tries again" in end
    await model.model.close()
    server.out_after = 10**9
    again = open_run(run.folder)
    model = Search(clock, clock.breakers(), server.base_url, store=again.archive)
    async with asyncio.timeout(20):
        assert len(await search_with(again, model).engine.generations()) == 12
    assert server.replies == len(again.archive.messages()) == 12
    assert again.archive.state.ended_early == ""
    await model.model.close()


async def test_a_stop_in_an_outage_ends_the_search_at_once(
    make_run: Callable[..., Run], server: Server
) -> None:
    run, clock = make_run(**SETTINGS), Clock()
    server.out_after = 0
    model = Search(clock, clock.breakers(), server.base_url, store=run.archive)
    clock.runs.clear()
    searching = asyncio.create_task(search_with(run, model).engine.generations())
    async with asyncio.timeout(20):
        while not model.told or model.gateway.under_way:
            await asyncio.sleep(0.001)
        searching.cancel()
        await asyncio.wait({searching})
        await model.gateway.finish()
    assert searching.cancelled()
    await model.model.close()
