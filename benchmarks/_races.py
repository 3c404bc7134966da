"""Races on paper: who would have been stopped, and what that saves and costs."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from _race_curves import GENERATION, Trained

from eureka_agent.search.racing import LEAST_SPREAD, Rungs, behind
from eureka_agent.settings import TrainingSettings

PARTS = 6
"""That the trainings are split into for standard errors."""


@dataclass(frozen=True)
class Policy:
    """A way to race."""

    shares: tuple[float, ...]
    """Rungs, as parts of the sample budget."""
    margin: float
    by: Literal["curve", "smoothed", "trend", "evaluation"] = "curve"

    ahead: float = 0.0
    """Nobody is stopped at a rung before the best is so many robust deviations above the median."""

    def __str__(self) -> str:
        ahead = f" {self.ahead:g} ahead" if self.ahead else ""
        return f"{' '.join(f'{share:g}' for share in self.shares):16} {self.margin:<5g} {self.by}{ahead}"


@dataclass(frozen=True)
class Raced:
    """What a race on paper came to."""

    kept: tuple[Trained, ...]
    left: tuple[int, ...]
    """Candidates that train on between two checkpoints, for each of them."""


def value(trained: Trained, rungs: Rungs, rung: int, policy: Policy) -> float | None:
    """What a candidate is compared by at a rung.

    Smoothed: the mean of the last two checkpoints. Trend: the last one and half of what it will have risen if it goes on rising as it did.
    """
    place = rungs.places[rung]
    if policy.by == "evaluation":
        return trained.evaluated[place]
    last = trained.checkpoints[place].fitness
    before = trained.checkpoints[place - 1].fitness if place else None
    if policy.by == "curve" or last is None or before is None:
        return last
    left = len(trained.checkpoints) - 1 - place
    return (last + before) / 2 if policy.by == "smoothed" else last + 0.5 * (last - before) * left


def raced(generation: Sequence[Trained], policy: Policy, settings: TrainingSettings) -> Raced:
    """One generation's race."""
    rungs = Rungs(settings, policy.shares)
    kept = dict(enumerate(generation))
    left: list[int] = []
    for rung, place in enumerate(rungs.places):
        left += [len(kept)] * (place + 1 - len(left))
        values = {candidate: value(trained, rungs, rung, policy) for candidate, trained in kept.items()}
        if policy.ahead and not _ahead([each for each in values.values() if each is not None], policy.ahead):
            continue
        for candidate in behind(values, margin=policy.margin * (rung + 1)):
            del kept[candidate]
    left += [len(kept)] * (settings.checkpoints - len(left))
    return Raced(tuple(kept.values()), tuple(left))


def _ahead(values: Sequence[float], deviations: float) -> bool:
    """Whether the best is so far above the median that it has learned something."""
    median = statistics.median(values)
    spread = 1.4826 * statistics.median(abs(each - median) for each in values)
    return max(values) - median > deviations * max(spread, LEAST_SPREAD * abs(median))


def rank_correlations(trained: Sequence[Trained]) -> list[float]:
    """Of the fitness at each checkpoint with the final one; last that of the best checkpoint (Spearman)."""
    curves = [[record.fitness or 0.0 for record in each.checkpoints] for each in trained]
    final = _ranks([each.fitness for each in trained])
    return [
        statistics.correlation(_ranks(values), final)
        for values in (*map(list, zip(*curves, strict=True)), [max(curve) for curve in curves])
    ]


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    places = {candidate: float(rank) for rank, candidate in enumerate(order)}
    return [places[candidate] for candidate in range(len(values))]


def expected_best(scores: Sequence[float], count: int) -> float:
    """Mean of the best of `count` different ones of the scores."""
    ways = math.comb(len(scores), count)
    return sum(math.comb(place, count - 1) * score / ways for place, score in enumerate(sorted(scores)))


def as_good_as(means: Sequence[float], lost: float) -> float:
    """How many candidates, at least 1, have a mean best that is by `lost` below that of all; interpolated.

    `means`: mean best of 1, 2, … candidates.
    """
    wanted = means[-1] - lost
    for more in range(len(means) - 1, 0, -1):
        if wanted >= means[more]:
            return more + 1.0
        if wanted >= means[more - 1]:
            return more + (wanted - means[more - 1]) / (means[more] - means[more - 1])
    return 1.0


