"""Replays of searches that choose by expected improvement whom to train next, on tables of
`reward_table.py`, without a training.

    python benchmarks/surrogate.py --episodes FOLDER [TABLE …]

`FOLDER` is the one that the tables' trainings kept episodes in. For each table: deviations between
rewards and between seeds; the rank correlation of one seed's score, at the rungs and at the end,
with the mean of the other seeds. Then replayed searches: four rewards at random are trained, from
one seed each, then four at a time those of the highest expected improvement
(`eureka_agent.search.drafts`), on the episodes of all trained so far. Printed are the rank
correlation of what is expected with the means of the rewards that are left, and of their agreement
with the fitness alone; and what the winner is worth, by the mean of its other seeds in deviations
between rewards, against as many rewards at random. At last the trainings from which on the chosen
ones are worth what 12, 16 and 24 at random are, as a part of these; with an interval over draws,
stratified by table. A table has 24 rewards, so the last of these leaves no choice at its end.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from _common import start, subject
from reward_table import BASELINES, TABLES
from scipy.stats import spearmanr

from eureka_agent.records import Credit
from eureka_agent.search.attempt_training import PRACTICE_SHARE
from eureka_agent.search.drafts import Known, expected_improvements
from eureka_agent.training.evaluation import load_trajectories
from eureka_agent.training.reward import RewardFunction
from eureka_agent.worker.scoring import stored_steps

PRACTICE = f"@{PRACTICE_SHARE}.npz"
"""End of the names of episode files that count."""
GROUP = 4
"""Trainings between two choices."""
DRAWS = 30
RESAMPLES = 1000
COMPARED = 12, 16, 24
"""Trainings at random."""


@dataclass(frozen=True)
class Table:
    """Trainings of a task. Shape of `fitness`: (rewards, seeds), of `rungs`: (…, rungs)."""

    task: str
    sources: dict[str, str]
    fitness: np.ndarray
    rungs: np.ndarray


def read(path: Path) -> Table:
    """A stored table. What failed counts as the worst."""
    record = json.loads(path.read_text())
    sources = {name: each for name, each in record["sources"].items() if name not in BASELINES}
    names = list(sources)
    seeds = sorted({each["seed"] for each in record["trainings"]})
    fitness = np.full((len(names), len(seeds)), np.nan)
    rungs = np.full((*fitness.shape, len(record["rung_shares"])), np.nan)
    for each in record["trainings"]:
        if each["reward"] in sources:
            place = names.index(each["reward"]), seeds.index(each["seed"])
            if each["fitness"] is not None:
                fitness[place] = each["fitness"]
            rungs[place][: len(each["rungs"])] = each["rungs"]
    fitness = np.where(np.isnan(fitness), np.nanmin(fitness), fitness)
    rungs = np.where(np.isnan(rungs), np.nanmin(rungs, axis=(0, 1)), rungs)
    return Table(record["task"], sources, fitness, rungs)


def correlation(ours: Sequence[float] | np.ndarray, theirs: np.ndarray) -> float:
    """Spearman's; 0 where one side is constant."""
    if min(np.ptp(ours), np.ptp(theirs)) == 0.0:
        return 0.0
    return float(spearmanr(ours, theirs).statistic)


class Replay:
    """Searches over a table's rewards."""

    def __init__(self, table: Table, folder: Path) -> None:
        chosen = subject(table.task)
        self._variables = chosen.loaded.environment_class.all_variables()
        self._rewards = [
            RewardFunction.from_source(source, self._variables) for source in table.sources.values()
        ]
        paths = {name: folder / f"{name}{PRACTICE}" for name in table.sources}
        self._files = [
            [load_trajectories(path)] if path.is_file() else [] for path in paths.values()
        ]
        self._fitness = table.fitness
        self.means = table.fitness.mean(axis=1)
        within = table.fitness.var(axis=1, ddof=1).mean()
        self.noise = float(within) ** 0.5
        spread = self.means.var(ddof=1)
        # of a table whose rewards are hardly told apart a part of the means' own
        between = max(spread - within / table.fitness.shape[1], 0.05 * spread)
        self.between = float(between) ** 0.5 or 1.0

    def credits(self, owners: Sequence[int]) -> list[Credit]:
        """Credit of every reward on the episodes of some rewards' trainings."""
        files = [file for owner in owners for file in self._files[owner]]
        steps = stored_steps(files, self._variables, credit=True)
        assert steps.credit is not None, f"episodes of {owners} are missing"
        nothing = Credit(step=0.0, to_go=0.0, advantage=0.0, ranks=())
        found = []
        for reward in self._rewards:
            totals, _ = reward({name: steps.values[name] for name in reward.arguments})
            found.append(steps.credit.of(totals.double().numpy()) or nothing)
        length = max(len(each.ranks) for each in found)
        flat = (0.0,) * length
        return [each if each.ranks else each.model_copy(update={"ranks": flat}) for each in found]

    def value(self, trained: Sequence[int], seeds: np.ndarray) -> float:
        """Worth of the best of these by the score from its seed."""
        winner = max(trained, key=lambda each: self._fitness[each, seeds[each]])
        others = np.delete(self._fitness[winner], seeds[winner])
        return float((others.mean() - self.means.mean()) / self.between)

    def search(self, draw: int) -> tuple[list[float], list[float], list[tuple[float, float]]]:
        """Worth after each group of trainings, chosen and at random, and correlations of the
        agreement and of what is expected with the means of what is left, before each choice."""
        random = np.random.default_rng(draw)
        count, seeds = self._fitness.shape
        order = random.permutation(count).tolist()
        drawn = random.integers(seeds, size=count)
        by_chance = [self.value(order[:end], drawn) for end in range(GROUP, count + 1, GROUP)]
        trained, chosen, told = order[:GROUP], [], []
        while True:
            chosen.append(self.value(trained, drawn))
            left = [each for each in order if each not in trained]
            if not left:
                return chosen, by_chance, told
            credits = self.credits(trained)
            known = [
                Known(credits[each], float(self._fitness[each, drawn[each]]), 1) for each in trained
            ]
            gains = expected_improvements(known, [credits[each] for each in left])
            agreement = [credits[each].alignment for each in left]
            means = self.means[left]
            told.append((correlation(agreement, means), correlation(gains, means)))
            best = np.argsort(-np.array(gains), kind="stable")[:GROUP]
            trained = [*trained, *(left[each] for each in best)]


