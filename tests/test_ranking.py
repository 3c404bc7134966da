from __future__ import annotations

from collections.abc import Callable

import pytest

from eureka_agent.ranking import by_fitness, merits, ranked
from eureka_agent.records import Attempt, Repeat, Stage


def repeated(attempt: Attempt, *fitness: float | None) -> Attempt:
    """The attempt with repeats of these results; None is one that failed."""
    assert attempt.outcome is not None
    repeats = tuple(
        Repeat(
            iteration=0,
            seed=seed,
            outcome=None
            if value is None
            else attempt.outcome.model_copy(update={"fitness": value}),
            failure="went NaN" if value is None else "",
        )
        for seed, value in enumerate(fitness)
    )
    return attempt.model_copy(update={"repeats": repeats})


def test_ranking_takes_negative_fitness_for_what_it_is_and_leaves_failures_out(
    make_attempt: Callable[..., Attempt],
) -> None:
    attempts = [
        make_attempt(0, 0, -5.0),
        make_attempt(0, 1, -1.0),
        make_attempt(0, 2),
        make_attempt(0, 3, stage=Stage.FAILED),
    ]
    assert [attempt.id for attempt in ranked(attempts)] == ["1-02", "1-01"]


def test_equal_fitness_ranks_the_earlier_attempt_first(
    make_attempt: Callable[..., Attempt],
) -> None:
    attempts = [make_attempt(1, 0, 2.0), make_attempt(0, 3, 2.0), make_attempt(0, 1, 2.0)]
    assert [attempt.id for attempt in ranked(attempts)] == ["1-02", "1-04", "2-01"]


def test_the_fitness_of_a_repeated_attempt_is_the_mean_of_what_did_not_fail(
    make_attempt: Callable[..., Attempt],
) -> None:
    assert make_attempt(0, 0, 6.0).fitness == 6.0
    assert repeated(make_attempt(0, 0, 6.0), 3.0, 0.0).fitness == 3.0
    assert repeated(make_attempt(0, 0, 6.0), None, 2.0).fitness == 4.0
    assert make_attempt(0, 0, stage=Stage.FAILED).fitness is None


def test_a_mean_of_several_trainings_counts_more_than_one_that_is_a_little_higher(
    make_attempt: Callable[..., Attempt],
) -> None:
    lucky = make_attempt(0, 0, 17.0)
    steady = repeated(make_attempt(0, 1, 18.0), 15.0)  # 16.5
    others = [make_attempt(0, sample, 12.0) for sample in range(2, 6)]
    assert [attempt.id for attempt in ranked([lucky, steady, *others])][:2] == ["1-02", "1-01"]
    assert [attempt.id for attempt in by_fitness([lucky, steady, *others])][:2] == ["1-01", "1-02"]


def test_a_repeat_that_disappoints_costs_the_lead(make_attempt: Callable[..., Attempt]) -> None:
    fallen = repeated(make_attempt(0, 0, 20.0), 2.0)  # 11
    other = make_attempt(0, 1, 14.0)
    others = [
        make_attempt(0, sample, fitness) for sample, fitness in ((2, 12.0), (3, 11.0), (4, 10.0))
    ]
    assert ranked([fallen, other, *others])[0].id == "1-02"


def test_a_training_that_failed_counts_as_the_worst(make_attempt: Callable[..., Attempt]) -> None:
    fragile = repeated(make_attempt(0, 0, 20.0), None)  # 11 with the worst, 2
    steady = repeated(make_attempt(0, 1, 12.0), 12.0)
    others = [make_attempt(0, 2, 10.0), make_attempt(0, 3, 2.0), make_attempt(0, 4, 9.0)]
    assert ranked([fragile, steady, *others])[0].id == "1-02"
    assert fragile.fitness == 20.0


@pytest.mark.parametrize("single", [17.0, 14.0])
def test_one_score_does_not_outrank_a_confirmed_mean_that_is_as_good(
    single: float, make_attempt: Callable[..., Attempt]
) -> None:
    """The highest of ten single scores is mostly luck: the confirmed ones fell by 3 and 6."""
    confirmed = [repeated(make_attempt(0, 0, 18.0), 15.0), repeated(make_attempt(0, 1, 17.5), 11.5)]
    lucky = make_attempt(0, 2, single)
    others = [make_attempt(0, 3 + place, 8.0 + place) for place in range(5)]
    assert ranked([*confirmed, lucky, *others])[0].id == "1-01"
    assert by_fitness([*confirmed, lucky, *others])[0].id == ("1-03" if single == 17.0 else "1-01")


def test_where_all_have_as_many_trainings_the_numbers_are_the_means(
    make_attempt: Callable[..., Attempt],
) -> None:
    attempts = [make_attempt(0, 0, 3.0), make_attempt(0, 1, -1.0), make_attempt(0, 2)]
    assert merits(attempts) == {"1-01": 3.0, "1-02": -1.0}
