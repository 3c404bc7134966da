"""A search that is killed at any point ends as an unbroken one; the best are trained again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from scripted_search import (
    IMPORTING,
    MISSPELT,
    Fuse,
    Killed,
    ScriptedDesigner,
    ScriptedSearch,
    TableTrials,
    reward,
    rows,
)

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.journal import entries
from eureka_agent.records import Stage
from eureka_agent.search.seeds import derive_seed, final_seeds
from eureka_agent.search.strategies import STRATEGIES
from eureka_agent.search.summary import run_report
from eureka_agent.training_counts import TrainingCounts

MakeRun = Callable[..., Run]

SETTINGS = {"iterations": 2, "samples": 2, "revisions": 1, "retry_rounds": 1}
SETTINGS |= {"confirm": 1, "confirm_seeds": 2, "finalists": 2, "final_seeds": 2}
SCRIPT = [IMPORTING, reward(1), reward(2), MISSPELT, reward(4), reward(5)]
MENDED = {IMPORTING: "import sys\n", MISSPELT: reward(3)}
TABLE: dict[str | tuple[str, int], float | str] = {
    reward(1): "went NaN",
    reward(2): 2.0,
    reward(3): 5.0,
    reward(4): 3.0,
    reward(5): 7.0,
    # the first generation's best disappoints when it is trained again: its mean of 1 is below that
    # of the one behind it
    (reward(3), derive_seed(0, "repeat", "1-04-r1", 0)): -1.0,
    (reward(3), derive_seed(0, "repeat", "1-04-r1", 1)): -1.0,
    # the winner of the search disappoints from fresh seeds, so another finalist gets them too
    **{(reward(5), seed): -9.0 for seed in final_seeds(2)},
    reward(100): 6.0,  # human
    reward(200): 1.0,  # sparse
}
ATTEMPTS = [
    ("1-01", "rejected", IMPORTING, None),
    ("1-01-r1", "rejected", "import sys\n", None),
    ("1-02", "failed", reward(1), None),
    ("1-03", "trained", reward(2), 2.0),  # the first generation's second round
    ("1-04", "rejected", MISSPELT, None),
    ("1-04-r1", "trained", reward(3), 1.0),
    ("2-01", "trained", reward(4), 3.0),
    ("2-02", "trained", reward(5), 7.0),
]
TRAINED_IN_THE_SEARCH = Counter(["1-02", "1-03", "2-01", "2-02", *["1-04-r1"] * 3])
TRAINED_FROM_BOTH_SEEDS = Counter(
    ["2-01", "2-02", "human", "sparse"] * 2
)  # 7 and 3 are the best two
SCORES = [("2-01", 3.0), ("2-02", -9.0), ("human", 6.0), ("sparse", 1.0)]
POINTS = {
    "propose": 6,
    "revise": 2,
    "judge": 8,
    # 5 attempts, the best of the first generation twice more, 2 finalists, one after the other, and
    # 2 baselines from 2 seeds
    "trial": 15,
    "trained": 15,
    "ended": 8,  # an attempt's last stage has just been archived
    "repeated": 2,
}
"""Every point at which the search is killed, by kind, with how often an unbroken search passes
it."""


def search_with(run: Run, fuse: Fuse) -> ScriptedSearch:
    """The fresh objects of one process. What the archive has is not asked for again, so the script
    goes on where the archive ends."""
    known = sum(attempt.revision == 0 for attempt in run.archive.attempts())
    designer = ScriptedDesigner(SCRIPT[known:], MENDED, fuse=fuse)

    def observe(event: Any) -> None:
        if isinstance(event, entries.AttemptEnded) or (
            isinstance(event, entries.Judged) and not event.verdict.accepted
        ):
            fuse("ended")
        if isinstance(event, entries.AttemptRepeated):
            fuse("repeated")

    return ScriptedSearch(run, designer, TableTrials(TABLE, fuse), fuse=fuse, observer=observe)


def final_rows(run: Run) -> list[tuple[str, float | None]]:
    """Name and fitness of every final training, by name."""
    return [
        (training.name, None if training.outcome is None else training.outcome.fitness)
        for training in run.archive.trainings()
    ]


async def test_the_unbroken_search_passes_every_point_as_often_as_it_is_killed_there(
    make_run: MakeRun,
) -> None:
    run, fuse = make_run(**SETTINGS), Fuse()
    search = search_with(run, fuse)
    await search.see_through()
    assert rows(run) == ATTEMPTS
    assert Counter(search.trials.labels) == TRAINED_IN_THE_SEARCH + TRAINED_FROM_BOTH_SEEDS
    assert final_rows(run) == [row for row in SCORES for _ in range(2)]
    assert fuse.calls == POINTS


@pytest.mark.parametrize(
    ("kind", "number"),
    [(kind, n) for kind, times in POINTS.items() for n in sorted({1, (times + 1) // 2, times})],
)
async def test_killed_and_resumed_it_ends_the_same_and_does_nothing_twice(
    make_run: MakeRun, kind: str, number: int
) -> None:
    run = make_run(**SETTINGS)
    fuse = Fuse(kind, number)
    killed = False
    try:
        await search_with(run, fuse).see_through()
    except* Killed:
        killed = True
    assert killed

    resumed = open_run(run.folder)
    attempts = resumed.archive.attempts()
    known = Counter(
        attempt.id
        for attempt in attempts
        if attempt.outcome is not None or attempt.stage is Stage.FAILED
    )
    known += Counter(attempt.id for attempt in attempts for _ in attempt.repeats)
    known += Counter(training.name for training in resumed.archive.trainings())
    fuse = Fuse()
    search = search_with(resumed, fuse)
    await search.see_through()

    assert rows(resumed) == ATTEMPTS
    assert final_rows(resumed) == [row for row in SCORES for _ in range(2)]
    assert Counter(search.trials.labels) == TRAINED_IN_THE_SEARCH + TRAINED_FROM_BOTH_SEEDS - known
    assert fuse.calls["judge"] == 8 - sum(
        attempt.stage is not Stage.PROPOSED for attempt in attempts
    )
    assert fuse.calls["propose"] == 6 - sum(attempt.revision == 0 for attempt in attempts)
    assert fuse.calls["revise"] == 2 - sum(attempt.revision == 1 for attempt in attempts)


def again(source: str, attempt: str, index: int = 0) -> tuple[str, int]:
    """Key of a repeat's result in the table of trials."""
    return source, derive_seed(0, "repeat", attempt, index)


