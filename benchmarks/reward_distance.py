"""Distance between rewards and regret between their policies, on the recorded tables of trained
rewards: the claim of STARC (Skalse et al. 2024).

    python benchmarks/reward_distance.py [--episodes FOLDER]

Nothing is trained but the human and the sparse reward of each task, from one seed: the policies at
0.1, 0.2 and 0.4 of their trainings and at the end give two episodes each, and these steps stand for
all transitions. On them every reward's total is taken, and

1. levelled: δ = r + γ V(s') − V(s), where V is the least-squares value (LSTD, Bradtke and Barto
   1996) of that reward for what the recorded policies do, linear in a constant, the observation and
   its square. Potential shaping by any such function is removed exactly; other shaping is not. A
   step at a time limit, which has no s', is left out.
2. divided by its root of the sum of squares over the steps.

The distance of two is half the length of the difference: 0 where they are the same but for shaping
and scale, 1 where they are opposite. Beside it stands the program's own distance (the credit by
ranks that chooses among drafts) and the plain one without levelling. Regret of two rewards is the
size of the difference of their mean fitness over the table's seeds. Figures are rank correlations
over all pairs of a table, and one-sided: of the distance to the fitness and to the human reward
with the fitness that is lacking. Pairs share rewards, so intervals are bootstrapped over rewards,
within tables; two tables of twelve seeds stand apart. `seeds` is what one more training of each
reward tells: the regrets by one seed against those by the mean of the others.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from _common import start, subject
from _results import RESULTS, write_result
from reward_table import BASELINES, RECORDED_SEED, TABLES, _train
from surrogate import Table, correlation, read

from eureka_agent.array_files import failed, succeeded
from eureka_agent.critic.credit import credit_distances
from eureka_agent.training.evaluation import Trajectory, load_trajectories
from eureka_agent.training.reward import RewardFunction
from eureka_agent.worker.scoring import DISCOUNT, Floats, StoredSteps, stored_steps

SEED_TABLES = RESULTS / "seed_table"
RESAMPLES = 1000
_RIDGE = 1e-6
_MOST_DEVIATIONS = 5.0


class Levelling:
    """Least-squares values of rewards on recorded steps, and what is left of a reward beyond the
    potential shaping that they can express."""

    def __init__(self, observations: Floats, lengths: Sequence[int], ended: Sequence[bool]) -> None:
        """`observations`: a policy's inputs, shape (steps, num_observations), episode after episode
        of these lengths. `ended`: by episode, whether it ended by itself."""
        deviation = observations.std(axis=0)
        columns = observations[:, deviation > 1e-9]
        scaled = (columns - columns.mean(axis=0)) / columns.std(axis=0)
        scaled = scaled.clip(-_MOST_DEVIATIONS, _MOST_DEVIATIONS)
        now = np.column_stack([np.ones(len(scaled)), scaled, scaled**2])
        after = np.roll(now, -1, axis=0)
        last = np.cumsum(lengths) - 1
        after[last] = 0.0  # the value of an end
        self.kept = np.ones(len(now), dtype=bool)
        self.kept[last[np.invert(ended)]] = False
        self._now, self._change = now[self.kept], (DISCOUNT * after - now)[self.kept]
        size = now.shape[1]
        matrix = -self._now.T @ self._change + _RIDGE * len(now) * np.eye(size)
        self._inverse = np.linalg.inv(matrix)

    def of(self, totals: Floats) -> Floats:
        """A reward's levelled totals, of length 1 (0 if they are the same in all steps). Shape of
        `totals`: (steps,), of the result: (kept steps,)."""
        kept = totals[self.kept]
        return unit(kept + self._change @ (self._inverse @ (self._now.T @ kept)))


def unit(values: Floats) -> Floats:
    length = float(np.linalg.norm(values))
    return values / length if length > 1e-9 else np.zeros_like(values)


def distances(units: Floats) -> Floats:
    """Half the length of the difference of each two. Shape: (rewards, steps) to (rewards,
    rewards)."""
    squares = (units**2).sum(axis=1)
    found = 0.5 * np.sqrt((squares[:, None] + squares - 2.0 * units @ units.T).clip(min=0.0))
    # rewards that pay nothing are as far from all others, and rounding must not rank them
    return found.round(9)


def episodes_of(task: str, folder: Path) -> list[dict[str, Trajectory]]:
    """Two episodes of each recorded policy of a task's baselines, trained where they are not in the
    folder."""
    place = folder / task.replace("/", "-")
    if not place.is_dir():
        chosen = subject(task)
        known = {name: chosen.loaded.reward_source(chosen.task, name) for name in BASELINES}
        sources = {name: source for name, source in known.items() if source is not None}
        place.mkdir(parents=True)
        _train((task, sources, [(name, RECORDED_SEED) for name in sources], place))
    return [load_trajectories(path) for path in sorted(place.glob("*.npz"))]


@torch.inference_mode()
def totals_of(sources: dict[str, str], task: str, steps: StoredSteps) -> Floats:
    """Totals of rewards in all steps. Shape: (rewards, steps)."""
    variables, found = subject(task).loaded.environment_class.all_variables(), []
    for name, source in sources.items():
        reward = RewardFunction.from_source(source, variables, allow_private=name in BASELINES)
        totals, _ = reward({each: steps.values[each].clone() for each in reward.arguments})
        found.append(totals.double().numpy())
    return np.array(found)


def matrices(
    sources: dict[str, str], task: str, files: list[dict[str, Trajectory]]
) -> dict[str, Floats]:
    """Distances of these rewards, and of the fitness at the end, by name. Shape of each: (rewards +
    1, rewards + 1)."""
    variables = subject(task).loaded.environment_class.all_variables()
    steps = stored_steps(files, variables, credit=True)
    assert steps.credit is not None  # a policy's episodes have fitness and observations
    episodes = [each for file in files for each in file.values()]
    fitness, observations = (
        np.concatenate([each[name] for each in episodes]).astype(np.float64)
        for name in ("fitness", "observations")
    )
    ended = [failed(each) or succeeded(each) for each in episodes]
    levelling = Levelling(observations, [len(each["fitness"]) for each in episodes], ended)
    totals = np.vstack([totals_of(sources, task, steps), fitness])
    credits = [steps.credit.of(each) for each in totals]
    return {
        "levelled": distances(np.array([levelling.of(each) for each in totals])),
        "plain": distances(np.array([unit(each) for each in totals])),
        "credit": credit_distances([each for each in credits if each is not None]),
    }


class Judged:
    """A table's rewards with their distances."""

    def __init__(self, table: Table, folder: Path) -> None:
        self._fitness, chosen = table.fitness, subject(table.task)
        human = chosen.loaded.reward_source(chosen.task, "human")
        assert human is not None  # every task of the tables has one
        sources = {**table.sources, "human": human}
        found = matrices(sources, table.task, episodes_of(table.task, folder))
        count = len(table.sources)
        self.count = count
        self._between = {name: each[:count, :count] for name, each in found.items()}
        self._to = {
            f"{name}, to the {what}": each[:count, place]
            for name, each in found.items()
            for what, place in (("human", count), ("fitness", count + 1))
        }

    def figures(self, drawn: np.ndarray) -> dict[str, float]:
        """Rank correlations of distances with regrets, of these rewards."""
        fitness = self._fitness[drawn]
        means = fitness.mean(axis=1)
        first, second = np.triu_indices(len(drawn), 1)
        differ = drawn[first] != drawn[second]
        first, second = first[differ], second[differ]

        def regrets(values: Floats) -> Floats:
            return np.abs(values[first] - values[second])

        told = {
            name: correlation(each[drawn[first], drawn[second]], regrets(means))
            for name, each in self._between.items()
        }
        told |= {name: correlation(each[drawn], -means) for name, each in self._to.items()}
        seeds = range(fitness.shape[1])
        told["seeds"] = float(
            np.mean(
                [
                    correlation(
                        regrets(fitness[:, seed]),
                        regrets(np.delete(fitness, seed, axis=1).mean(axis=1)),
                    )
                    for seed in seeds
                ]
            )
        )
        return told


