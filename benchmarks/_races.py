"""Races on paper: who would have been stopped, and what that saves and costs."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from _race_curves import GENERATION, SCORE_EPISODES, Trained

from eureka_agent.search.racing import LEAST_SPREAD, Rungs, behind
from eureka_agent.settings import TrainingSettings

By = Literal["curve", "smoothed", "trend", "now", "kept", "both", "with curve", "best"]
"""What candidates are compared by.

Curve: fitness of the exploring policy since the checkpoint before. Smoothed: the mean of the last
two of these. Trend: the last one and half of what it will have risen if it goes on rising as it
did. Now: the score without noise of the policy at the rung; kept: of the best policy by the curve
until then; both: the mean of the two; with curve: the mean of the kept one's score and the curve.
Best: the highest of the scores at the rungs until then.
"""
SCORED: tuple[By, ...] = ("now", "kept", "both", "with curve", "best")
PARTS = 6
"""That the trainings are split into for standard errors."""


@dataclass(frozen=True)
class Policy:
    """A way to race."""

    shares: tuple[float, ...]
    """Rungs, as parts of the sample budget."""
    margin: float
    by: By = "curve"
    episodes: int = SCORE_EPISODES
    """That a policy is scored by, where it is."""
    ahead: float = 0.0
    """Nobody is stopped at a rung before the best is so many robust deviations above the median."""
    chosen: int = 0
    """Checkpoints before the end whose policies are scored too: the best of these, of those scored
    at rungs and of the one kept by the curve is the training's."""

    def __str__(self) -> str:
        ahead = f" {self.ahead:g} ahead" if self.ahead else ""
        chosen = f", of last {self.chosen}" if self.chosen else ""
        episodes = f" {self.episodes}" if self.episodes != SCORE_EPISODES else ""
        return (
            f"{' '.join(f'{share:g}' for share in self.shares):16} {self.margin:<5g}"
            f" {self.by}{episodes}{ahead}{chosen}"
        )

    @property
    def scores(self) -> bool:
        """Whether policies are scored at the rungs."""
        return self.by in SCORED

    def choices(self, places: Sequence[int], checkpoints: int) -> list[int]:
        """Checkpoints whose policies are scored in the end, or have been at these rungs, if the
        policy is chosen by its score."""
        if not self.chosen:
            return []
        last = range(checkpoints - 1 - self.chosen, checkpoints - 1)
        return sorted({*last, *(places if self.by in ("now", "best") else ())})


@dataclass(frozen=True)
class Raced:
    """What a race on paper came to."""

    kept: tuple[Trained, ...]
    left: tuple[int, ...]
    """Candidates that train on between two checkpoints, for each of them."""
    scoring: float
    """Processor time of the scores at the rungs, in trainings."""

    @property
    def share(self) -> float:
        """Processor time of the race over that of training all to the end."""
        return (sum(self.left) / len(self.left) + self.scoring) / self.left[0]


def value(trained: Trained, places: Sequence[int], policy: Policy) -> float | None:
    """What a candidate is compared by at the last of these checkpoints, which are the rungs that it
    has come to."""
    place = places[-1]
    last = trained.checkpoints[place].fitness
    if policy.by == "best":
        return max(_score(trained, each, policy.episodes) for each in places)
    if policy.scores:
        now, kept = (
            _score(trained, each, policy.episodes) for each in (place, trained.kept(place))
        )
        return {
            "now": now,
            "kept": kept,
            "both": (now + kept) / 2,
            "with curve": (kept + (last or 0.0)) / 2,
        }[policy.by]
    before = trained.checkpoints[place - 1].fitness if place else None
    if policy.by == "curve" or last is None or before is None:
        return last
    left = len(trained.checkpoints) - 1 - place
    return (last + before) / 2 if policy.by == "smoothed" else last + 0.5 * (last - before) * left


def scoring_cost(trained: Trained, place: int, policy: Policy) -> float:
    """Processor time of what `value` asks of the policies, in trainings; some of the episodes are
    charged like all."""
    if not policy.scores:
        return 0.0
    now, kept = {place}, {trained.kept(place)}
    places = now if policy.by in ("now", "best") else now | kept if policy.by == "both" else kept
    return sum(trained.scores[each].cost for each in places)


