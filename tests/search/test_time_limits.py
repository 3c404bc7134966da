from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from model_server import Asked, HttpFailure, ModelServer
from outage_clock import Clock, Search
from scripted_search import (
    Fuse,
    Killed,
    ScriptedDesigner,
    ScriptedSearch,
    TableTrials,
    reward,
    rows,
)

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.designer.llm_designer import LanguageModelDesigner
from eureka_agent.errors import SettingsError
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.llm.gateway import ConfiguredModel
from eureka_agent.records import Proposal, Verdict
from eureka_agent.search.budget import TimeLimit, outage_limit, time_limit
from eureka_agent.search.deadline import Deadline
from eureka_agent.search.search import SearchFailedError
from eureka_agent.settings import SearchSettings


@pytest.mark.parametrize(
    ("budget", "max_time", "limit"),
    [
        (None, None, None),
        ("5M", None, None),  # env steps
        ("10m", None, TimeLimit("10m", 600.0, stops_models=False)),
        (None, "1h30m", TimeLimit("1h30m (--max-time)", 5400.0)),
        ("10m", "8h", TimeLimit("10m", 600.0)),
        ("8h", "90s", TimeLimit("90s (--max-time)", 90.0)),
        ("5M", "90s", TimeLimit("90s (--max-time)", 90.0)),
    ],
)
def test_the_tighter_of_both_counts(
    budget: str | None, max_time: str | None, limit: TimeLimit | None
) -> None:
    assert time_limit(SearchSettings(env="cart", budget=budget, max_time=max_time)) == limit


@pytest.mark.parametrize("text", ["0s", "0.5s", "99999999999h"])
def test_a_wall_time_out_of_range_says_the_range(text: str) -> None:
    with pytest.raises(
        SettingsError, match=rf"^--max-time is '{text}': expected 1 to 1,000,000,000 s\n"
    ):
        time_limit(SearchSettings(env="cart", max_time=text))


@pytest.mark.parametrize(
    ("outage", "seconds"), [("10m", 600.0), ("1h30m", 5400.0), ("off", 0.0), ("0", 0.0), (0, 0.0)]
)
def test_a_wait_for_a_server_that_is_out_is_read_like_a_time_limit(
    outage: str | int, seconds: float
) -> None:
    settings = SearchSettings.model_validate({"env": "cart", "outage": outage})
    assert outage_limit(settings) == seconds


@pytest.mark.parametrize("text", ["soon", "5M", "", "0s"])
def test_a_wait_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=rf"^--outage is '{text}': expected"):
        outage_limit(SearchSettings(env="cart", outage=text))


def test_a_limit_of_all_searches_that_changes_holds_at_once(make_run: Callable[..., Run]) -> None:
    used, left = 100.0, TimeLimit("10m (max_time, of the batch)", 500.0)
    run = make_run(budget="15m")
    own = time_limit(run.settings)
    deadline = Deadline(run, own, lambda: used, lambda event: None, lambda: left)
    assert deadline.seconds_left() == 500.0
    left = TimeLimit("1h (max_time, of the batch)", 3500.0)
    assert deadline.limit == own
    assert deadline.seconds_left() == 800.0
    left = TimeLimit("1m (max_time, of the batch)", 0.0)
    assert deadline.is_up() == "1 min 40 s have passed of 1m (max_time, of the batch)"
    # a budget in time bounds generations, not requests
    used, left = 1000.0, TimeLimit("8h (max_time, of the batch)", 25_000.0)
    assert deadline.seconds_left() == 0.0
    assert deadline.is_up() == ""


MakeRun = Callable[..., Run]
SETTINGS = {"iterations": 3, "samples": 3, "finalists": 2, "final_seeds": 2}
TABLE: dict[str | tuple[str, int], float | str] = {
    **{reward(number): float(number) for number in range(1, 12)},
    reward(100): 6.0,  # human
    reward(200): 1.0,  # sparse
}


class PoorDesigner(ScriptedDesigner):
    """Has money for a number of requests, over all processes of a run."""

    def __init__(self, run: Run, sources: list[str], requests: int, **options: Any) -> None:
        super().__init__(sources, concurrent=True, **options)
        self.left = requests - len(run.archive.attempts())
        self.closed = False

    def spent(self) -> bool:
        return self.closed

    async def propose(self, request: DesignRequest) -> Proposal:
        self._pay()
        return await super().propose(request)

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal:
        self._pay()
        return await super().revise(request, rejected, verdict)

    def _pay(self) -> None:
        if self.left <= 0 or self.closed:
            self.closed = True
            raise BudgetSpentError("no more requests")
        self.left -= 1


def search(
    run: Run,
    sources: list[str],
    requests: int,
    fuse: Fuse | None = None,
    mended: dict[str, str] | None = None,
) -> ScriptedSearch:
    known = sum(attempt.revision == 0 for attempt in run.archive.attempts())
    designer = PoorDesigner(run, sources[known:], requests, fuse=fuse, mended=mended)
    return ScriptedSearch(run, designer, TableTrials(TABLE, fuse), fuse=fuse, spent=designer.spent)


async def test_what_is_paid_for_is_trained_and_scored_and_no_generation_follows(
    make_run: MakeRun,
) -> None:
    run = make_run(**SETTINGS)
    done = search(run, [reward(number) for number in range(1, 10)], requests=4)
    await done.see_through()
    assert [row[0] for row in rows(run)] == ["1-01", "1-02", "1-03", "2-01"]
    finals = Counter(training.name for training in run.archive.trainings())
    assert [finals[name] for name in ("2-01", "human", "sparse")] == [2, 2, 2]


async def test_without_money_for_one_request_the_error_says_so(make_run: MakeRun) -> None:
    run = make_run(**SETTINGS)
    with pytest.raises(SearchFailedError, match="left no room for a single request") as caught:
        await search(run, [reward(1)], requests=0).engine.generations()
    assert "--max-cost" in caught.value.hint


@pytest.mark.parametrize(
    "point",
    [("propose", 4), ("trial", 1), ("trained", 6)],
)
async def test_killed_and_resumed_it_ends_the_same(
    make_run: MakeRun, point: tuple[str, int]
) -> None:
    sources = [reward(number) for number in range(1, 10)]
    unbroken, broken = make_run(**SETTINGS), make_run(**SETTINGS)
    await search(unbroken, sources, requests=5).see_through()
    assert len(rows(unbroken)) == 5
    with pytest.raises(BaseExceptionGroup) as caught:
        await search(broken, sources, requests=5, fuse=Fuse(*point)).see_through()
    assert caught.group_contains(Killed)
    broken.archive.close()
    again = open_run(broken.folder)
    await search(again, sources, requests=5).see_through()
    assert rows(again) == rows(unbroken)
    scores = [
        [(each.name, each.seed) for each in run.archive.trainings()] for run in (again, unbroken)
    ]
    assert scores[0] == scores[1]


SETTINGS_OUTAGE: dict[str, Any] = {"iterations": 3, "samples": 4, "finalists": 0}
SETTINGS_OUTAGE |= {"revisions": 0, "novelty": False}


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
    run, clock = make_run(**SETTINGS_OUTAGE, schedule=schedule), Clock()
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