def drawn(judged: Judged, seed: int) -> list[dict[str, float]]:
    """Figures of all rewards, then of draws of them."""
    random = np.random.default_rng(seed)
    draws = (random.integers(judged.count, size=judged.count) for _ in range(RESAMPLES))
    return [judged.figures(each) for each in (np.arange(judged.count), *draws)]


def with_intervals(tables: Sequence[Sequence[dict[str, float]]]) -> dict[str, list[float]]:
    """Means over tables of what `drawn` gives for each, with their 95 % intervals."""
    told = {}
    for name in tables[0][0]:
        means = np.mean([[each[name] for each in table] for table in tables], axis=0)
        told[name] = [float(means[0]), *np.quantile(means[1:], [0.025, 0.975]).tolist()]
    return told


def main() -> None:
    """Read, record episodes, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=Path, help="folder that keeps episodes, and has them")
    arguments = parser.parse_args()
    start()
    found: dict[str, list[dict[str, float]]] = {}
    told: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        paths = [path for folder in (TABLES, SEED_TABLES) for path in sorted(folder.glob("*.json"))]
        for number, path in enumerate(paths):
            name = f"{path.parent.name}/{path.stem}"
            found[name] = drawn(Judged(read(path), arguments.episodes or Path(scratch)), number)
            told[name] = with_intervals([found[name]])
            print(name, {it: [round(each, 2) for each in told[name][it]] for it in told[name]})
    groups = {
        f"{folder}/{designer}": [found[name] for name in found if f"{folder}/{designer}" in name]
        for folder, designer in (
            *((TABLES.name, each) for each in ("", "model", "offline")),
            (SEED_TABLES.name, ""),
        )
    }
    means = {name: with_intervals(tables) for name, tables in groups.items()}
    print(json.dumps(means, indent=1))
    write_result("reward_distance", {"tables": told, "means": means})


if __name__ == "__main__":
    main()
