from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from outcomes import make_outcome
from scripted_search import Fuse, Killed, ScriptedDesigner, ScriptedSearch, TableTrials, reward

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.journal.entries import Notice
from eureka_agent.journal.progress import TrainingEnded
from eureka_agent.journal.state import RunState
from eureka_agent.rewards import baseline
from eureka_agent.search.final import keep_best
from eureka_agent.search.seeds import final_seeds
from eureka_agent.search.summary import best_attempt

MakeRun = Callable[..., Run]
Table = dict[str | tuple[str, int], float | str]

FIRST, SECOND, THIRD = final_seeds(3)
HUMAN, SPARSE = reward(100), reward(200)
"""The baselines of the runs that `make_run` makes."""


USUAL: Table = {reward(1): 1.0, reward(2): 4.0, reward(3): 2.0, reward(4): 3.0}
"""Results of a search whose best is 1-02."""


def four_proposals(run: Run, table: Table, **options: Any) -> ScriptedSearch:
    """A search whose attempts 1-01 to 1-04 are `reward(1)` to `reward(4)`."""
    designer = ScriptedDesigner([reward(weight) for weight in range(1, 5)])
    return ScriptedSearch(run, designer, TableTrials(table), **options)


def trained(search: ScriptedSearch, kind: str) -> Counter[tuple[str, int]]:
    """Label and seed of the trainings of this kind."""
    return Counter(
        (request.label, request.seed) for request in search.trials.requests if request.kind == kind
    )


async def test_the_best_of_the_search_is_trained_once_from_every_final_seed(
    make_run: MakeRun,
) -> None:
    run = make_run(iterations=1, samples=4, finalists=2, final_seeds=3)
    search = four_proposals(run, USUAL | {reward(2): 8.0, HUMAN: 6.0, SPARSE: 1.0})
    await search.see_through()
    seeds = (FIRST, SECOND, THIRD)
    # the other finalist is too far behind to win
    assert trained(search, "final") == Counter(("1-02", seed) for seed in seeds)
    assert trained(search, "human") == Counter(("human", seed) for seed in seeds)
    assert trained(search, "sparse") == Counter(("sparse", seed) for seed in seeds)
    search_seeds = {request.seed for request in search.trials.requests if request.kind == "search"}
    assert len(search_seeds) == 4
    assert not search_seeds & set(seeds)
    # only the environment's own rewards may read private variables; they wait for slots that
    # candidates leave free
    told = {
        (request.kind, request.reward.trusted, request.reward.author, request.priority)
        for request in search.trials.requests
    }
    assert told == {
        ("search", False, "scripted", 0),
        ("final", False, "scripted", 0),
        ("human", True, "environment", 1),
        ("sparse", True, "environment", 1),
    }
    for name, source in (("human", HUMAN), ("sparse", SPARSE)):
        assert (run.folder / "baselines" / name / "reward.py").read_text() == source


async def test_final_trainings_that_are_known_are_not_made_again_after_a_restart(
    make_run: MakeRun,
) -> None:
    run = make_run(iterations=1, samples=4, finalists=2, final_seeds=3)
    table: Table = {reward(1): 1.0, reward(2): 8.0, reward(3): "diverged", reward(4): 2.0}
    # the best of the search disappoints from fresh seeds, so the other finalist gets them too
    table |= {(reward(2), seed): -9.0 for seed in (FIRST, SECOND, THIRD)}
    table[reward(4), SECOND] = "went NaN"
    search = four_proposals(run, table)
    attempts = await search.engine.generations()
    await search.finals.finalists(attempts[:1])  # 1-02
    again = four_proposals(open_run(run.folder), table)
    await again.finals.finalists(attempts[:2])  # 1-02 and 1-04
    assert again.trials.labels == ["1-04"] * 3
    failed = [training for training in run.archive.trainings() if training.outcome is None]
    assert [(training.name, training.seed, training.failure) for training in failed] == [
        ("1-04", SECOND, "went NaN")
    ]
    once_more = four_proposals(open_run(run.folder), table)  # what has failed is known too
    await once_more.finals.finalists(attempts[:2])
    assert once_more.trials.requests == []


