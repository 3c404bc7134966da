"""Which attempts are trained again before parents or finalists are taken, and what was known when
that was decided."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.ranking import by_fitness
from eureka_agent.records import Attempt
from eureka_agent.search.seeds import derive_seed


def known_before(attempts: Sequence[Attempt], iteration: int) -> list[Attempt]:
    """The attempts without the repeats that were made after `iteration` or later.

    A decision that is taken again when a run is resumed must not see what came of it.
    """
    return [
        attempt.model_copy(
            update={
                "repeats": tuple(
                    repeat for repeat in attempt.repeats if repeat.iteration < iteration
                )
            }
        )
        for attempt in attempts
    ]


def to_confirm(attempts: Sequence[Attempt], iteration: int, count: int) -> list[str]:
    """Ids of those among the `count` best after `iteration` that have been trained only once, best
    first.

    The best by plain mean, since a high one that rests on a single training is what needs a second
    look. None where a single attempt was trained: there is nothing to choose from.
    """
    known = by_fitness(
        known_before([attempt for attempt in attempts if attempt.iteration <= iteration], iteration)
    )
    return (
        [attempt.id for attempt in known[:count] if not attempt.repeats] if len(known) > 1 else []
    )


def repeat_seeds(attempt: Attempt, run_seed: int, count: int) -> tuple[int, ...]:
    """Training seeds of an attempt's repeats; they depend on the run's seed and the attempt
    alone."""
    return tuple(derive_seed(run_seed, "repeat", attempt.id, index) for index in range(count))
