"""Worth of a reward by scores on the way, and by the agreement of credit: on tables of
`reward_table.py`, without a training.

    python benchmarks/alignment.py --episodes FOLDER [TABLE …]

`FOLDER` is the one that the tables' trainings kept episodes in. For each table: deviations between
rewards and between seeds; the rank correlation of one seed's score, at the rungs and at the end,
with the mean of the other seeds; that of `eureka_agent.worker.alignment` on the episodes of a few
rewards, drawn at random, with the means of the others; and the winner's worth of trainings chosen
at random, and of a few at random followed by those that agree best on their episodes, in deviations
between rewards.
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

from eureka_agent.training.reward import RewardFunction
from eureka_agent.worker.scoring import read_steps

STAGES = ("1", "end")
"""Ends of the names of episode files that count: after a tenth, and at the end."""
OWNERS = 4, 8
"""Rewards whose episodes are used."""
DRAWS = 20
CHOSEN = (4, 4), (4, 8)
"""Trainings of rewards at random, and of those that agree best."""


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


def correlation(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Spearman's; 0 where one side is constant."""
    if min(np.ptp(ours), np.ptp(theirs)) == 0.0:
        return 0.0
    return float(spearmanr(ours, theirs).statistic)


def alignments(table: Table, folder: Path, owners: Sequence[str]) -> np.ndarray:
    """Mean alignment of every reward on the episodes of these; 0 where it is unknown."""
    chosen = subject(table.task)
    variables = chosen.loaded.environment_class.all_variables()
    paths = [folder / f"{owner}@{stage}.npz" for owner in owners for stage in STAGES]
    paths = [path for path in paths if path.is_file()]
    steps = read_steps(paths, variables, credit=True)
    assert steps.credit is not None, f"{folder} lacks episodes of {owners}"
    found = []
    for source in table.sources.values():
        reward = RewardFunction.from_source(source, variables)
        totals, _ = reward({name: steps.values[name] for name in reward.arguments})
        aligned = steps.credit.alignment(totals.double().numpy())
        found.append(0.0 if aligned is None else aligned.mean)
    return np.array(found)


def show(path: Path, folder: Path) -> None:
    """Print a table's figures."""
    table = read(path)
    fitness, (count, seeds) = table.fitness, table.fitness.shape
    others = np.stack([np.delete(fitness, seed, 1).mean(axis=1) for seed in range(seeds)])
    means = fitness.mean(axis=1)
    within = fitness.var(axis=1, ddof=1).mean()
    between = max(0.0, means.var(ddof=1) - within / seeds)
    scores = [*np.moveaxis(table.rungs, 2, 0), fitness]
    told = [
        np.mean([correlation(score[:, seed], others[seed]) for seed in range(seeds)])
        for score in scores
    ]
    print(f"{path.stem}: sd between rewards {between**0.5:.3g}, between seeds {within**0.5:.3g}")
    print("  one seed's score at rungs and end:", " ".join(f"{each:.2f}" for each in told))
    names = list(table.sources)
    agree: dict[int, list[float]] = {number: [] for number in OWNERS}
    worth: dict[str, list[float]] = {}
    for draw in range(DRAWS):
        order = np.random.default_rng(draw).permutation(count)
        seed = draw % seeds

        def value(trained: np.ndarray, seed: int = seed) -> float:
            winner = trained[fitness[trained, seed].argmax()]
            return float((others[seed][winner] - means.mean()) / (means.std() or 1.0))

        known = {
            number: alignments(table, folder, [names[each] for each in order[:number]])
            for number in OWNERS
        }
        for number, aligned in known.items():
            rest = order[number:]
            agree[number].append(correlation(aligned[rest], means[rest]))
        for number in (4, 8, 16, count):
            worth.setdefault(f"{number} at random", []).append(value(order[:number]))
        for first, more in CHOSEN:
            rest = order[first:]
            best = rest[np.argsort(-known[first][rest], kind="stable")][:more]
            trained = np.concatenate([order[:first], best])
            worth.setdefault(f"{first} and {more} that agree", []).append(value(trained))
    for number, values in agree.items():
        print(f"  alignment on episodes of {number}: {np.mean(values):.2f}")
    print("  winner:", ", ".join(f"{name} {np.mean(each):+.2f}" for name, each in worth.items()))


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
    for name in names:
        show(TABLES / f"{name}.json", arguments.episodes / name)


if __name__ == "__main__":
    main()
