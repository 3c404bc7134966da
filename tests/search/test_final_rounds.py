"""Finalists get fresh seeds as long as they may win, and the winner gets all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from scripted_search import Fuse, Killed, ScriptedDesigner, ScriptedSearch, TableTrials, reward

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.records import Strength
from eureka_agent.search.final import next_round
from eureka_agent.search.seeds import final_seeds
from eureka_agent.search.summary import best_attempt

MakeRun = Callable[..., Run]
Table = dict[str | tuple[str, int], float | str]
SEEDS = final_seeds(5)
SETTINGS = {"iterations": 1, "samples": 4, "finalists": 2, "final_seeds": 5}
IN_THE_SEARCH = (1.0, 9.0, 8.9, 1.5)
"""Fitness of `reward(1)` to `reward(4)`: 1-02 and 1-03 are the finalists, and close together."""


def table(**finals: float | str) -> Table:
    """The search's fitness, and that of finalists from every fresh seed, as `second=…` says."""
    sources = {"second": reward(2), "third": reward(3)}
    found: Table = {reward(place): each for place, each in enumerate(IN_THE_SEARCH, 1)}
    return found | {(sources[name], seed): each for name, each in finals.items() for seed in SEEDS}


def search_on(run: Run, found: Table, fuse: Fuse | None = None) -> ScriptedSearch:
    known = len(run.archive.attempts())
    designer = ScriptedDesigner([reward(weight) for weight in range(known + 1, 5)])
    return ScriptedSearch(run, designer, TableTrials(found, fuse))


def seeds_of(run: Run) -> Counter[str]:
    """Number of fresh seeds of each finalist, each seed once."""
    trained = [(each.name, each.seed) for each in run.archive.trainings()]
    assert len(trained) == len(set(trained))
    return Counter(name for name, _ in trained)


async def finals_of(run: Run, found: Table) -> Counter[str]:
    search = search_on(run, found)
    await search.finals.finalists(await search.engine.generations())
    return seeds_of(run)


def test_who_is_far_behind_gets_no_seed() -> None:
    # seeds are about 0.1 apart, rewards 10
    scores = {"a": [30.0, 30.1], "b": [20.0, 20.1], "c": [10.0, 9.9], "d": [0.0, 0.1]}
    assert next_round(scores, {"a": 0, "b": 0, "c": 0}, 5) == {"a": 5}
    # what was trained before counts
    assert next_round(scores, {"a": 2, "b": 0, "c": 0}, 5) == {"a": 5}
    assert next_round(scores, {"a": 5, "b": 0, "c": 0}, 5) == {}


def test_a_leader_that_disappoints_is_replaced() -> None:
    scores = {"a": [30.0, *[5.0] * 5], "b": [20.0], "c": [19.9], "d": [0.0, 0.1], "e": [1.0, 0.9]}
    wanted = next_round(scores, {"a": 5, "b": 0}, 5)
    assert "a" not in wanted
    assert wanted["b"] > 0


def test_of_rewards_that_are_level_the_first_with_all_seeds_is_the_winner() -> None:
    """The search's leader was lucky and falls back to the others, none of which is likely to beat
    it by much."""
    rest = {name: [14.0 + 0.1 * place] for place, name in enumerate("defghij")}
    luck = {"a": [15.6, 14.3, 14.8, 14.1, 14.6, 14.4], "c": [14.9, 14.0, 14.3]}
    level = {"b": [15.0, 14.7, 14.5]}  # a mean of 14.73, and a's is 14.63
    assert next_round(luck | level | rest, {"a": 5, "b": 2, "c": 2}, 5) == {}
    better = {"b": [15.0, 15.7, 15.5]}
    assert next_round(luck | better | rest, {"a": 5, "b": 2, "c": 2}, 5) == {"b": 5}


async def test_a_winner_has_all_seeds_and_one_that_falls_back_only_some(make_run: MakeRun) -> None:
    run = make_run(**SETTINGS)
    # 1-02 leads in the search and after it, and 1-03 falls back from its first fresh seed
    trained = await finals_of(run, table(second=9.0, third=-50.0))
    assert trained == {"1-02": 5, "1-03": 1}
    best = best_attempt(run)
    assert best is not None
    assert best.id == "1-02"


async def test_the_winner_of_the_search_that_falls_back_is_replaced_after_all_its_seeds(
    make_run: MakeRun,
) -> None:
    run = make_run(**SETTINGS)
    alone = table(second=-50.0, third=8.0)
    assert await finals_of(run, alone) == {"1-02": 5, "1-03": 5}
    assert [each.name for each in search_on(run, {}).finals.scores()] == ["1-03", "1-02"]


async def test_a_seed_that_failed_counts_as_the_worst(make_run: MakeRun) -> None:
    failed = await finals_of(make_run(**SETTINGS), table(second="went NaN", third=8.0))
    worst = min(IN_THE_SEARCH)
    assert failed == await finals_of(make_run(**SETTINGS), table(second=worst, third=8.0))
    assert failed["1-03"] == 5


async def test_of_finalists_that_come_to_the_same_one_gets_its_seeds(make_run: MakeRun) -> None:
    run = make_run(**SETTINGS)
    same = table(second=9.0, third=9.0) | {reward(3): 9.0}
    assert await finals_of(run, same) == {"1-02": 5}
    # until some of its seeds are lower
    other = make_run(**SETTINGS)
    lower = same | {(reward(2), seed): 0.0 for seed in SEEDS[3:]}
    assert (await finals_of(other, lower))["1-03"] == 5


async def test_where_a_person_ranks_all_finalists_get_all_seeds(make_run: MakeRun) -> None:
    run = make_run(**SETTINGS)
    search = search_on(run, table(second=9.0, third=1.0))
    strength = Strength(mean=1.0, deviation=0.1, by="choices")
    attempts = [
        each.model_copy(update={"strength": strength}) for each in await search.engine.generations()
    ]
    await search.finals.finalists(attempts)
    assert seeds_of(run) == {"1-02": 5, "1-03": 5}


@pytest.mark.parametrize("trained", [1, 3, 6])
async def test_killed_in_a_round_and_resumed_it_trains_the_same_seeds(
    make_run: MakeRun, trained: int
) -> None:
    found = table(second=1.0, third=8.0)
    unbroken = make_run(**SETTINGS)
    assert (await finals_of(unbroken, found)).total() == 10
    run = make_run(**SETTINGS)
    attempts = await search_on(run, found).engine.generations()
    with pytest.raises(BaseExceptionGroup) as caught:
        await search_on(run, found, Fuse("trained", trained)).finals.finalists(attempts)
    assert caught.group_contains(Killed)
    assert seeds_of(run).total() < 10
    resumed = open_run(run.folder)
    await search_on(resumed, found).finals.finalists(resumed.archive.attempts()[1:3])
    assert finals(resumed) == finals(unbroken)
    assert resumed.archive.state.final_rounds == unbroken.archive.state.final_rounds


def finals(run: Run) -> Mapping[tuple[str, int], Any]:
    """Fitness of the final trainings, by attempt and seed."""
    return {
        (each.name, each.seed): each.outcome and each.outcome.fitness
        for each in run.archive.trainings()
    }
