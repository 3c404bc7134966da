"""Each designer of a generation is told something of its own, and the same again in a resumed
run."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest
from planned_attempts import planned
from rung_trials import RungTrials
from scripted_search import Fuse, Killed, ScriptedDesigner, ScriptedSearch, reward, rows
from stored_attempts import store_attempt

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.designer.llm_designer import opening
from eureka_agent.feedback_records import Wish
from eureka_agent.journal.entries import FeedbackGiven
from eureka_agent.records import Operator
from eureka_agent.search.briefing import Briefing
from eureka_agent.search.strategies import BestOfN, Strategy, strategy_of

MakeRun = Callable[..., Run]

# 10 iterations of 10 × 10 steps with a checkpoint after each: rungs at 400 and 700 env steps
SETTINGS = {
    "iterations": 3,
    "samples": 6,
    "rungs": (0.4, 0.7),
    "confirm": 0,
    "finalists": 0,
    "env_steps": 1000,
    "num_envs": 10,
    "horizon": 10,
    "scoring_episodes": 5,
}
WEIGHTS = range(1, 19)
SCRIPT = [reward(weight) for weight in WEIGHTS]
FITNESS = {reward(weight): 1.0 if weight in (2, 8) else 8.0 + weight / 20 for weight in WEIGHTS}


def search_with(run: Run, fuse: Fuse) -> ScriptedSearch:
    known = sum(attempt.revision == 0 for attempt in run.archive.attempts())
    designer = ScriptedDesigner(SCRIPT[known:], concurrent=True)
    return ScriptedSearch(run, designer, RungTrials(FITNESS, fuse))


def prompts(search: ScriptedSearch) -> dict[str, str]:
    """Prompts for each attempt."""
    return {request.attempt: opening(request)[1].content for request in search.designer.requests}


async def test_no_two_proposals_are_asked_for_in_the_same_words(make_run: MakeRun) -> None:
    search = search_with(make_run(**SETTINGS), Fuse())
    await search.engine.generations()
    assert len(set(prompts(search).values())) == 18
    fresh = [request for request in search.designer.requests if request.operator is Operator.FRESH]
    assert len(fresh) == 6


async def requests(
    run: Run, strategy: Strategy, iteration: int, samples: range
) -> list[DesignRequest]:
    """Requests to designers for these places of a generation."""
    briefing = Briefing(run, strategy, run.archive.append)
    return [await briefing.request(plan) for plan in briefing.plan(iteration, samples)]


def test_the_prompt_that_is_printed_is_of_the_generation_after_the_last(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    requests_of = importlib.import_module("prompt").requests_of
    run = make_run(**SETTINGS, drafts=2)
    told = []
    for iteration in range(2):
        for sample in range(6):
            store_attempt(run.archive, planned(iteration, sample, float(iteration)))
        told.append(
            {parent.id for request in requests_of(str(run.folder)) for parent in request.parents}
        )
    # the second generation's parents are of the first one, the third's, whose fitness is higher, of
    # the second
    assert [{name[0] for name in names} for names in told] == [{"0"}, {"1"}]
    assert {request.attempt for request in requests_of(str(run.folder))} == {
        f"3-{sample:02}" for sample in range(1, 7)
    }


async def test_later_generations_without_parents_go_on_with_other_angles(make_run: MakeRun) -> None:
    run = make_run(**SETTINGS)
    first, second = [await requests(run, BestOfN(), iteration, range(6)) for iteration in (0, 1)]
    assert [request.angle for request in (*first, *second)] == list(range(12))
    assert [request.number for request in second] == list(range(1, 7))
    again = await requests(run, BestOfN(), 0, range(6, 12))
    assert len({opening(request)[1].content for request in (*first, *again)}) == 12, (
        "a second round of the same generation"
    )


async def test_what_a_person_says_is_about_the_best_so_far(make_run: MakeRun) -> None:
    run = make_run(**SETTINGS, drafts=2)
    for sample in range(6):
        store_attempt(run.archive, planned(0, sample, float(sample)))
    strategies = [strategy_of(run.settings, refined=refined) for refined in (False, True)]
    briefing = Briefing(run, strategies[0], lambda entry: None, refining=strategies[1])
    fresh = briefing.plan(1, range(6))
    assert {plan.parents for plan in fresh} == {()}, "drafts of the offline designer are compared"
    run.archive.append(FeedbackGiven(who="ada", feedback=Wish(wants="be gentle")))
    assert briefing.plan(1, range(6))[0].parents == ("0-5",)


@pytest.mark.parametrize("place", [5, 14])
async def test_a_resumed_run_asks_in_the_same_bytes(make_run: MakeRun, place: int) -> None:
    whole = search_with(make_run(**SETTINGS), Fuse())
    await whole.engine.generations()
    run = make_run(**SETTINGS)
    killed = search_with(run, Fuse("trained", place))
    with pytest.raises((Killed, BaseExceptionGroup)):
        await killed.engine.generations()
    asked = prompts(killed)
    resumed = search_with(open_run(run.folder), Fuse())
    await resumed.engine.generations()
    asked |= prompts(resumed)
    assert asked == prompts(whole)
    assert rows(resumed.run) == rows(whole.run)


async def test_a_parent_comes_with_what_was_changed(make_run: MakeRun) -> None:
    search = search_with(make_run(**SETTINGS), Fuse())
    await search.engine.generations()
    parents = {
        parent.id: parent for request in search.designer.requests[12:] for parent in request.parents
    }
    # 2-06 with weight 12 and a fitness of 8.6 is the best of two generations, and was made from
    # 1-05 with 5 and 8.25
    assert (
        parents["2-06"].changes[0]
        == "2-06 itself, made from 1-05: other form of closeness: fitness 8.25 → 8.6 (one training"
        " against one training)"
    )
    assert parents["2-06"].episodes == search.run.settings.evaluation_episodes
