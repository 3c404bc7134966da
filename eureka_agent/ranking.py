"""Order of attempts: for parents, finalists and the leaderboard."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from eureka_agent.records import Attempt, Stage


def by_fitness(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Trained attempts, highest mean fitness first, then by iteration and sample."""
    trained = [attempt for attempt, _ in _trained(attempts)]
    return sorted(trained, key=lambda attempt: (-(attempt.fitness or 0.0), *_place(attempt)))


def ranked(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Trained attempts by the fitness expected of one more training, best first.

    The best of many single trainings is partly luck. So every mean is shrunk towards the median of
    all attempts: (n · mean + median) / (n + 1) after n trainings. This is the estimate of a normal
    prior (James and Stein 1961) whose spread between rewards equals that between the seeds of one
    reward. It changes no order where all were trained equally often. A failed training counts as
    the worst of all, so a reward that fails from some seeds ranks below a mediocre one.

    An attempt with a strength is ranked by that alone.
    """
    known = _trained(attempts)
    if not known:
        return []
    usual = statistics.median(sum(values) / len(values) for _, values in known)
    worst = min(min(values) for _, values in known)

    def expected(attempt: Attempt, values: tuple[float, ...]) -> float:
        if attempt.strength is not None:
            return attempt.strength.mean
        failed = sum(repeat.outcome is None for repeat in attempt.repeats)
        values = (*values, *[worst] * failed)
        return (sum(values) + usual) / (len(values) + 1)

    known.sort(key=lambda each: (-expected(*each), *_place(each[0])))
    return [attempt for attempt, _ in known]


def _trained(attempts: Sequence[Attempt]) -> list[tuple[Attempt, tuple[float, ...]]]:
    """Trained attempts with their fitness per seed, which is computed once."""
    return [
        (attempt, values)
        for attempt in attempts
        if attempt.stage is Stage.TRAINED and (values := attempt.fitness_per_seed)
    ]


def _place(attempt: Attempt) -> tuple[int, int, int]:
    return attempt.iteration, attempt.sample, attempt.revision
