"""The choice among several models for each proposal."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from planned_attempts import planned

from eureka_agent.records import Attempt, Operator, Stage
from eureka_agent.search.model_choice import choose_models, successes

A, B, C = "openai/a", "anthropic/b", "local/c"


def made(
    iteration: int, sample: int, model: str, fitness: float | None, **fields: object
) -> Attempt:
    return planned(iteration, sample, fitness, designer=model, **fields)  # type: ignore[arg-type]


def probability_that_the_first_is_higher(first: tuple[int, int], second: tuple[int, int]) -> float:
    """P(X > Y) of X ~ Beta(a, b) and Y ~ Beta(c, d), 1 + successes and 1 + failures each: a finite
    sum, since they are integers."""
    (a, b), (c, d) = ((1 + good, 1 + bad) for good, bad in (first, second))

    def beta(x: int, y: int) -> float:
        return math.exp(math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y))

    return sum(beta(c + i, b + d) / ((b + i) * beta(1 + i, b) * beta(c, d)) for i in range(a))


# ── the first generation, and one model ───────────────────────────────────────────────────────────


def test_the_first_generation_goes_in_turns_also_in_a_second_round() -> None:
    assert choose_models([A, B, C], [], 0, range(7), 1) == [A, B, C, A, B, C, A]
    failed = [made(0, sample, A, None) for sample in range(4)]
    assert choose_models([A, B, C], failed, 0, range(4, 8), 1) == [B, C, A, B]


def test_a_single_model_makes_everything() -> None:
    assert choose_models([A], [made(0, 0, A, None)], 3, range(5), 1) == [A] * 5


# ── success ───────────────────────────────────────────────────────────────────────────────────────


def test_success_is_the_better_half_of_a_generation() -> None:
    history = [
        made(0, 0, A, 4.0),
        made(0, 1, B, 3.0),
        made(0, 2, A, 2.0),
        made(0, 3, B, None, stage=Stage.FAILED),
        made(0, 4, A, None, stage=Stage.REJECTED),
    ]
    # of five the best three: 0-0, 0-1, 0-2
    assert successes([A, B], history) == {A: (2, 1), B: (1, 1)}
    assert successes([A, B], history[:2]) == {A: (1, 0), B: (0, 1)}


def test_a_later_generation_that_is_better_as_a_whole_says_nothing_of_who_made_more_of_it() -> None:
    first = [
        made(0, sample, (A, B)[sample % 2], float(sample)) for sample in range(4)
    ]  # B 1 and 3, A 0 and 2
    second = [made(1, sample, (A, A, A, B)[sample], 100.0 + sample) for sample in range(4)]
    # the best two of each: 0-3 by B, 0-2 by A; 1-3 by B, 1-2 by A
    assert successes([A, B], [*first, *second]) == {A: (2, 3), B: (2, 1)}


def test_what_fails_is_in_the_worse_half_even_where_most_fail() -> None:
    history = [made(0, 0, A, 1.0), *[made(0, sample, B, None) for sample in range(1, 6)]]
    assert successes([A, B], history) == {A: (1, 0), B: (0, 5)}


def test_a_mended_proposal_counts_once_and_other_designers_not_at_all() -> None:
    history = [
        made(0, 0, A, None, stage=Stage.REJECTED),
        made(0, 0, A, 5.0, revision=1),
        made(0, 1, B, 4.0),
        made(0, 2, "given", 9.0, operator=Operator.EDIT),
        made(0, 3, "given", 8.0, operator=Operator.EDIT),
    ]
    assert successes([A, B], history) == {A: (1, 0), B: (0, 1)}


# ── who is chosen ─────────────────────────────────────────────────────────────────────────────────


def history_of(first: tuple[int, int], second: tuple[int, int]) -> list[Attempt]:
    """A history in which A and B have so many successes and failures: generations of two, one
    better than the other."""
    left = {A: list(first), B: list(second)}
    assert first[0] + second[0] == first[1] + second[1]
    attempts = []
    for iteration in range(first[0] + second[0]):
        good = A if left[A][0] else B
        bad = A if left[A][1] else B
        left[good][0] -= 1
        left[bad][1] -= 1
        attempts += [made(iteration, 0, good, 2.0), made(iteration, 1, bad, 1.0)]
    return attempts


@pytest.mark.parametrize(
    ("first", "second"), [((3, 1), (1, 3)), ((5, 5), (2, 2)), ((8, 2), (4, 10)), ((1, 0), (0, 1))]
)
def test_a_model_is_chosen_as_often_as_it_may_be_the_better_one(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    history = history_of(first, second)
    assert successes([A, B], history) == {A: first, B: second}
    draws = 2000  # one sample at a time: with fewer samples than models nobody is owed one
    chosen = Counter(choose_models([A, B], history, 20, range(1), seed)[0] for seed in range(draws))
    expected = probability_that_the_first_is_higher(first, second)
    deviation = math.sqrt(expected * (1 - expected) / draws)
    assert chosen[A] / draws == pytest.approx(expected, abs=4 * deviation)


def test_the_expectation_of_that_test_is_right_where_it_is_known() -> None:
    assert probability_that_the_first_is_higher((5, 5), (5, 5)) == pytest.approx(0.5)
    assert probability_that_the_first_is_higher((1, 0), (0, 0)) == pytest.approx(
        2 / 3
    )  # Beta(2, 1) against uniform: E[X]
    assert probability_that_the_first_is_higher((1, 0), (0, 1)) == pytest.approx(
        5 / 6
    )  # ∫ 2x (1 - (1 - x)²) dx


@pytest.mark.parametrize("samples", [3, 4, 8])
def test_each_model_has_a_proposal_in_every_generation_that_has_room(samples: int) -> None:
    hopeless = [
        made(0, sample, (A, B, C)[sample % 3], 1.0 if sample % 3 == 0 else None)
        for sample in range(60)
    ]
    for seed in range(200):
        assert set(choose_models([A, B, C], hopeless, 1, range(samples), seed)) == {A, B, C}


def test_where_there_are_fewer_samples_than_models_nobody_is_owed_one() -> None:
    hopeless = [
        made(0, sample, (A, B, C)[sample % 3], 1.0 if sample % 3 == 0 else None)
        for sample in range(90)
    ]
    assert {
        model
        for seed in range(50)
        for model in choose_models([A, B, C], hopeless, 1, range(2), seed)
    } == {A}


def test_the_place_that_a_model_is_owed_is_not_always_the_same() -> None:
    """A strategy's operators have places of their own. If it were always the last one, a weak model
    would get one operator alone."""
    hopeless = [
        made(0, sample, (A, B)[sample % 2], 1.0 if sample % 2 == 0 else None)
        for sample in range(60)
    ]
    places = Counter(
        choose_models([A, B], hopeless, 1, range(4), seed).index(B) for seed in range(400)
    )
    assert set(places) == {0, 1, 2, 3}
    assert min(places.values()) > 60  # 100 each, give or take 35 (four deviations)


def test_draws_depend_on_seed_iteration_and_sample_alone() -> None:
    history = history_of((3, 2), (2, 3))
    whole = choose_models([A, B], history, 5, range(64), 3)
    assert whole == choose_models([A, B], list(reversed(history)), 5, range(64), 3)
    assert whole[16:32] == choose_models([A, B], history, 5, range(16, 32), 3)
    assert whole != choose_models([A, B], history, 6, range(64), 3)
    assert whole != choose_models([A, B], history, 5, range(64), 4)
