"""Which of several models makes each proposal: by how well each has done so far, without ever
giving one up.

Thompson sampling: for every proposal each model draws how often it may succeed, from what is known
of it, and the highest draw has the proposal. Little known means wide draws, so a model is not
judged by its first few replies.

An attempt has succeeded when it is in the better half of its own generation. Not of all attempts so
far: generations get better whoever makes them, so the model that was asked more often of late would
seem the better one, and be asked still more often.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt
from eureka_agent.search.seeds import derive_seed
from eureka_agent.search.strategies.history import last_revisions


def choose_models(
    models: Sequence[str],
    attempts: Sequence[Attempt],
    iteration: int,
    samples: Sequence[int],
    seed: int,
) -> list[str]:
    """The model of each of these samples of a generation. `attempts`: all that is known where it is
    designed; `seed`: the run's.

    The first generation goes in turns. Where there are as many samples as models, each model has at
    least one.
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
    """Successes and failures of each model. What came to no fitness is behind all that did;
    revisions count with what became of them."""
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
    """Each model's rate of success, drawn from what is known of it: Beta(1 + successes, 1 +
    failures)."""
    generator = random.Random(seed)
    return {
        model: generator.betavariate(1 + good, 1 + bad) for model, (good, bad) in counts.items()
    }


def _give_one(model: str, chosen: list[str], draws: Sequence[dict[str, float]]) -> None:
    """A place for a model that has none: of those whose model has several, where its own draw was
    highest."""
    places = [place for place, other in enumerate(chosen) if chosen.count(other) > 1]
    chosen[max(places, key=lambda place: draws[place][model])] = model