def final_fitness(trained: Trained, places: Sequence[int], policy: Policy) -> float:
    """What a training comes to, with these rungs.

    A policy chosen by its score is worth what it has in other episodes: chosen by one half of them,
    valued by the other one, both ways.
    """
    choices = policy.choices(places, len(trained.checkpoints))
    if not choices:
        return trained.fitness
    half = len(trained.scores[0].fitness) // 2
    found = []
    for chosen_by, valued_by in (
        (slice(half), slice(half, None)),
        (slice(half, None), slice(half)),
    ):
        score, best = max(
            (statistics.fmean(trained.scores[place].fitness[chosen_by]), place) for place in choices
        )
        better = score > trained.fitness
        found.append(
            statistics.fmean(trained.scores[best].fitness[valued_by]) if better else trained.fitness
        )
    return statistics.fmean(found)


def _score(trained: Trained, place: int, episodes: int) -> float:
    return statistics.fmean(trained.scores[place].fitness[:episodes])


def raced(generation: Sequence[Trained], policy: Policy, settings: TrainingSettings) -> Raced:
    """One generation's race."""
    rungs = Rungs(settings, policy.shares)
    kept = dict(enumerate(generation))
    left: list[int] = []
    scoring = 0.0
    for rung, place in enumerate(rungs.places):
        left += [len(kept)] * (place + 1 - len(left))
        values = {
            candidate: value(trained, rungs.places[: rung + 1], policy)
            for candidate, trained in kept.items()
        }
        scoring += sum(scoring_cost(trained, place, policy) for trained in kept.values())
        if policy.ahead and not _ahead(
            [each for each in values.values() if each is not None], policy.ahead
        ):
            continue
        for candidate in behind(values, margin=policy.margin * (rung + 1)):
            del kept[candidate]
    left += [len(kept)] * (settings.checkpoints - len(left))
    known = rungs.places if policy.by in ("now", "best") else ()
    for trained in kept.values():
        scoring += sum(
            trained.scores[place].cost
            for place in policy.choices((), len(trained.checkpoints))
            if place not in known
        )
    return Raced(tuple(kept.values()), tuple(left), scoring)


def _ahead(values: Sequence[float], deviations: float) -> bool:
    """Whether the best is so far above the median that it has learned something."""
    median = statistics.median(values)
    spread = 1.4826 * statistics.median(abs(each - median) for each in values)
    return max(values) - median > deviations * max(spread, LEAST_SPREAD * abs(median))


def rank_correlations(
    trained: Sequence[Trained], by: By = "curve", chosen: int = 0, episodes: int = SCORE_EPISODES
) -> list[float]:
    """Of what candidates are compared by, at each checkpoint where it is known, with the final
    fitness (Spearman)."""
    policy = Policy((), 0.0, by, episodes, chosen=chosen)
    final = _ranks([final_fitness(each, (), policy) for each in trained])
    return [
        statistics.correlation(
            _ranks([value(each, range(place + 1), policy) or 0.0 for each in trained]), final
        )
        for place in range(len(trained[0].scores if policy.scores else trained[0].checkpoints))
    ]


def leader_lost(
    trained: Sequence[Trained],
    by: By,
    place: int,
    draws: int,
    seed: int,
    size: int = GENERATION,
    chosen: int = 0,
) -> tuple[float, float]:
    """What the leader of a generation at a checkpoint lacks, in the end, of the best one; and how
    often it is not the best one."""
    generator = random.Random(seed)
    policy = Policy((), 0.0, by, chosen=chosen)
    values = [
        (value(each, range(place + 1), policy) or 0.0, final_fitness(each, (), policy))
        for each in trained
    ]
    lost = []
    for _ in range(draws):
        generation = generator.sample(values, size)
        lost.append(max(fitness for _, fitness in generation) - max(generation)[1])
    return statistics.fmean(lost), statistics.fmean(each > 0 for each in lost)


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    places = {candidate: float(rank) for rank, candidate in enumerate(order)}
    return [places[candidate] for candidate in range(len(values))]