async def test_a_baseline_of_an_earlier_run_is_not_trained(make_run: MakeRun) -> None:
    settings = {"iterations": 1, "samples": 4, "final_seeds": 2}
    earlier = make_run(**settings)
    cached = four_proposals(earlier, {}).cache
    policy = earlier.folder / "policy.safetensors"
    policy.write_text("an earlier policy")
    cached.put(baseline(HUMAN), FIRST, make_outcome(6.5), policy)

    run = make_run(**settings)
    search = four_proposals(run, {HUMAN: 6.0, SPARSE: 1.0})
    await search.finals.baselines()
    assert Counter(search.trials.labels) == Counter(["human", "sparse", "sparse"])
    known = {(training.name, training.seed): training for training in run.archive.trainings()}
    found = {
        key: (training.outcome and training.outcome.fitness, training.cached)
        for key, training in known.items()
    }
    assert found == {
        ("human", FIRST): (6.5, True),
        ("human", SECOND): (6.0, False),
        ("sparse", FIRST): (1.0, False),
        ("sparse", SECOND): (1.0, False),
    }
    kept = run.folder / f"baselines/human/seed-{FIRST}/policy.safetensors"
    assert kept.read_text() == "an earlier policy"
    # what this run has trained, the next one need not
    told: list[Any] = []
    third = four_proposals(make_run(**settings), {}, observer=told.append)
    await third.finals.baselines()
    assert third.trials.requests == []
    lines = [each.line(RunState()) for each in told if isinstance(each, TrainingEnded)]
    assert len(lines) == 4
    assert "training of the human reward is taken from an earlier run: fitness 6.50" in lines
    # a resumed run tells again of what it had trained itself
    told.clear()
    await four_proposals(open_run(run.folder), {}, observer=told.append).finals.baselines()
    assert Counter(event.taken_from for event in told) == {
        "an earlier run": 1,
        "what this run had trained before": 3,
    }


async def test_a_failed_seed_of_a_baseline_is_recorded_and_tried_by_the_next_run(
    make_run: MakeRun,
) -> None:
    run = make_run(final_seeds=3)
    table: Table = {HUMAN: 6.0, (HUMAN, SECOND): "went NaN", (HUMAN, THIRD): 9.0, SPARSE: 1.0}
    warned: list[Any] = []
    search = four_proposals(run, table, observer=warned.append)
    await search.finals.baselines()
    # nobody is warned that a failure could not be kept for later runs
    assert not [each for each in warned if isinstance(each, Notice)]
    failed = [training for training in run.archive.trainings() if training.outcome is None]
    assert [(training.name, training.seed, training.failure) for training in failed] == [
        ("human", SECOND, "went NaN")
    ]
    human = next(score for score in search.finals.scores() if score.name == "human")
    by_seed = dict(zip(human.seeds, human.fitness, strict=True))
    assert by_seed == {FIRST: 6.0, SECOND: None, THIRD: 9.0}
    assert human.mean == pytest.approx(7.5)  # of 6 and 9
    told: list[Any] = []
    resumed = four_proposals(open_run(run.folder), {}, observer=told.append)
    await resumed.finals.baselines()
    assert resumed.trials.requests == []
    ended = Counter((event.label, event.training, event.fitness, event.failure) for event in told)
    assert ended == {
        ("human", "human", 6.0, ""): 1,
        ("human", "human", None, "went NaN"): 1,
        ("human", "human", 9.0, ""): 1,
        ("sparse", "sparse", 1.0, ""): 3,
    }
    later = four_proposals(make_run(final_seeds=3), {HUMAN: 7.0})
    await later.finals.baselines()
    assert [each.job for each in later.trials.requests] == [f"human@{SECOND}"]


async def test_baselines_are_known_when_all_have_ended_and_give_way_to_candidates(
    make_run: MakeRun,
) -> None:
    search = four_proposals(
        make_run(final_seeds=2), {HUMAN: 6.0, (HUMAN, SECOND): "went NaN", SPARSE: 1.0}
    )
    known = asyncio.create_task(search.finals.known())
    await asyncio.sleep(0)
    assert not known.done()
    await search.finals.baselines()
    await known
    assert len(search.run.archive.trainings()) == 4
    assert {request.priority for request in search.trials.requests} == {1}


