"""Order of recorded episodes by a reward, against figures worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from eureka_agent.critic import gate
from eureka_agent.critic.gate import check_order, ordering
from eureka_agent.critic.memory import KnownEpisodes


def known(*fitness: tuple[float, float]) -> list[KnownEpisodes]:
    """Attempts 1-01, 1-02, … with the fitness of their worst and best episode."""
    return [
        KnownEpisodes(f"1-{number:02d}", Path("nowhere"), {"worst": worst, "best": best})
        for number, (worst, best) in enumerate(fitness, 1)
    ]


def paying(episodes: list[KnownEpisodes], factor: float) -> dict[str, dict[str, float | None]]:
    """Returns that are `factor` times the fitness."""
    return {
        each.attempt: {name: factor * value for name, value in each.fitness.items()}
        for each in episodes
    }


FOUR = known((0.0, 4.0), (6.0, 10.0), (1.0, 9.0), (5.0, 8.0))
"""Range 10, so differences of more than 2.5 are clear. By fitness 0 1 4 5 6 8 9 10: 0 has 6 such
partners above (4 … 10), 1 has 6, 4 has 3 (8, 9, 10), 5 has 3, 6 has 2 (9, 10), 8 and 9 none: 20
pairs."""


def test_pairs_that_differ_clearly_are_counted() -> None:
    right = ordering(FOUR, paying(FOUR, 3.0))
    assert (right.pairs, right.right, right.wrong) == (20, 20.0, None)
    wrong = ordering(FOUR, paying(FOUR, -3.0))
    assert (wrong.pairs, wrong.right) == (20, 0.0)
    equal = ordering(FOUR, paying(FOUR, 0.0))
    assert (equal.pairs, equal.right, equal.wrong) == (20, 10.0, None)


def test_a_reward_that_prefers_failures_is_sent_back_with_its_worst_pair() -> None:
    (found,) = check_order(FOUR, paying(FOUR, -3.0))
    assert (found.code, found.severity) == ("G601", "error")
    assert "of 20 pairs of recorded episodes, only 0 have" in found.message
    assert "the best episode of 1-02 (fitness 10) a return of -30" in found.message
    assert "the worst episode of 1-01 (fitness 0) a return of -0" in found.message
    assert check_order(FOUR, paying(FOUR, 3.0)) == []
    assert (
        check_order(FOUR, paying(FOUR, 0.0)) == []
    )  # says nothing of these episodes, which is not the same as wrong


@pytest.mark.parametrize(("second", "right"), [(-1.0, 6), (-9.5, 11)])
def test_the_bar_is_a_third_of_the_pairs(second: float, right: int) -> None:
    returns = paying(FOUR, -1.0)
    returns["1-01"]["worst"] = -11.0  # fitness 0, now below all others: its 6 pairs are right
    returns["1-03"]["worst"] = (
        second  # fitness 1: at -9.5 only that with 10 is wrong, so 5 more are right
    )
    assert ordering(FOUR, returns).right == right
    assert [each.code for each in check_order(FOUR, returns)] == (
        ["G601"] if right < 20 / 3 else []
    )


def test_it_says_nothing_of_few_pairs_or_equal_fitness() -> None:
    three = known((0.0, 10.0), (1.0, 9.0), (5.0, 5.0))
    # 0 1 5 5 9 10: 0 with 5 5 9 10, 1 with the same, both 5 with 9 and 10: 12 pairs, the least
    # number
    assert ordering(three, paying(three, -1.0)).pairs == 12 == gate.LEAST_PAIRS
    assert [each.code for each in check_order(three, paying(three, -1.0))] == ["G601"]
    assert check_order(three[:2], paying(three, -1.0)) == []
    # all within 5 % of 10
    alike = known(*[(9.6 + 0.1 * number, 10.0) for number in range(4)])
    assert ordering(alike, paying(alike, -1.0)).pairs == 0
    assert check_order([], {}) == []


def test_episodes_without_a_finite_return_are_left_out() -> None:
    returns = paying(FOUR, 1.0)
    returns["1-01"]["worst"] = None
    assert (
        ordering(FOUR, returns).pairs == 14
    )  # without the 6 of fitness 0; the range is 9 now: 1 still has 4, 5 … 10
