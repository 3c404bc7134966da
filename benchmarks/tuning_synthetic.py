"""Trainings that each way of choosing constants needs: invented objectives of 3 to 8 constants,
noisy as trainings are, 4, 8 and 16 evaluations.

    python benchmarks/tuning_synthetic.py [--quick] [--seeds N] [--sizes N …] [--noise X …] [--batch
    N] [ARM …]

An objective is 0 to 1 and a function of the constants' logarithms. Its optimum is log-normally far
from the parent (a factor of 2.5 for one standard deviation); constants differ in how much they
count. Five kinds: a bowl; a bowl that sees ratios of constants alone; a bowl turned in space that
is flat in half of its directions; a bowl with a cliff, as where a reward is hacked; a plateau. An
evaluation adds Gaussian noise of a standard deviation of `--noise`, and one in twelve comes to 30 %
of what it was worth, as a training that found nothing. Proposals come in batches that do not know
of each other. The parent is the best evaluation so far. Counted is the true objective of what a
search would end with: the best three of all evaluations, evaluated twice more, the best mean.

Nothing is stored. All arms with 16 seeds take about 20 minutes; an ARM is the beginning of a name.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from eureka_agent.designer.tuning import optimiser
from eureka_agent.designer.tuning.optimiser import Trial, suggest

Vector = NDArray[np.float64]
KINDS = ("bowl", "ratios", "turned", "cliff", "plateau")
BUDGETS = (4, 8, 16)
FACTOR = 2.5
LUCKLESS = 1.0 / 12.0
CONFIRMED = 3


class Objective:
    """Value of constants, by their logarithms relative to the first parent's."""

    def __init__(self, kind: str, size: int, seed: int) -> None:
        generator = np.random.default_rng([seed, size, KINDS.index(kind)])
        self.kind = kind
        self.optimum = np.clip(
            generator.normal(0.0, math.log(FACTOR), size), -math.log(6.0), math.log(6.0)
        )
        counts = np.exp(generator.normal(0.0, 0.8, size))
        self.counts = 1.2 * counts / np.linalg.norm(counts)
        self.turn = np.linalg.qr(generator.normal(size=(size, size)))[0]
        direction = generator.normal(size=size)
        self.cliff = direction / np.linalg.norm(direction)

    def __call__(self, logarithms: Vector) -> float:
        off = logarithms - self.optimum
        if self.kind == "ratios":
            off = off - off.mean()
        if self.kind == "turned":
            stretch = np.where(np.arange(len(off)) < len(off) // 2, 0.3, 1.2)
            return math.exp(-float(np.square(stretch * (self.turn @ off)).mean()))
        distance = float(np.linalg.norm(self.counts * off))
        if self.kind == "plateau":
            return 1.0 / (1.0 + math.exp(6.0 * (distance - 1.0)))
        fallen = self.kind == "cliff" and float(self.cliff @ off) > 0.7
        return math.exp(-(distance**2)) * (0.2 if fallen else 1.0)


Tried = list[tuple[Vector, float]]
"""Logarithms and the results of their evaluations; the first parent comes first."""
Chooser = Callable[[Tried, int], Vector]


@dataclass(frozen=True)
class Arm:
    """A way of choosing constants."""

    name: str
    choose: Chooser
    settings: tuple[tuple[str, float], ...] = ()
    """Other values for constants of the optimiser's module."""

    def setting(self) -> AbstractContextManager[object]:
        """The optimiser with this arm's settings."""
        return (
            patch.multiple(optimiser, **dict(self.settings))
            if self.settings
            else patch.multiple(optimiser, REACH=5.0)
        )


def best(tried: Tried) -> Vector:
    return max(tried, key=lambda each: each[1])[0]


def by_designer(tried: Tried, seed: int) -> Vector:
    """The tuning designer's choice."""

    def named(logarithms: Vector) -> dict[str, float]:
        return {f"C{place}": math.exp(value) for place, value in enumerate(logarithms)}

    values = suggest(
        named(best(tried)), [Trial(named(each), fitness) for each, fitness in tried], seed
    )
    return np.log(list(values.values()))


def steps(spread: float, around: Callable[[Tried], Vector], constants: int = 0) -> Chooser:
    """Log-normal steps, of all constants or of a few drawn ones."""

    def choose(tried: Tried, seed: int) -> Vector:
        generator, middle = np.random.default_rng(seed), around(tried)
        step = generator.normal(0.0, spread, len(middle))
        if constants:
            step[generator.permutation(len(middle))[constants:]] = 0.0
        return middle + step

    return choose


def uniform(tried: Tried, seed: int) -> Vector:
    """A uniform draw from the first parent's range."""
    return np.random.default_rng(seed).uniform(-math.log(5.0), math.log(5.0), len(tried[0][0]))


def uniform_then_designer(tried: Tried, seed: int) -> Vector:
    """Uniform draws first, then the designer: optuna's default."""
    return uniform(tried, seed) if len(tried) < 10 else by_designer(tried, seed)


def first(tried: Tried) -> Vector:
    return tried[0][0]


ARMS = (
    Arm("random steps", steps(0.7, first)),
    Arm("random steps, 0.5", steps(0.5, first)),
    Arm("anywhere", uniform),
    Arm("steps around the best", steps(0.5, best)),
    Arm("steps around the best, 0.7", steps(0.7, best)),
    Arm("steps around the best, two constants", steps(0.7, best, constants=2)),
    Arm("designer", by_designer),
    Arm("designer, the range stays", by_designer, (("ROOM", 1.0),)),
    Arm("designer, more room", by_designer, (("ROOM", 2.0),)),
    Arm("designer, the range follows the best", by_designer, (("ROOM", 5.0),)),
    Arm("designer, from 3 trials", by_designer, (("LEAST_TRIALS", 3),)),
    Arm("designer, from 9 trials", by_designer, (("LEAST_TRIALS", 9),)),
    Arm("designer, first steps 0.5", by_designer, (("SPREAD", 0.5),)),
    Arm("designer, reach 3", by_designer, (("REACH", 3.0),)),
    Arm("anywhere, then designer from 10", uniform_then_designer),
)


def run(
    arm: Arm, objective: Objective, size: int, noise: float, batch: int, seed: int
) -> dict[int, float]:
    """The true objective of what the search would end with after each of the budgets."""
    case = [
        seed,
        size,
        KINDS.index(objective.kind),
        round(1000 * noise),
    ]  # every case has draws of its own
    generator = np.random.default_rng(case)

    def evaluate(logarithms: Vector) -> float:
        worth = objective(logarithms) * (0.3 if generator.random() < LUCKLESS else 1.0)
        return worth + float(generator.normal(0.0, noise))

    tried: Tried = [(np.zeros(size), evaluate(np.zeros(size)))]
    found = {}
    while len(tried) <= max(BUDGETS):
        seeds = [
            int(np.random.default_rng([*case, len(tried), place]).integers(2**32))
            for place in range(batch)
        ]
        tried += [(each, evaluate(each)) for each in [arm.choose(tried, each) for each in seeds]]
        if len(tried) - 1 in BUDGETS:
            finalists = sorted(tried, key=lambda each: -each[1])[:CONFIRMED]
            means = [
                statistics.mean((fitness, evaluate(each), evaluate(each)))
                for each, fitness in finalists
            ]
            found[len(tried) - 1] = objective(finalists[means.index(max(means))][0])
    return found


def main() -> int:
    """Print a line for each arm as it ends: mean after each budget, then its difference from the
    first arm with the standard error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("arms", nargs="*", metavar="ARM")
    parser.add_argument("--quick", action="store_true", help="two seeds: shows only that it runs")
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--sizes", type=int, nargs="+", default=[3, 5, 8])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.05, 0.15, 0.3])
    parser.add_argument("--batch", type=int, default=2)
    arguments = parser.parse_args()
    seeds = range(2 if arguments.quick else arguments.seeds)
    chosen = [
        arm
        for arm in ARMS
        if not arguments.arms or any(arm.name.startswith(name) for name in arguments.arms)
    ]
    cases = [
        (kind, size, noise, seed)
        for kind in KINDS
        for size in arguments.sizes
        for noise in arguments.noise
        for seed in seeds
    ]
    print(
        f"{'':38} "
        + " ".join(f"{f'after {budget}':>9}" for budget in BUDGETS)
        + "   and by noise after 16; against the first"
    )
    base: list[dict[int, float]] = []
    for arm in chosen:
        with arm.setting():
            found = [
                run(arm, Objective(kind, size, seed), size, noise, arguments.batch, seed)
                for kind, size, noise, seed in cases
            ]
        base = base or found
        line = " ".join(
            f"{statistics.mean(each[budget] for each in found):9.3f}" for budget in BUDGETS
        )
        after_16 = [(each[16], case[2]) for each, case in zip(found, cases, strict=True)]
        by_noise = " ".join(
            f"{statistics.mean(each for each, its_noise in after_16 if its_noise == noise):.3f}"
            for noise in arguments.noise
        )
        gains = [each[16] - other[16] for each, other in zip(found, base, strict=True)]
        error = statistics.stdev(gains) / math.sqrt(len(gains))
        print(
            f"{arm.name:38} {line}   {by_noise}   {statistics.mean(gains):+.3f} ± {error:.3f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