def share(chosen: np.ndarray, by_chance: np.ndarray, trainings: int) -> float:
    """Part of so many trainings at random from which on the chosen ones are worth as much; 2 where
    they are not with as many."""
    groups = trainings // GROUP
    goal = by_chance.mean(axis=0)[groups - 1]
    below = np.flatnonzero(chosen.mean(axis=0)[:groups] < goal)
    first = 0 if not len(below) else below[-1] + 1
    return 2.0 if first == groups else float((first + 1) / groups)


def show(path: Path, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Print a table's figures. Returns the worth of the chosen and of those at random. Shape of
    each: (draws, groups)."""
    table = read(path)
    replay = Replay(table, folder)
    fitness, seeds = table.fitness, table.fitness.shape[1]
    others = np.stack([np.delete(fitness, seed, 1).mean(axis=1) for seed in range(seeds)])
    scores = [*np.moveaxis(table.rungs, 2, 0), fitness]
    told = [
        np.mean([correlation(score[:, seed], others[seed]) for seed in range(seeds)])
        for score in scores
    ]
    between, noise = replay.between, replay.noise
    print(f"{path.stem}: sd between rewards {between:.3g}, between seeds {noise:.3g}")
    print("  one seed's score at rungs and end:", " ".join(f"{each:.2f}" for each in told))
    found = [replay.search(draw) for draw in range(DRAWS)]
    chosen, by_chance, expected = (np.array(each) for each in zip(*found, strict=True))
    for name, numbers in zip(("agreement", "expected"), expected.mean(axis=0).T, strict=True):
        print(f"  {name} after 4, 8, …:", " ".join(f"{each:.2f}" for each in numbers))
    for name, worth in (("chosen", chosen), ("at random", by_chance)):
        print(f"  {name}:", " ".join(f"{each:+.2f}" for each in worth.mean(axis=0)), flush=True)
    return chosen, by_chance


def summarize(found: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
    """Print means over tables, and the median share with its interval."""
    for name, place in (("chosen", 0), ("at random", 1)):
        worth = np.mean([each[place].mean(axis=0) for each in found], axis=0)
        print(f"{name}, mean of tables:", " ".join(f"{each:+.2f}" for each in worth))
    for trainings in COMPARED:
        random = np.random.default_rng(0)
        medians = []
        for _ in range(RESAMPLES):
            drawn = [random.integers(len(each[0]), size=len(each[0])) for each in found]
            pairs = zip(found, drawn, strict=True)
            medians.append(np.median([share(a[i], b[i], trainings) for (a, b), i in pairs]))
        low, high = np.quantile(medians, [0.05, 0.95])
        median = np.median([share(*each, trainings) for each in found])
        print(
            f"share of {trainings} trainings, median of tables: {median:.2f}"
            f" ({low:.2f} to {high:.2f})"
        )


@torch.inference_mode()
def main() -> None:
    """Read, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="such as model-cartpole-swingup")
    parser.add_argument("--episodes", type=Path, required=True)
    arguments = parser.parse_args()
    start()
    names = arguments.tables or [path.stem for path in sorted(TABLES.glob("*.json"))]
    summarize([show(TABLES / f"{name}.json", arguments.episodes / name) for name in names])


if __name__ == "__main__":
    main()
