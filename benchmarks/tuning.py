"""Gain of choosing constants with the optimiser over random steps: the swing-up's human reward with
its constants spoiled, N trainings each way.

    python benchmarks/tuning.py [--quick] [--seeds N …] [--trainings N] [--batch N] [--final-seeds
    N] [--env-steps N]

The human reward's numbers get names, and every one of them is multiplied or divided by four, in
turns. From there, for every seed,

- "tuned": batches of proposals of the tuning designer. The parent of each is the best so far, as in
  a search; the proposals of a batch do not know of each other;
- "random": as many log-normal steps from the spoiled reward, as wide as the designer's first ones.

Both arms start from the same training of the spoiled reward, and their n-th trainings have the same
seed. The best of each arm (by its one training, as it was found) is trained again from fresh seeds:
that mean is what counts, since the fitness by which it was chosen flatters it. Beside them the
human and the spoiled reward, trained from the same fresh seeds. Trainings run in this process,
without critic and wall. One pair of arms with 16 trainings takes about as long as 40 trainings of
the task.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import statistics
import sys
from dataclasses import dataclass, field
from typing import Any

import torch
from _common import start, subject
from _intervals import interval
from _results import write_result
from offline_designer import Bench

from eureka_agent.designer.given import given_reward
from eureka_agent.designer.interface import DesignRequest, ParentSummary, TunedReward
from eureka_agent.designer.tuning.constants import tunable_constants, with_constants
from eureka_agent.designer.tuning.designer import TuningDesigner
from eureka_agent.designer.tuning.optimiser import REACH, SPREAD
from eureka_agent.records import Operator
from eureka_agent.rewards import baseline
from eureka_agent.simulation.loading import describe
from eureka_agent.training.reward_loading import load_reward

NAME = "tuning"
FACTOR = 4.0
PARENT = "spoiled"
HUMAN = '''"""The factors of the swing-up's human reward, with names for its numbers."""

from __future__ import annotations

import math

import torch
from torch import Tensor

CENTRED_MARGIN = 2.0
EFFORT_SHARE = 0.2
SLOW_MARGIN = 5.0
FAILURE_PRICE = -5.0


def tolerance(value: Tensor, margin: float) -> Tensor:
    return torch.exp(math.log(0.1) * (value / margin).square())


