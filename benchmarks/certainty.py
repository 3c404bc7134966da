"""Check of what a report says of its winner, on tables of `reward_table.py`.

    python benchmarks/certainty.py [TABLE …]

Searches are replayed on tables of few rewards and many seeds (`results/seed_table`): all rewards
from one seed each, the four best from a second one, the three best of those from five final seeds;
the highest mean wins. `eureka_agent.posterior` says how probable it is that the winner is the best
finalist. Held is that it has the highest mean of the seeds that are left, and since these are few,
what is said is the probability of that: of the means plus the noise of as many seeds.

On the tables of many rewards: eight of them without final seeds, and what the model says that the
others would gain, against what they do.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np
from _results import RESULTS
from reward_table import TABLES
from surrogate import read

from eureka_agent.posterior import Posterior, posterior

DRAWS = 200
AGAIN, FINALISTS, FINAL_SEEDS = 4, 3, 5
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


def show_certainty(tables: list[Path]) -> None:
    """Print what was said and what held, by table and by what was said."""
    every = []
    for path in tables:
        fitness = read(path).fitness
        found = np.array([certain(fitness, draw) for draw in range(DRAWS)])
        every.append(found)
        sure, held = found.mean(axis=0)
        print(f"{path.stem}: said {sure:.0%}, held {held:.0%}")
    sure, held = np.concatenate(every).T
    for low, high in itertools.pairwise(BINS):
        within = (sure >= low) & (sure < high)
        if within.any():
            said = f"said {low:.0%} to {min(high, 1.0):.0%}: {sure[within].mean():.0%} on average"
            print(f"{said}, held {held[within].mean():.0%} ({within.sum()} searches)")


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

    show_certainty(chosen(RESULTS / "seed_table"))
    show_gain([each for each in chosen(TABLES) if LEFT_OUT not in each.stem])


if __name__ == "__main__":
    main()