async def test_the_scores_of_the_final_decide_which_attempt_is_the_best(make_run: MakeRun) -> None:
    run = make_run(iterations=1, samples=4, finalists=3, final_seeds=2)
    table: Table = {reward(1): 9.0, reward(2): 8.0, reward(3): 7.0, reward(4): 1.0}
    table |= {HUMAN: 6.0, SPARSE: 2.0}
    finals: Table = {
        (reward(1), FIRST): 3.0,  # lucky in the search: mean 2
        (reward(1), SECOND): 1.0,
        (reward(2), FIRST): "went NaN",
        (reward(2), SECOND): "went NaN",
        (reward(3), FIRST): 4.0,  # mean 5
        (reward(3), SECOND): 6.0,
    }
    search = four_proposals(run, {**table, **finals})
    attempts = await search.engine.generations()
    before = best_attempt(run)
    assert before is not None
    assert before.id == attempts[0].id == "1-01"
    await search.finals.baselines()
    await search.finals.finalists(attempts[:3])
    scores = search.finals.scores()
    assert [(score.name, score.mean) for score in scores] == [
        ("1-03", 5.0),
        ("1-01", 2.0),
        ("1-02", None),
        ("human", 6.0),
        ("sparse", 2.0),
    ]
    best = best_attempt(run)
    assert best is not None
    assert best.id == "1-03"


@pytest.mark.parametrize(
    ("results", "typical"),
    [
        ((1.0, 9.5, 5.0), THIRD),  # mean 5.17, which 5 is nearest to
        ((-8.0, -9.0, -1.0), FIRST),  # mean -6
        (("went NaN", 3.0, "went NaN"), SECOND),  # the only one there is
    ],
)
async def test_the_best_policy_kept_is_the_one_nearest_to_the_mean(
    make_run: MakeRun, results: tuple[float | str, ...], typical: int
) -> None:
    run = make_run(iterations=1, samples=4, final_seeds=3)
    finals: Table = {
        (reward(2), seed): result
        for seed, result in zip((FIRST, SECOND, THIRD), results, strict=True)
    }
    search = four_proposals(run, USUAL | finals)
    attempts = await search.engine.generations()
    await search.finals.finalists(attempts[:1])
    keep_best(run, attempts[0], run.archive.trainings())
    assert (run.folder / "best/policy.safetensors").read_text() == f"policy of 1-02@{typical}"
    assert (run.folder / "best/reward.py").read_text() == reward(2)


@pytest.mark.parametrize("final", [False, True])
async def test_without_a_final_that_worked_the_policy_of_the_search_is_kept(
    make_run: MakeRun, final: bool
) -> None:
    run = make_run(iterations=1, samples=4, final_seeds=1)
    search = four_proposals(run, USUAL | {(reward(2), FIRST): "went NaN"})
    attempts = await search.engine.generations()
    if final:
        await search.finals.finalists(attempts[:1])
    keep_best(run, attempts[0], run.archive.trainings())
    kept = (run.folder / "best/policy.safetensors").read_text()
    assert kept == f"policy of 1-02@{attempts[0].seed}"


async def test_a_video_stays_as_long_as_its_policy_is_the_best(make_run: MakeRun) -> None:
    run = make_run(iterations=1, samples=4, finalists=0)
    search = four_proposals(run, USUAL)
    best, second, *_ = await search.engine.generations()
    keep_best(run, best, ())
    videos = [run.folder / "best" / name for name in ("video.mp4", "video.gif")]
    for video in videos:
        video.write_text("of the best")
    keep_best(run, best, ())
    assert all(video.is_file() for video in videos)
    keep_best(run, second, ())
    assert not any(video.exists() for video in videos)


async def test_a_final_killed_between_two_seeds_is_finished_with_the_one_that_is_missing(
    make_run: MakeRun,
) -> None:
    run = make_run(iterations=1, samples=4, finalists=1, final_seeds=2)
    table = USUAL
    attempts = await four_proposals(run, table).engine.generations()
    cut = ScriptedSearch(run, ScriptedDesigner([]), TableTrials(table, Fuse("trained", 2)))
    with pytest.raises(BaseExceptionGroup) as caught:
        await cut.finals.finalists(attempts[:1])
    assert caught.group_contains(Killed)
    (kept,) = run.archive.trainings()
    rest = four_proposals(open_run(run.folder), table)
    await rest.finals.finalists(attempts[:1])
    assert trained(rest, "final") == Counter([("1-02", FIRST if kept.seed == SECOND else SECOND)])
