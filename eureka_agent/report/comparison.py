"""Comparison of two rewards beyond the noise of a few seeds, and beliefs about a run's best one."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eureka_agent.ranking import are_level
from eureka_agent.records import Score
from eureka_agent.report.run_report import RunReport

if TYPE_CHECKING:
    from eureka_agent.posterior import Posterior

FEWEST_SEEDS = 3
"""Seeds from which an interval is useful: with two, Student's t is 12.7."""


@dataclass(frozen=True)
class ScoreComparison:
    """Difference of two means with Welch's 95 % interval (B. L. Welch, 1947)."""

    difference: float
    low: float
    high: float

    @property
    def better(self) -> bool:
        return self.low > 0

    @property
    def worse(self) -> bool:
        return self.high < 0

    @property
    def relation(self) -> str:
        """`better than`, `worse than` or `not told apart from`."""
        if self.better:
            return "better than"
        return "worse than" if self.worse else "not told apart from"

    @property
    def width(self) -> float:
        return self.high - self.low


def compare(ours: Sequence[float], theirs: Sequence[float]) -> ScoreComparison | None:
    """`ours` minus `theirs`, one value per seed; None with fewer than two seeds of either."""
    if len(ours) < 2 or len(theirs) < 2:
        return None
    difference = statistics.fmean(ours) - statistics.fmean(theirs)
    parts = [(statistics.variance(values) / len(values), len(values)) for values in (ours, theirs)]
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return ScoreComparison(difference, difference, difference)
    degrees_of_freedom = variance**2 / sum(part**2 / (size - 1) for part, size in parts)
    from scipy.special import stdtrit  # most commands do without

    margin = float(stdtrit(degrees_of_freedom, 0.975)) * math.sqrt(variance)
    return ScoreComparison(difference, difference - margin, difference + margin)


def compare_scores(ours: Score, theirs: Score) -> ScoreComparison | None:
    """Comparison over seeds; None with fewer than `FEWEST_SEEDS` known ones of either."""
    values = known_fitness(ours), known_fitness(theirs)
    return None if min(map(len, values)) < FEWEST_SEEDS else compare(*values)


def told_apart(ours: Score, theirs: Score) -> bool:
    """True where one is better than the other beyond the noise of their seeds."""
    comparison = compare_scores(ours, theirs)
    return comparison is not None and (comparison.better or comparison.worse)


def known_fitness(score: Score) -> list[float]:
    """Fitness of the seeds whose trainings did not fail."""
    return [value for value in score.fitness if value is not None]


HOUR = 3600.0


@dataclass(frozen=True)
class Belief:
    """Beliefs about the best of several finalists, by `eureka_agent.posterior`."""

    chance: float
    """Probability that its mean over seeds is the highest of the finalists'."""
    finalists: int
    level: tuple[str, ...]
    """Ids of the finalists that came to the same fitness from every seed."""
    expected: float
    """Fitness to be expected of a further seed."""
    more: int
    """Rewards that another hour would train, at the run's own pace."""
    gain: float
    """Rise of the fitness that is as likely as not, if they are as good as those so far."""


def belief_in_best(report: RunReport) -> Belief | None:
    """Beliefs about the run's best reward; None where it is not one of several finalists. Every
    trained reward counts with all its trainings, in the search and at the end: a winner's luck in
    the search is weighed with the bad luck of the others."""
    known = report.scores_and_posterior
    if known is None:
        return None
    scores, found = known
    names = list(scores)
    chosen = {*report.chosen, *(each.name for each in report.finalists if each.mean is not None)}
    finalists = [name for name in names if name in chosen]
    if len(finalists) < 2:
        return None
    assert report.best is not None  # as it is known
    best = names.index(report.best.id)
    chances = found.probability_best([names.index(name) for name in finalists])
    expected = float(found.means[best])
    more = max(1, round(HOUR * report.cost.trainings / max(report.seconds, 1.0)))
    gain = found.gain(best, more)
    if (solved := report.description.success_fitness) is not None:
        gain = min(gain, max(0.0, solved - expected))
    chance = float(chances[finalists.index(report.best.id)])
    others = (name for name in finalists if name != report.best.id)
    level = tuple(name for name in others if are_level(scores[name], scores[report.best.id]))
    return Belief(chance, len(finalists), level, expected, more, gain)


def lead_of_best(report: RunReport, baseline: Score) -> ScoreComparison | None:
    """The best reward's mean less a baseline's, with a 95 % interval; None for too few seeds.
    Welch's, where only one reward was trained; `lead` where the best one is one of several."""
    score, known = report.best_score, report.scores_and_posterior
    values = known_fitness(baseline)
    if score is None or known is None or len(known[0]) < 2:
        return None if score is None else compare_scores(score, baseline)
    if min(len(values), len(known_fitness(score))) < FEWEST_SEEDS:
        return None
    scores, found = known
    assert report.best is not None  # as it is known
    return lead(found, list(scores).index(report.best.id), values)


def lead(found: Posterior, place: int, baseline: Sequence[float]) -> ScoreComparison:
    """The mean of a reward less a baseline's, with a 95 % interval; the baseline from its scores
    alone, at least two. The best of several rewards was chosen by its scores, and its finals ended
    when they told enough, of which Welch's interval takes no account. A posterior does not depend
    on when one stops, where it weighs all that the decisions saw (Gelman et al., Bayesian Data
    Analysis, chapter 8): here all trainings of all rewards. On the stored tables it is narrower
    than Welch's and holds as often (`benchmarks/certainty.py`)."""
    import numpy as np

    random = np.random.default_rng(0)
    mean, error = statistics.fmean(baseline), statistics.stdev(baseline) / len(baseline) ** 0.5
    theirs = mean + error * random.standard_t(len(baseline) - 1, len(found.draws))
    low, high = np.quantile(found.draws[:, place] - theirs, [0.025, 0.975])
    return ScoreComparison(float(found.means[place]) - mean, float(low), float(high))
