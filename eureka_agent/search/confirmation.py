"""Attempts that are trained again before parents or finalists are taken."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.ranking import by_fitness
from eureka_agent.records import Attempt
from eureka_agent.search.seeds import derive_seed


def to_confirm(attempts: Sequence[Attempt], count: int) -> list[str]:
    """Ids of those among the `count` best that have been trained only once, best first.

    The best by plain mean, since a high one that rests on a single training is what needs a second
    look. None where a single attempt was trained: there is nothing to choose from.
    """
    known = by_fitness(attempts)
    if len(known) < 2:
        return []
    return [attempt.id for attempt in known[:count] if not attempt.repeats]


def repeat_seeds(attempt: Attempt, run_seed: int, count: int) -> tuple[int, ...]:
    """Training seeds of an attempt's repeats; they depend on the run's seed and the attempt
    alone."""
    return tuple(derive_seed(run_seed, "repeat", attempt.id, index) for index in range(count))
