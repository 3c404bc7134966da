"""Choice of the model for each proposal by its success so far, without giving any model up.

Thompson sampling: for every proposal each model draws a rate of success from its record, and the
highest draw wins. A short record gives wide draws, so a model is not judged by its first replies.

An attempt has succeeded if it is in the better half of its own generation. The comparison is not
with all attempts: generations improve anyway, so the model that was asked more often lately would
seem better and be asked still more often.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.strategies.interface import last_revisions


def choose_models(
    models: Sequence[str],
    attempts: Sequence[Attempt],
    iteration: int,
    samples: Sequence[int],
    seed: int,
) -> list[str]:
    """The model of each of these samples, from the attempts known at planning and the run's seed.

    The first generation takes the models in turn. With as many samples as models, each model gets
    at least one.
    """
    if iteration == 0 or len(models) == 1:
        return [models[sample % len(models)] for sample in samples]
    counts = successes(models, attempts)
    draws = [_draws(counts, derive_seed(seed, "model", iteration, sample)) for sample in samples]
    chosen = [max(each, key=lambda model: each[model]) for each in draws]
    if len(samples) >= len(models):
        for model in models:
            if model not in chosen:
                _give_one(model, chosen, draws)
    return chosen


def successes(models: Sequence[str], attempts: Sequence[Attempt]) -> dict[str, tuple[int, int]]:
    """Successes and failures of each model. Attempts without fitness rank last; only last revisions
    count."""
    places = {attempt.id: place for place, attempt in enumerate(ranked(attempts))}
    theirs = [
        attempt for attempt in last_revisions(attempts) if attempt.proposal.reward.author in models
    ]
    counts = dict.fromkeys(models, (0, 0))
    for iteration in {attempt.iteration for attempt in theirs}:
        generation = [attempt for attempt in theirs if attempt.iteration == iteration]
        trained = sorted(
            (each for each in generation if each.id in places), key=lambda each: places[each.id]
        )
        better_half = {attempt.id for attempt in trained[: (len(generation) + 1) // 2]}
        for attempt in generation:
            good, bad = counts[attempt.proposal.reward.author]
            succeeded = attempt.id in better_half
            counts[attempt.proposal.reward.author] = (good + succeeded, bad + (not succeeded))
    return counts


def _draws(counts: dict[str, tuple[int, int]], seed: int) -> dict[str, float]:
    """Each model's rate of success, drawn from Beta(1 + successes, 1 + failures)."""
    generator = random.Random(seed)
    return {
        model: generator.betavariate(1 + good, 1 + bad) for model, (good, bad) in counts.items()
    }


def _give_one(model: str, chosen: list[str], draws: Sequence[dict[str, float]]) -> None:
    """Give a model without a proposal the one with its highest draw, of models that have
    several."""
    places = [place for place, other in enumerate(chosen) if chosen.count(other) > 1]
    chosen[max(places, key=lambda place: draws[place][model])] = model