def repeats(run: Run) -> dict[str, list[tuple[int, float | None]]]:
    """Iteration and fitness of the repeats of every attempt that has any."""
    return {
        attempt.id: [
            (repeat.iteration, (repeat.outcome and repeat.outcome.fitness) or None)
            for repeat in attempt.repeats
        ]
        for attempt in run.archive.attempts()
        if attempt.repeats
    }


async def test_the_next_generation_starts_from_the_best_mean_not_from_the_luckiest_training(
    make_run: MakeRun,
) -> None:
    run = make_run(iterations=2, samples=3, confirm=2, confirm_seeds=1)
    sources = [reward(weight) for weight in range(1, 7)]
    table: dict[str | tuple[str, int], float | str] = dict(
        zip(sources, (8.0, 7.0, 5.0, 1.0, 1.0, 1.0), strict=True)
    )
    table[again(sources[0], "1-01")] = 2.0  # a mean of 5
    table[again(sources[1], "1-02")] = 6.0  # a mean of 6.5
    designer, trials, events = ScriptedDesigner(sources), TableTrials(table), list[Any]()
    await ScriptedSearch(run, designer, trials, observer=events.append).engine.generations()
    assert [parent.id for parent in designer.requests[3].parents] == ["1-02"]
    parent = designer.requests[3].parents[0]
    assert (parent.fitness, parent.fitness_per_seed) == (6.5, (7.0, 6.0))
    assert repeats(run) == {"1-01": [(0, 2.0)], "1-02": [(0, 6.0)]}
    # the second generation has none among the best two, so nothing is trained again after it
    assert Counter(request.kind for request in trials.requests) == {"search": 6, "repeat": 2}
    ended = [
        event.best for event in events if isinstance(event, entries.IterationEnded) and event.best
    ]
    assert ended == ["1-02", "1-02"]
    started = [event for event in events if isinstance(event, entries.ConfirmationStarted)]
    assert [(event.iteration, event.trainings, list(event.attempts)) for event in started] == [
        (0, 2, ["1-01", "1-02"])
    ]


