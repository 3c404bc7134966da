"""Order of attempts: for parents, finalists and the leaderboard."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.records import Attempt, Score, Stage


def by_fitness(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Trained attempts, highest mean fitness first, then by iteration and sample."""
    trained = [attempt for attempt, _ in _trained(attempts)]
    return sorted(trained, key=lambda attempt: (-(attempt.fitness or 0.0), *_place(attempt)))


def ranked(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Trained attempts by what can be counted on (`merits`), or by their strength; best first."""
    values = merits(attempts)
    known = [attempt for attempt in attempts if attempt.id in values]
    return sorted(known, key=lambda attempt: (-values[attempt.id], *_place(attempt)))


def merits(attempts: Sequence[Attempt]) -> dict[str, float]:
    """Numbers that rank the trained attempts, by their ids: strengths, or what can be counted on in
    their fitness."""
    known = _trained(attempts)
    numbers = counted_on([_with_failures(attempt, values) for attempt, values in known])
    return {
        attempt.id: number if attempt.strength is None else attempt.strength.mean
        for number, (attempt, _) in zip(numbers, known, strict=True)
    }


def counted_on(scores: Sequence[Sequence[float | None]]) -> Sequence[float]:
    """Fitness of each reward that can be counted on in further trainings, from its trainings so
    far, at least one of each; None is a failed one, which counts as the worst of all.

    The best of many single trainings is partly luck. So a mean is drawn towards that of all rewards
    and lowered by its deviation: the more, the fewer trainings are behind it and the more these
    differ from seed to seed (`eureka_agent.posterior`, which also gives the probabilities in a
    verdict). Where all were trained equally often this changes no order, and the means are given.
    """
    filled = _filled(scores)
    if len({len(each) for each in filled}) < 2:
        return [sum(each) / len(each) for each in filled]
    from eureka_agent import posterior  # with numpy, which most lists do without

    numbers: list[float] = posterior.counted_on(filled).tolist()
    return numbers


def all_scores(attempts: Sequence[Attempt], finals: Sequence[Score]) -> dict[str, list[float]]:
    """Fitness of every training of each trained reward, in the search and at the end, by the
    attempt's id. A failed one counts as the worst of all."""
    known = {attempt.id: _with_failures(attempt, values) for attempt, values in _trained(attempts)}
    for score in finals:
        known.setdefault(score.name, []).extend(score.fitness)
    known = {name: each for name, each in known.items() if each}
    return dict(zip(known, _filled(list(known.values())), strict=True))


def _with_failures(attempt: Attempt, values: Sequence[float]) -> list[float | None]:
    """The fitness of an attempt's trainings in the search; None for one that failed."""
    return [*values, *(None for one in attempt.repeats if one.outcome is None)]


def _filled(scores: Sequence[Sequence[float | None]]) -> list[list[float]]:
    """The scores with the worst of all in the place of each failed one."""
    worst = min((value for each in scores for value in each if value is not None), default=0.0)
    return [[worst if value is None else value for value in each] for each in scores]


def are_level(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """True for rewards that came to the same fitness from every seed, as at a ceiling."""
    return len({*ours, *theirs}) == 1


def _trained(attempts: Sequence[Attempt]) -> list[tuple[Attempt, tuple[float, ...]]]:
    """Trained attempts with their fitness per seed, which is computed once; none under other
    parameters than the defaults."""
    return [
        (attempt, values)
        for attempt in attempts
        if attempt.stage is Stage.TRAINED
        and attempt.is_ranked
        and (values := attempt.fitness_per_seed)
    ]


def _place(attempt: Attempt) -> tuple[int, int, int]:
    return attempt.iteration, attempt.sample, attempt.revision
