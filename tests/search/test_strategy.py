from __future__ import annotations

from collections.abc import Callable

from eureka_agent.records import Attempt, Operator
from eureka_agent.search.strategies import BestOfN, Greedy


def test_the_first_generation_is_fresh() -> None:
    plans = Greedy().plan(0, [], 5)
    assert [plan.operator for plan in plans] == [Operator.FRESH] * 5


def test_greedy_starts_from_the_best_of_all_generations_not_of_the_last(
    make_attempt: Callable[..., Attempt],
) -> None:
    history = [make_attempt(0, 0, 9.0), make_attempt(0, 1, 3.0), make_attempt(1, 0, 4.0)]
    plans = Greedy().plan(2, history, 8)
    assert {plan.parents[0] for plan in plans} == {"1-01"}
    crossed = [plan.parents for plan in plans if plan.operator is Operator.CROSSOVER]
    assert crossed == [("1-01", "2-01")]


def test_greedy_comes_round_again_from_a_runner_up_that_is_nearly_as_good(
    make_attempt: Callable[..., Attempt],
) -> None:
    # the median of 9, 8, 3, 2 is 5.5: 8 is above (9 + 5.5) / 2 = 7.25
    history = [
        make_attempt(0, 0, 3.0),
        make_attempt(0, 1, 9.0),
        make_attempt(0, 2, 8.0),
        make_attempt(0, 3, 2.0),
    ]
    plans = [(plan.operator, plan.parents) for plan in Greedy().plan(1, history, 8)]
    first, second = "1-02", "1-03"
    assert plans == [
        (Operator.IMPROVE, (first,)),
        (Operator.RETUNE_WEIGHTS, (first,)),
        (Operator.MUTATE_STRUCTURE, (first,)),
        (Operator.CROSSOVER, (first, second)),
        (Operator.IMPROVE, (second,)),
        (Operator.RETUNE_WEIGHTS, (second,)),
        (Operator.MUTATE_STRUCTURE, (second,)),
        (Operator.DIFFERENT, (first,)),
    ]
    history[2] = make_attempt(0, 2, 7.0)  # the median is 5: 7 is not above (9 + 5) / 2
    assert {plan.parents[0] for plan in Greedy().plan(1, history, 8)} == {first}


def test_greedy_does_not_cross_where_one_parent_is_all_there_is(
    make_attempt: Callable[..., Attempt],
) -> None:
    plans = Greedy().plan(1, [make_attempt(0, 0, 1.0), make_attempt(0, 1)], 8)
    assert Operator.CROSSOVER not in {plan.operator for plan in plans}
    assert all(plan.parents == ("1-01",) for plan in plans)


def test_a_generation_after_failures_alone_is_fresh_again(
    make_attempt: Callable[..., Attempt],
) -> None:
    plans = Greedy().plan(0, [make_attempt(0, sample) for sample in range(4)], 4)
    assert [plan.operator for plan in plans] == [Operator.FRESH] * 4


def test_best_of_n_never_looks_at_what_was_found(make_attempt: Callable[..., Attempt]) -> None:
    plans = BestOfN().plan(3, [make_attempt(0, 0, 9.0)], 3)
    assert [(plan.operator, plan.parents) for plan in plans] == [(Operator.FRESH, ())] * 3
