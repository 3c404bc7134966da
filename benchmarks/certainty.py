"""Check of what a report says of its winner.

    python benchmarks/certainty.py [TABLE …]

`eureka_agent.posterior` says how probable it is that a search's winner is its best finalist. Held
is that it has the highest mean of seeds that were left out, and since these are few, what is said
is the probability of that: of the means plus the noise of as many seeds.

The searches are those of `search_efficiency.py`, by all their trainings and four of the seven seeds
from which their three finalists were trained again, all choices of the four. And searches are
replayed on tables of few rewards and many seeds (`reward_table.py`, `results/seed_table`): all
rewards from one seed each, the four best from a second one, the three best of those from five final
seeds; the highest mean wins.

On the tables of many rewards: eight of them without final seeds, and what the model says that the
others would gain, against what they do.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from _results import RESULTS
from reward_table import TABLES
from search_efficiency import NAME, key, sources_of
from surrogate import read

from eureka_agent.posterior import Posterior, posterior

DRAWS = 200
AGAIN, FINALISTS, FINAL_SEEDS = 4, 3, 5
SEARCHES_FINAL_SEEDS = 4
FEW = 8
BINS = (0.0, 0.4, 0.5, 0.6, 0.7, 0.9, 1.01)
LEFT_OUT = "doorkey"
"""A table whose rewards are all alike."""


def probability(found: Posterior, finalists: list[int], seeds: int) -> float:
    """Probability that the first of these is the best by the mean of so many further seeds."""
    random = np.random.default_rng(0)
    draws = found.draws[:, finalists]
    noise = found.noise[:, None] / seeds**0.5 * random.standard_normal(draws.shape)
    return float(((draws + noise).argmax(axis=1) == 0).mean())


def shuffled(fitness: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Rewards in random order, each with its seeds in random order."""
    return random.permutation(random.permuted(fitness, axis=1))


def searched(values: np.ndarray) -> tuple[list[list[float]], list[int]]:
    """Scores of a search over these rewards, and its best ones with a second seed, best first."""
    again = np.argsort(-values[:, 0])[:AGAIN].tolist()
    scores = [each[: 2 if place in again else 1].tolist() for place, each in enumerate(values)]
    return scores, sorted(again, key=lambda each: -sum(scores[each]))


def certain(fitness: np.ndarray, draw: int) -> tuple[float, bool]:
    """Probability that is said of a winner with final seeds, and True if it held."""
    values = shuffled(fitness, np.random.default_rng(draw))
    scores, best = searched(values)
    finalists = best[:FINALISTS]
    end = 2 + FINAL_SEEDS
    finalists.sort(key=lambda each: -values[each, 2:end].mean())
    for each in finalists:
        scores[each] += values[each, 2:end].tolist()
    left = values[finalists, end:]
    sure = probability(posterior(scores), finalists, left.shape[1])
    return sure, bool(left.mean(axis=1).argmax() == 0)


def certain_of_search(
    point: Mapping[str, Any], retrained: Mapping[str, list[float]]
) -> Iterator[tuple[float, bool]]:
    """Probability that is said of a search's winner, and True if it held, for each choice of final
    seeds."""
    scores = [[fitness] for _, fitness, _ in point["made"] if fitness is not None]
    places = [scores.index([fitness]) for _, fitness in point["finalists"]]
    values = np.array([retrained[key(source)] for source, _ in point["finalists"]])
    for seeds in itertools.combinations(range(values.shape[1]), SEARCHES_FINAL_SEEDS):
        final, left = values[:, seeds], np.delete(values, seeds, axis=1)
        known = [*scores]
        for place, each in zip(places, final.tolist(), strict=True):
            known[place] = [*scores[place], *each]
        order = np.argsort(-final.mean(axis=1), kind="stable")
        sure = probability(posterior(known), [places[each] for each in order], left.shape[1])
        yield sure, bool(left[order].mean(axis=1).argmax() == 0)


def gained(fitness: np.ndarray, draw: int) -> tuple[float, float]:
    """Gain that is said of further rewards, and their real one, in deviations of the table."""
    values = shuffled(fitness, np.random.default_rng(draw))
    scores, best = searched(values[:FEW])
    others = values[FEW:]
    found = posterior(scores)
    winner = max(best, key=lambda each: found.means[each])
    said = found.gain(winner, len(others))
    whole = posterior([*scores, *([each[0]] for each in others)])
    later = int(whole.means.argmax())
    further = values[later, 2 if later < FEW else 1 :].mean()
    deviation = fitness.std()
    return said / deviation, float(further - values[winner, 2:].mean()) / deviation


def show_certainty(found: Mapping[str, list[tuple[float, bool]]]) -> None:
    """Print what was said and what held, by table or task and by what was said."""
    for name, pairs in found.items():
        sure, held = np.mean(pairs, axis=0)
        print(f"{name}: said {sure:.0%}, held {held:.0%}")
    sure, held = np.concatenate([np.array(pairs) for pairs in found.values()]).T
    for low, high in itertools.pairwise(BINS):
        within = (sure >= low) & (sure < high)
        if within.any():
            said = f"said {low:.0%} to {min(high, 1.0):.0%}: {sure[within].mean():.0%} on average"
            print(f"{said}, held {held[within].mean():.0%} ({within.sum()} times)")


def show_gain(tables: list[Path]) -> None:
    """Print what was said that further rewards gain, and what they gained, by table."""
    means = []
    for path in tables:
        fitness = read(path).fitness
        means.append(np.mean([gained(fitness, draw) for draw in range(DRAWS)], axis=0))
        print(f"{path.stem}: said to gain {means[-1][0]:.2f}, gained {means[-1][1]:.2f}")
    said, gain = np.mean(means, axis=0)
    print(f"mean: said to gain {said:.2f}, gained {gain:.2f}")


def main() -> None:
    """Replay, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="such as model-cartpole-swingup")
    wanted = parser.parse_args().tables

    def chosen(folder: Path) -> list[Path]:
        paths = sorted(folder.glob("*.json"))
        return [each for each in paths if not wanted or each.stem in wanted]

    tasks = json.loads((RESULTS / f"{NAME}.json").read_text())["tasks"]
    searches = {
        task: [
            pair
            for arm in known["searches"].values()
            for points in arm.values()
            if sources_of([points[-1:]]).keys() <= known["retrained"].keys()
            for pair in certain_of_search(points[-1], known["retrained"])
        ]
        for task, known in tasks.items()
    }
    show_certainty({task: pairs for task, pairs in searches.items() if pairs})
    tables = chosen(RESULTS / "seed_table")
    fitness = {path.stem: read(path).fitness for path in tables}
    show_certainty(
        {name: [certain(each, draw) for draw in range(DRAWS)] for name, each in fitness.items()}
    )
    show_gain([each for each in chosen(TABLES) if LEFT_OUT not in each.stem])


if __name__ == "__main__":
    main()