def alone(left: Sequence[int], speeds: Mapping[int, float]) -> float:
    """Time of a generation that has a worker for itself, over that of one that nobody leaves."""

    def speed(members: int) -> float:
        members = min(members, max(speeds))  # more are as fast as that
        below = max(known for known in speeds if known <= members)
        above = min(known for known in speeds if known >= members)
        part = (members - below) / (above - below) if above > below else 0.0
        return speeds[below] + part * (speeds[above] - speeds[below])

    whole = len(left) * left[0] / speed(left[0])
    return sum(members / speed(members) for members in left) / whole


def compare(
    trained: Sequence[Trained],
    settings: TrainingSettings,
    policy: Policy,
    draws: int,
    seed: int,
    speeds: Mapping[int, float],
    size: int = GENERATION,
) -> dict[str, float]:
    """The policy's figures over generations of `size` candidates drawn at random."""
    generator = random.Random(seed)
    scores = [each.fitness for each in trained]
    level = expected_best(scores, min(2 * size, len(scores)))
    best, kept, samples, waits = [], [], [], []
    for _ in range(draws):
        generation = generator.sample(list(trained), size)
        race = raced(generation, policy, settings)
        best.append(max(each.fitness for each in generation))
        kept.append(max(each.fitness for each in race.kept))
        samples.append(sum(race.left) / (size * len(race.left)))
        waits.append(alone(race.left, speeds))
    lost = statistics.fmean(best) - statistics.fmean(kept)
    as_many = as_good_as([expected_best(scores, count) for count in range(1, size + 1)], lost)
    reached, reached_raced = (sum(value >= level for value in values) for values in (best, kept))
    return {
        "samples_saved": 1.0 - statistics.fmean(samples),
        "winner_stopped": statistics.fmean(ours < theirs for ours, theirs in zip(kept, best, strict=True)),
        "fitness_lost": lost,
        "as_good_as": as_many,
        "time": size * statistics.fmean(samples) / as_many,
        "time_alone": size * statistics.fmean(waits) / as_many,
        "time_to_level": statistics.fmean(samples) * reached / reached_raced if reached_raced else math.inf,
    }


def times_without(
    trained: Sequence[Trained], settings: TrainingSettings, policy: Policy, draws: int, seed: int, size: int
) -> list[float]:
    """The policy's time as one part of the trainings after the other is left out."""
    speeds = {1: 1.0}
    times = []
    for part in range(PARTS):
        rest = [each for place, each in enumerate(trained) if place % PARTS != part]
        times.append(compare(rest, settings, policy, draws, seed, speeds, size)["time"])
    return times


def jackknife_error(values: Sequence[float]) -> float:
    """Standard error of an estimate from what it is as one part of the data after the other is left out (Tukey 1958)."""
    return math.sqrt((len(values) - 1) * statistics.pvariance(values))


@dataclass(frozen=True)
class Seeds:
    """Rewards that were each trained from the same number of seeds."""

    trainings: dict[str, tuple[Trained, ...]]

    def reward_share(self) -> float:
        """The part of the trainings' variance that is the rewards' (one-way analysis of variance)."""
        scores = [[each.fitness for each in group] for group in self.trainings.values()]
        within = statistics.fmean(statistics.variance(group) for group in scores)
        between = statistics.variance([statistics.fmean(group) for group in scores]) - within / len(scores[0])
        return max(0.0, between) / (max(0.0, between) + within)

    def winner(
        self, settings: TrainingSettings, policy: Policy | None, draws: int, seed: int, size: int = GENERATION
    ) -> float:
        """Mean fitness that the winner of a race has from the seeds which it did not race with."""
        generator = random.Random(seed)
        found = []
        for _ in range(draws):
            generation = [
                generator.choice(self.trainings[name]) for name in generator.sample(list(self.trainings), size)
            ]
            kept = generation if policy is None else raced(generation, policy, settings).kept
            best = max(kept, key=lambda each: each.fitness)
            found += [each.fitness for each in self.trainings[best.reward] if each is not best]
        return statistics.fmean(found)
