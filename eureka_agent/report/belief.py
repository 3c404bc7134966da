"""Beliefs about a run's best reward, from all its trainings together."""

from __future__ import annotations

from dataclasses import dataclass

from eureka_agent.records import Stage
from eureka_agent.report.run_report import RunReport

HOUR = 3600.0


@dataclass(frozen=True)
class Belief:
    """Beliefs about the best of several finalists, by `eureka_agent.posterior`."""

    chance: float
    """Probability that its mean over seeds is the highest of the finalists'."""
    expected: float
    """Fitness to be expected of a further seed."""
    more: int
    """Rewards that another hour would train, at the run's own pace."""
    gain: float
    """Rise of the fitness that is as likely as not, if they are as good as those so far."""


def belief_in_best(report: RunReport) -> Belief | None:
    """Beliefs about the run's best reward; None where it is not one of several finalists.

    Every trained reward counts with all its trainings, in the search and at the end: a winner's
    luck in the search is weighed with the bad luck of the others. A failed training counts as the
    worst of all.
    """
    finalists = [score.name for score in report.finalists if score.mean is not None]
    if report.best is None or report.best.id not in finalists or len(finalists) < 2:
        return None
    from eureka_agent.posterior import posterior  # with numpy, which lists of runs do without

    known: dict[str, list[float | None]] = {
        each.id: [*each.fitness_per_seed, *(None for one in each.repeats if one.outcome is None)]
        for each in report.attempts
        if each.stage is Stage.TRAINED
    }
    for score in report.finalists:
        known.setdefault(score.name, []).extend(score.fitness)
    values = [value for each in known.values() for value in each if value is not None]
    if not values:
        return None
    worst = min(values)
    trained = {name: each for name, each in known.items() if each}
    names = list(trained)
    found = posterior(
        [[worst if value is None else value for value in each] for each in trained.values()]
    )
    best = names.index(report.best.id)
    chances = found.probability_best([names.index(name) for name in finalists])
    expected = float(found.means[best])
    more = max(1, round(HOUR * report.cost.trainings / max(report.seconds, 1.0)))
    gain = found.gain(best, more)
    if (solved := report.description.success_fitness) is not None:
        gain = min(gain, max(0.0, solved - expected))
    return Belief(float(chances[finalists.index(report.best.id)]), expected, more, gain)
