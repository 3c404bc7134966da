"""Suggestion of constants from trials.

The optimiser is optuna's tree-structured Parzen estimator (Bergstra et al. 2011) on the logarithms
of the constants. This module adds the range, and the first few trials, drawn around the parent. The
figures below are from an offline study (`benchmarks/tuning_synthetic.py`, `benchmarks/LOG.md`).

Against noise the estimator uses ranks instead of differences, and the range does not follow every
lucky training. Where noise is as large as the constants' effect, this is no better than random
steps.
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
"""Factor by which a constant can leave the parent's, up and down, anywhere in the range."""
SPREAD = 0.7
"""Standard deviation of a first trial's logarithm. Two in three constants change by less than a
factor of two."""
LEAST_TRIALS = 5
"""Trials, the parent's included, from which the estimator proposes."""


@dataclass(frozen=True)
class Trial:
    """Constants of a trained reward, with its policy's fitness."""

    values: Mapping[str, float]
    fitness: float


def suggest(parent: Mapping[str, float], trials: Sequence[Trial], seed: int) -> dict[str, float]:
    """New values of the parent's constants, with its signs. A pure function.

    `trials` have the same constants with the same signs, in their order, the parent's own included;
    higher fitness is better. `seed`: 0 to 2³² − 1.
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
    """The middle of every constant's range: its value in the first trial of this form, or the
    nearest that leaves the parent its room.

    Around the best trial, a search of few and noisy trainings would follow the luckiest one.
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
    """The estimator's proposal, as logarithms of factors of the middle. A trial beyond the range
    counts as one at its edge."""
    import optuna  # takes a third of a second, and few searches come here

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # for the whole process, since `warnings.catch_warnings` is not thread-safe
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
