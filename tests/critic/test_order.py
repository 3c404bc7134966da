"""Order of recorded episodes by a reward, against figures worked out by hand."""

from __future__ import annotations

from pathlib import Path

from eureka_agent.critic.memory import LEAST_PAIRS, KnownEpisodes, episode_order
from eureka_agent.records import EpisodeOrder


def known(*fitness: tuple[float, float]) -> list[KnownEpisodes]:
    """Attempts 1-01, 1-02, … with the fitness of their worst and best episode."""
    return [
        KnownEpisodes(f"1-{number:02d}", Path("nowhere"), {"worst": worst, "best": best})
        for number, (worst, best) in enumerate(fitness, 1)
    ]


def paying(episodes: list[KnownEpisodes], factor: float) -> list[dict[str, float | None]]:
    """Returns that are `factor` times the fitness."""
    return [{name: factor * value for name, value in each.fitness.items()} for each in episodes]


FOUR = known((0.0, 4.0), (6.0, 10.0), (1.0, 9.0), (5.0, 8.0))
"""Range 10, so differences of more than 2.5 are clear. By fitness 0 1 4 5 6 8 9 10: 0 has 6 such
partners above (4 … 10), 1 has 6, 4 has 3 (8, 9, 10), 5 has 3, 6 has 2 (9, 10), 8 and 9 none: 20
pairs."""


def test_pairs_that_differ_clearly_are_counted() -> None:
    assert episode_order(FOUR, paying(FOUR, 3.0)) == EpisodeOrder(pairs=20, right=20.0)
    assert episode_order(FOUR, paying(FOUR, -3.0)) == EpisodeOrder(pairs=20, right=0.0)
    assert episode_order(FOUR, paying(FOUR, 0.0)) == EpisodeOrder(pairs=20, right=10.0)
    one_right = paying(FOUR, -1.0)
    one_right[0]["worst"] = -11.0  # fitness 0, now below all others: its 6 pairs are right
    assert episode_order(FOUR, one_right) == EpisodeOrder(pairs=20, right=6.0)


def test_it_says_nothing_of_few_pairs_or_equal_fitness() -> None:
    three = known((0.0, 10.0), (1.0, 9.0), (5.0, 5.0))
    # 0 1 5 5 9 10: 0 with 5 5 9 10, 1 with the same, both 5 with 9 and 10: 12 pairs, the least
    # number
    order = episode_order(three, paying(three, -1.0))
    assert order is not None
    assert order.pairs == 12 == LEAST_PAIRS
    assert episode_order(three[:2], paying(three[:2], -1.0)) is None
    # all within 5 % of 10
    alike = known(*[(9.6 + 0.1 * number, 10.0) for number in range(4)])
    assert episode_order(alike, paying(alike, -1.0)) is None
    assert episode_order([], []) is None


def test_episodes_without_a_finite_return_are_left_out() -> None:
    returns = paying(FOUR, 1.0)
    returns[0]["worst"] = None
    # without the 6 of fitness 0; the range is 9 now: 1 still has 4, 5 … 10
    assert episode_order(FOUR, returns) == EpisodeOrder(pairs=14, right=14.0)