def expected_best(scores: Sequence[float], count: int) -> float:
    """Mean of the best of `count` different ones of the scores."""
    ways = math.comb(len(scores), count)
    return sum(
        math.comb(place, count - 1) * score / ways for place, score in enumerate(sorted(scores))
    )


def as_good_as(means: Sequence[float], lost: float) -> float:
    """How many candidates, at least 1, have a mean best that is by `lost` below that of all;
    interpolated.

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
    places = Rungs(settings, policy.shares).places
    final = {id(each): final_fitness(each, places, policy) for each in trained}
    best, could, kept, samples, shares, waits = [], [], [], [], [], []
    for _ in range(draws):
        generation = generator.sample(list(trained), size)
        race = raced(generation, policy, settings)
        best.append(max(each.fitness for each in generation))
        could.append(max(final[id(each)] for each in generation))
        kept.append(max(final[id(each)] for each in race.kept))
        samples.append(sum(race.left) / (size * len(race.left)))
        shares.append(race.share)
        waits.append(alone(race.left, speeds) + race.scoring / size)
    lost = statistics.fmean(best) - statistics.fmean(kept)
    most = len(scores) if policy.chosen else size
    means = [expected_best(scores, count) for count in range(1, most + 1)]
    as_many = as_good_as(means, lost + means[-1] - means[size - 1])
    reached, reached_raced = (sum(value >= level for value in values) for values in (best, kept))
    return {
        "samples_saved": 1.0 - statistics.fmean(samples),
        "scoring": statistics.fmean(shares) - statistics.fmean(samples),
        "winner_stopped": statistics.fmean(
            ours < theirs for ours, theirs in zip(kept, could, strict=True)
        ),
        "fitness_lost": lost,
        "as_good_as": as_many,
        "time": size * statistics.fmean(shares) / as_many,
        "time_alone": size * statistics.fmean(waits) / as_many,
        "time_to_level": (
            statistics.fmean(shares) * reached / reached_raced if reached_raced else math.inf
        ),
    }


def times_without(
    trained: Sequence[Trained],
    settings: TrainingSettings,
    policy: Policy,
    draws: int,
    seed: int,
    size: int,
) -> list[float]:
    """The policy's time as one part of the trainings after the other is left out."""
    speeds = {1: 1.0}
    times = []
    for part in range(PARTS):
        rest = [each for place, each in enumerate(trained) if place % PARTS != part]
        times.append(compare(rest, settings, policy, draws, seed, speeds, size)["time"])
    return times


def jackknife_error(values: Sequence[float]) -> float:
    """Standard error of an estimate from what it is as one part of the data after the other is left
    out (Tukey 1958)."""
    return math.sqrt((len(values) - 1) * statistics.pvariance(values))


@dataclass(frozen=True)
class Seeds:
    """Rewards that were each trained from the same number of seeds."""

    trainings: dict[str, tuple[Trained, ...]]

    def reward_share(self) -> float:
        """The part of the trainings' variance that is the rewards' (one-way analysis of
        variance)."""
        scores = [[each.fitness for each in group] for group in self.trainings.values()]
        within = statistics.fmean(statistics.variance(group) for group in scores)
        between = statistics.variance([statistics.fmean(group) for group in scores]) - within / len(
            scores[0]
        )
        return max(0.0, between) / (max(0.0, between) + within)

    def winner(
        self,
        settings: TrainingSettings,
        policy: Policy | None,
        draws: int,
        seed: int,
        size: int = GENERATION,
    ) -> float:
        """Mean fitness that the winner of a race has from the seeds which it did not race with."""
        generator = random.Random(seed)
        found = []
        for _ in range(draws):
            generation = [
                generator.choice(self.trainings[name])
                for name in generator.sample(list(self.trainings), size)
            ]
            kept = generation if policy is None else raced(generation, policy, settings).kept
            best = max(kept, key=lambda each: each.fitness)
            found += [each.fitness for each in self.trainings[best.reward] if each is not best]
        return statistics.fmean(found)
