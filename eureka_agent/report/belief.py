"""Beliefs about a run's best reward, from all its trainings together."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eureka_agent.ranking import all_scores
from eureka_agent.records import Score
from eureka_agent.report.comparison import (
    FEWEST_SEEDS,
    Comparison,
    compare_scores,
    known_fitness,
)
from eureka_agent.report.run_report import RunReport

if TYPE_CHECKING:
    from eureka_agent.posterior import Posterior

HOUR = 3600.0


@dataclass(frozen=True)
class Belief:
    """Beliefs about the best of several finalists, by `eureka_agent.posterior`."""

    chance: float
    """Probability that its mean over seeds is the highest of the finalists'."""
    finalists: int
    expected: float
    """Fitness to be expected of a further seed."""
    more: int
    """Rewards that another hour would train, at the run's own pace."""
    gain: float
    """Rise of the fitness that is as likely as not, if they are as good as those so far."""


def belief_in_best(report: RunReport) -> Belief | None:
    """Beliefs about the run's best reward; None where it is not one of several finalists.

    Every trained reward counts with all its trainings, in the search and at the end: a winner's
    luck in the search is weighed with the bad luck of the others.
    """
    known = _posterior(report)
    if known is None:
        return None
    names, found = known
    finalists = [name for name in names if name in _finalists(report)]
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
    return Belief(chance, len(finalists), expected, more, gain)


def lead_of_best(report: RunReport, baseline: Score) -> Comparison | None:
    """The best reward's mean less a baseline's, with a 95 % interval; None for too few seeds.

    The best of several rewards was chosen by its scores, and its finals ended when they told
    enough. Welch's interval takes no account of that and holds less often than it says. A posterior
    does not depend on when one stops, where it weighs all that the decisions saw (Gelman et al.,
    Bayesian Data Analysis, chapter 8): here all trainings of all rewards. On the stored tables it
    holds in 94 to 96 %, Welch's in 90 to 94 % (benchmarks/certainty.py). The baseline counts with
    its own noise alone.
    """
    score, known = report.best_score, _posterior(report)
    values = known_fitness(baseline)
    if score is None or known is None or len(known[0]) < 2:
        return None if score is None else compare_scores(score, baseline)
    if min(len(values), len(known_fitness(score))) < FEWEST_SEEDS:
        return None
    import numpy as np

    names, found = known
    assert report.best is not None  # as it is known
    place = names.index(report.best.id)
    random = np.random.default_rng(0)
    error = statistics.stdev(values) / len(values) ** 0.5
    theirs = statistics.fmean(values) + error * random.standard_t(len(values) - 1, len(found.draws))
    low, high = np.quantile(found.draws[:, place] - theirs, [0.025, 0.975])
    difference = float(found.means[place]) - statistics.fmean(values)
    return Comparison(difference, float(low), float(high))


def _finalists(report: RunReport) -> set[str]:
    return {*report.chosen, *(each.name for each in report.finalists if each.mean is not None)}


def _posterior(report: RunReport) -> tuple[list[str], Posterior] | None:
    """Names of all trained rewards, and beliefs about them; None where the best is no finalist."""
    best = report.best_score
    if best is None or best.mean is None:
        return None
    from eureka_agent.posterior import posterior  # with numpy, which lists of runs do without

    known = all_scores(report.attempts, report.finalists)
    return list(known), posterior(list(known.values()))
