"""From constants that were tried, and what they were worth, to constants that are worth a training.

The optimiser is optuna's tree-structured Parzen estimator (Bergstra et al. 2011) on the logarithms
of the constants. What is here beside it: the range, and the first few trials, which are drawn
around the parent. The figures below are those of an offline study
(`benchmarks/tuning_synthetic.py`, `benchmarks/LOG.md`).

Nothing is done about noise but that the estimator knows ranks and no differences, and that the
range does not follow every lucky training. Where noise is as large as what the constants change,
this is no better than random steps.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

REACH = 5.0
"""Largest factor between a constant and the middle of its range."""
ROOM = 1.5
"""Factor by which a constant can leave the parent's, up and down, wherever the parent is in the
range."""
SPREAD = 0.7
"""Standard deviation of a first trial's logarithm: two in three constants change by less than a
factor of two."""
LEAST_TRIALS = 5
"""Trials, the parent's among them, from which the estimator proposes."""


@dataclass(frozen=True)
class Trial:
    """Constants that were tried, and the fitness of the policy that they trained."""

    values: Mapping[str, float]
    fitness: float


def suggest(parent: Mapping[str, float], trials: Sequence[Trial], seed: int) -> dict[str, float]:
    """New values of the parent's constants, with its signs. A pure function.

    `trials`: of the same constants with the same signs, in the order in which they were made, the
    parent's own among them. Higher fitness is better. `seed`: 0 to 2³² − 1.
    """
    middle = _middle(parent, trials[0].values if trials else parent)
    if len(trials) < LEAST_TRIALS:
        generator = random.Random(seed)
        logarithms = {
            name: math.log(value / middle[name]) + generator.gauss(0.0, SPREAD)
            for name, value in parent.items()
        }
    else:
        logarithms = _by_estimator(middle, trials, seed)
    return {name: value * math.exp(_within(logarithms[name])) for name, value in middle.items()}


def _middle(parent: Mapping[str, float], first: Mapping[str, float]) -> dict[str, float]:
    """The middle of every constant's range: its value in the first trial of this form, or as near
    to it as leaves the parent its room.

    Around the best trial so far, a search of few and noisy trainings follows the luckiest one.
    """
    farthest = REACH / ROOM
    return {
        name: value
        * min(
            max(first[name] / value, 1.0 / farthest), farthest
        )  # positive: their signs are the same
        for name, value in parent.items()
    }


def _within(logarithm: float) -> float:
    return min(max(logarithm, -math.log(REACH)), math.log(REACH))


def _by_estimator(
    middle: Mapping[str, float], trials: Sequence[Trial], seed: int
) -> dict[str, float]:
    """What the estimator proposes, as logarithms of factors of the middle. A trial beyond the range
    counts as one at its edge."""
    import optuna  # takes a third of a second, and few searches come here

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # for this process: what `warnings.catch_warnings` puts back, it puts back for every thread
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    sampler = optuna.samplers.TPESampler(
        seed=seed, multivariate=True, n_startup_trials=LEAST_TRIALS
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    ranges: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.FloatDistribution(-math.log(REACH), math.log(REACH))
        for name in middle
    }
    for trial in trials:
        logarithms = {
            name: _within(math.log(trial.values[name] / value)) for name, value in middle.items()
        }
        study.add_trial(
            optuna.trial.create_trial(params=logarithms, distributions=ranges, value=trial.fitness)
        )
    return study.ask(ranges).params
