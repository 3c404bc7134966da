"""The best so far are trained again before one of them is a parent or a finalist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from scripted_search import ScriptedDesigner, ScriptedSearch, TableTrials, reward

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.journal.entries import ConfirmationStarted, IterationEnded
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.strategies import STRATEGIES
from eureka_agent.search.summary import run_report
from eureka_agent.training_counts import TrainingCounts

MakeRun = Callable[..., Run]


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
    ended = [event.best for event in events if isinstance(event, IterationEnded) and event.best]
    assert ended == ["1-02", "1-02"]
    started = [event for event in events if isinstance(event, ConfirmationStarted)]
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
