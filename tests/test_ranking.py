from __future__ import annotations

from collections.abc import Callable

from eureka_agent.ranking import by_fitness, ranked
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
    # drawn to the median of 12: (17 + 12) / 2 = 14.5 and (18 + 15 + 12) / 3 = 15
    assert [attempt.id for attempt in ranked([lucky, steady, *others])][:2] == ["1-02", "1-01"]
    assert [attempt.id for attempt in by_fitness([lucky, steady, *others])][:2] == ["1-01", "1-02"]


def test_a_repeat_that_disappoints_costs_the_lead(make_attempt: Callable[..., Attempt]) -> None:
    fallen = repeated(make_attempt(0, 0, 20.0), 6.0)  # 13: (26 + 12) / 3 = 12.7
    other = make_attempt(0, 1, 14.0)  # (14 + 12) / 2 = 13
    others = [
        make_attempt(0, sample, fitness) for sample, fitness in ((2, 12.0), (3, 11.0), (4, 10.0))
    ]
    assert ranked([fallen, other, *others])[0].id == "1-02"


def test_a_training_that_failed_counts_as_the_worst(make_attempt: Callable[..., Attempt]) -> None:
    fragile = repeated(
        make_attempt(0, 0, 20.0), None
    )  # with the worst of 2: (20 + 2 + 10) / 3 = 10.7
    steady = repeated(make_attempt(0, 1, 12.0), 12.0)  # (24 + 10) / 3 = 11.3
    others = [make_attempt(0, 2, 10.0), make_attempt(0, 3, 2.0), make_attempt(0, 4, 9.0)]
    assert ranked([fragile, steady, *others])[0].id == "1-02"
    assert fragile.fitness == 20.0