async def test_a_newcomer_among_the_best_is_trained_again_and_an_old_one_not_twice(
    make_run: MakeRun,
) -> None:
    run = make_run(iterations=2, samples=2, confirm=1, confirm_seeds=3, finalists=0)
    sources = [reward(weight) for weight in range(1, 5)]
    trials = TableTrials(dict(zip(sources, (2.0, 1.0, 3.0, 0.5), strict=True)))
    await ScriptedSearch(run, ScriptedDesigner(sources), trials).engine.generations()
    assert repeats(run) == {"1-01": [(0, 2.0)] * 3, "2-01": [(1, 3.0)] * 3}
    # every training has a seed of its own
    assert len({request.seed for request in trials.requests}) == 4 + 6
    assert run_report(run).cost.search_trainings == 4 + 6
    for request in trials.requests:
        if request.kind == "repeat":
            assert request.folder.parts[-2:] == (request.label, f"seed-{request.seed}")


@pytest.mark.parametrize(
    ("settings", "confirmed"),
    [
        ({"strategy": "greedy"}, [0, 1]),  # two generations are made from their order
        ({"strategy": "greedy", "finalists": 0}, [0, 1, 2]),  # no finals show who was lucky
        ({"strategy": "best-of-n"}, []),  # fresh rewards need no order
        ({"strategy": "best-of-n", "finalists": 0}, [2]),
        ({"strategy": "greedy", "iterations": 1}, []),
    ],
)
async def test_the_best_are_trained_again_only_where_something_depends_on_it(
    make_run: MakeRun, settings: dict[str, Any], confirmed: list[int]
) -> None:
    run = make_run(**{"iterations": 3, "samples": 2, "confirm": 1, **settings})
    sources = [reward(weight) for weight in range(1, 7)]
    trials = TableTrials({source: float(rise) for rise, source in enumerate(sources)})
    strategy = STRATEGIES[run.settings.strategy]()
    search = ScriptedSearch(run, ScriptedDesigner(sources), trials, strategy=strategy)
    await search.engine.generations()
    # each generation's last is the best so far, and new
    assert [each.iteration for each in run.archive.state.confirmations] == confirmed
    made = TrainingCounts.of(run.settings)
    assert made.confirmed == len(confirmed)
    likely = made.likely(run.settings.iterations) - made.outside_generations
    assert likely == len(trials.requests)


async def test_a_repeat_that_fails_is_recorded_and_the_fitness_is_that_of_the_others(
    make_run: MakeRun,
) -> None:
    run = make_run(iterations=1, samples=2, confirm=1, confirm_seeds=2, finalists=0)
    sources = [reward(1), reward(2)]
    table: dict[str | tuple[str, int], float | str] = {sources[0]: 4.0, sources[1]: 1.0}
    table[again(sources[0], "1-01", 0)] = "went NaN"
    table[again(sources[0], "1-01", 1)] = 2.0
    await ScriptedSearch(run, ScriptedDesigner(sources), TableTrials(table)).engine.generations()
    attempt = run.archive.attempt("1-01")
    assert attempt is not None
    assert attempt.fitness == 3.0
    assert sorted(repeat.failure for repeat in attempt.repeats) == ["", "went NaN"]


async def test_what_was_confirmed_late_is_not_chosen_otherwise_when_the_run_is_resumed(
    make_run: MakeRun,
) -> None:
    """After the first generation, 1-01 is confirmed and falls back. After the second, 1-02 leads,
    is confirmed and falls back too."""
    run = make_run(iterations=3, samples=2, confirm=1, confirm_seeds=1, finalists=0)
    sources = [reward(weight) for weight in range(1, 7)]
    table: dict[str | tuple[str, int], float | str] = dict(
        zip(sources, (5.0, 4.0, 1.0, 0.5, 0.4, 0.3), strict=True)
    )
    table[again(sources[0], "1-01")] = -5.0
    table[again(sources[1], "1-02")] = -10.0
    await ScriptedSearch(run, ScriptedDesigner(sources), TableTrials(table)).engine.generations()
    expected = {"1-01": [(0, -5.0)], "1-02": [(1, -10.0)], "2-01": [(2, 1.0)]}
    assert repeats(run) == expected
    trained_nothing = TableTrials({})
    resumed = open_run(run.folder)
    best = await ScriptedSearch(resumed, ScriptedDesigner([]), trained_nothing).engine.generations()
    assert trained_nothing.requests == []
    assert repeats(resumed) == expected
    assert best[0].id == "2-01"
