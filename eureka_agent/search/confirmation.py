"""Confirmation: the best attempts are trained again before parents or finalists are chosen."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.ranking import by_fitness
from eureka_agent.records import Attempt
from eureka_agent.search.seeds import derive_seed


def to_confirm(attempts: Sequence[Attempt], count: int) -> list[str]:
    """Ids of those among the `count` best that have one training, best first; none for a single
    attempt.

    They are ranked by the plain mean, since a high fitness from a single training needs
    confirmation most.
    """
    known = by_fitness(attempts)
    if len(known) < 2:
        return []
    return [attempt.id for attempt in known[:count] if not attempt.repeats]


def repeat_seeds(attempt: Attempt, run_seed: int, count: int) -> tuple[int, ...]:
    """Training seeds of an attempt's repeats, from the run's seed and the attempt alone."""
    return tuple(derive_seed(run_seed, "repeat", attempt.id, index) for index in range(count))