def compute_reward(
    pole_upright: Tensor,
    cart_position: Tensor,
    pole_angular_velocity: Tensor,
    actions: Tensor,
    terminated: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    upright = (pole_upright + 1.0) / 2.0
    centred = (1.0 + tolerance(cart_position, CENTRED_MARGIN)) / 2.0
    small_control = 1.0 - EFFORT_SHARE * actions[:, 0].square()
    slow_pole = (1.0 + tolerance(pole_angular_velocity, SLOW_MARGIN)) / 2.0
    left_the_track = FAILURE_PRICE * terminated
    components = {
        "upright": upright,
        "centred": centred,
        "small_control": small_control,
        "slow_pole": slow_pole,
        "left_the_track": left_the_track,
    }
    return upright * centred * small_control * slow_pole + left_the_track, components
'''


def spoiled() -> str:
    """The named reward with every constant times or over `FACTOR`, in turns."""
    constants = tunable_constants(HUMAN)
    factors = [FACTOR if place % 2 == 0 else 1.0 / FACTOR for place in range(len(constants))]
    return with_constants(
        HUMAN,
        {
            name: value * factor
            for (name, value), factor in zip(constants.items(), factors, strict=True)
        },
    )


@dataclass
class Arm:
    """One way of spending the trainings from one seed."""

    name: str
    seed: int
    trained: list[TunedReward] = field(default_factory=list)

    def proposals(self, bench: Bench, number: int) -> dict[str, str]:
        """The next sources by job name."""
        begin = len(self.trained) - 1
        jobs = [f"{self.name}-{self.seed}-{begin + place}" for place in range(number)]
        sources = (
            [self._random(job) for job in jobs]
            if self.name == "random"
            else self._tuned(bench, jobs)
        )
        return dict(zip(jobs, sources, strict=True))

    def best(self) -> TunedReward:
        return max(self.trained, key=lambda each: each.fitness)

    def _random(self, job: str) -> str:
        generator, parent = random.Random(job), self.trained[0].reward.source
        reach = math.log(REACH)
        steps = {
            name: min(max(generator.gauss(0.0, SPREAD), -reach), reach)
            for name in tunable_constants(parent)
        }
        return with_constants(
            parent,
            {
                name: value * math.exp(steps[name])
                for name, value in tunable_constants(parent).items()
            },
        )

    def _tuned(self, bench: Bench, jobs: list[str]) -> list[str]:
        best, designer = self.best(), TuningDesigner()
        parents = (ParentSummary(best.id, best.reward, best.fitness, None, ""),)
        requests = [
            DesignRequest(
                description=bench.description,
                sentence=bench.task.sentence,
                operator=Operator.TUNE_WEIGHTS,
                parents=parents,
                failures=(),
                seed=random.Random(job).getrandbits(32),
                trained=tuple(self.trained),
            )
            for job in jobs
        ]

        async def ask() -> list[str]:
            return [
                each.reward.source
                for each in await asyncio.gather(
                    *(designer.propose(request) for request in requests)
                )
            ]

        return asyncio.run(ask())


def training_seed(job: str) -> int:
    """Seed of the n-th training: the same in both arms, another for every seed of the benchmark."""
    _, seed, place = job.split("-")
    return 100_000 + 1_000 * int(seed) + int(place)


def fitness_of(bench: Bench, sources: dict[str, str], seeds: dict[str, int]) -> dict[str, float]:
    """Every source trained once; failed ones are missing."""
    return {
        name: evaluation.fitness_mean()
        for name, (_, _, evaluation) in bench.train(sources, seeds).items()
    }


def search(bench: Bench, seeds: list[int], trainings: int, batch: int) -> list[Arm]:
    """Both arms of every seed, batch after batch, side by side."""
    begins = {f"{PARENT}-{seed}-0": spoiled() for seed in seeds}
    found = fitness_of(
        bench, begins, {job: 90_000 + seed for job, seed in zip(begins, seeds, strict=True)}
    )
    arms = []
    for job, seed in zip(begins, seeds, strict=True):
        for name in ("tuned", "random"):
            arms.append(
                Arm(name, seed, [TunedReward(PARENT, given_reward(begins[job]), found[job])])
            )
    for done in range(0, trainings, batch):
        proposed = [(arm, arm.proposals(bench, min(batch, trainings - done))) for arm in arms]
        sources = {job: source for _, each in proposed for job, source in each.items()}
        found = fitness_of(bench, sources, {job: training_seed(job) for job in sources})
        for arm, each in proposed:
            # a training that failed is worth nothing, and the optimiser is to know it
            arm.trained += [
                TunedReward(job, given_reward(source), found.get(job, 0.0))
                for job, source in each.items()
            ]
            print(
                f"  seed {arm.seed} {arm.name:6}"
                f" {_shown([trial.fitness for trial in arm.trained])}",
                flush=True,
            )
    return arms


def final(bench: Bench, arms: list[Arm], final_seeds: int) -> dict[str, list[float]]:
    """The human's, the spoiled and every arm's best reward, each from the same fresh seeds."""
    rewards = {"human": HUMAN, PARENT: spoiled()} | {
        f"{arm.name}-{arm.seed}": arm.best().reward.source for arm in arms
    }
    jobs = {
        f"{name}/{seed}": source for name, source in rewards.items() for seed in range(final_seeds)
    }
    found = fitness_of(bench, jobs, {job: 500_000 + int(job.rpartition("/")[2]) for job in jobs})
    return {
        name: [found.get(f"{name}/{seed}", 0.0) for seed in range(final_seeds)] for name in rewards
    }


def check_named_reward(bench: Bench) -> None:
    """The named reward is the human's: equal totals on random states."""
    variables = bench.environment.environment_class.all_variables()
    generator = torch.Generator().manual_seed(0)
    states = {each.name: torch.randn(256, *each.shape, generator=generator) for each in variables}
    named, human = (
        load_reward(each, variables)(states)[0]
        for each in (baseline(HUMAN), bench.description.baselines["human"])
    )
    torch.testing.assert_close(named, human)


def measure(bench: Bench, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run it and print the table. Returns the figures to store."""
    arms = search(bench, arguments.seeds, arguments.trainings, arguments.batch)
    scores = final(bench, arms, arguments.final_seeds)
    means = {name: statistics.mean(values) for name, values in scores.items()}
    print(f"\n{'reward':12} {'mean':>7}   fresh trainings")
    for name, values in scores.items():
        print(f"{name:12} {means[name]:7.3f}   {_shown(values)}")
    gains = [means[f"tuned-{seed}"] - means[f"random-{seed}"] for seed in arguments.seeds]
    if len(gains) > 1:
        middle, half = interval(gains)
        print(
            f"\ntuned minus random, paired by seed: {middle:+.3f} ± {half:.3f}"
            f" {bench.task.fitness_unit} (95 %)"
        )
    for arm in arms:
        print(f"{arm.name}-{arm.seed}: {tunable_constants(arm.best().reward.source)}")
    return {
        "trainings": arguments.trainings,
        "batch": arguments.batch,
        "env_steps": bench.settings.env_steps,
        "found": {
            f"{arm.name}-{arm.seed}": [trial.fitness for trial in arm.trained] for arm in arms
        },
        "constants": {
            f"{arm.name}-{arm.seed}": tunable_constants(arm.best().reward.source) for arm in arms
        },
        "final": scores,
        "gains": gains,
    }


def _shown(values: list[float]) -> str:
    return " ".join(f"{value:.2f}" for value in values)


def main() -> int:
    """Print trainings as they end, then the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="a few tiny trainings: shows only that it runs"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--trainings", type=int, default=16, help="of each arm")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--final-seeds", type=int, default=4)
    parser.add_argument("--env-steps", type=int, default=0, help="instead of the task's budget")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seeds, arguments.trainings, arguments.batch = [1, 2], 6, 3
        arguments.final_seeds, arguments.env_steps = 2, 4_096
    start()
    chosen = subject("cartpole/swingup")
    budget = {"env_steps": arguments.env_steps} if arguments.env_steps else {}
    bench = Bench(
        chosen.loaded, chosen.task, describe(chosen.loaded, "swingup"), chosen.settings(**budget)
    )
    check_named_reward(bench)
    figures = measure(bench, arguments)
    if not arguments.quick:
        write_result(NAME, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
