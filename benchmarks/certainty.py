"""How often what a report says of its winner holds: on tables of `reward_table.py`.

    python benchmarks/certainty.py [TABLE …]

Small searches are replayed: eight rewards of a table from one seed each, the four best from a
second one, the three best of those as finalists. `eureka_agent.posterior` then says how probable
it is that the winner is the best finalist, and what the table's other rewards would gain. Held is
that the winner is the best of the finalists by the seeds that are left. These are few, so what is
said is their probability too: that of the means plus the noise of as many seeds.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass, field

import numpy as np
from reward_table import TABLES
from surrogate import read

from eureka_agent.posterior import Posterior, posterior

DRAWS = 200
TRAINED, AGAIN, FINALISTS = 8, 4, 3
BINS = (0.0, 0.4, 0.5, 0.6, 0.7, 0.9, 1.0)
LEFT_OUT = ("doorkey",)
"""Tables whose rewards are all alike."""


@dataclass
class Said:
    """What was said, and what came of it, by draw."""

    sure: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=list)
    gain: list[float] = field(default_factory=list)
    gained: list[float] = field(default_factory=list)


def probability(found: Posterior, finalists: list[int], seeds: int) -> float:
    """Probability that the first of these is the best by the mean of so many further seeds."""
    random = np.random.default_rng(0)
    draws = found.draws[:, finalists]
    noise = found.noise[:, None] / seeds**0.5 * random.standard_normal(draws.shape)
    return float(((draws + noise).argmax(axis=1) == 0).mean())


def replay(fitness: np.ndarray, draw: int, said: Said) -> None:
    """One search over rewards, shape (rewards, seeds), and what came of it."""
    random = np.random.default_rng(draw)
    order = random.permutation(len(fitness))
    values = np.array([random.permutation(each) for each in fitness])[order]
    trained, others = values[:TRAINED], values[TRAINED:]
    again = np.argsort(-trained[:, 0])[:AGAIN]
    scores = [each[: 2 if place in again else 1].tolist() for place, each in enumerate(trained)]
    found = posterior(scores)
    finalists = sorted(again.tolist(), key=lambda each: -found.means[each])[:FINALISTS]
    left = values.shape[1] - 2
    said.sure.append(probability(found, finalists, left))
    further = trained[finalists, 2:].mean(axis=1)
    said.held.append(float(further.argmax() == 0))
    best = finalists[0]
    said.gain.append(found.gain(best, len(others)) / fitness.std())
    whole = posterior([*scores, *([each[0]] for each in others)])
    winner = int(whole.means.argmax())
    fresh = trained[winner, 2:] if winner < TRAINED else others[winner - TRAINED, 1:]
    said.gained.append(float(fresh.mean() - further[0]) / fitness.std())


def main() -> None:
    """Replay, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="such as model-cartpole-swingup")
    arguments = parser.parse_args()
    names = arguments.tables or [
        path.stem
        for path in sorted(TABLES.glob("*.json"))
        if not any(each in path.stem for each in LEFT_OUT)
    ]
    found = {}
    for name in names:
        said = found[name] = Said()
        fitness = read(TABLES / f"{name}.json").fitness
        for draw in range(DRAWS):
            replay(fitness, draw, said)
        sure, held, gain, gained = (
            np.mean(each) for each in (said.sure, said.held, said.gain, said.gained)
        )
        print(f"{name}: sure {sure:.0%}, held {held:.0%}; gain {gain:.2f}, came {gained:.2f}")
    sure, held = (
        np.array([each for said in found.values() for each in getattr(said, name)])
        for name in ("sure", "held")
    )
    for low, high in itertools.pairwise(BINS):
        within = (sure >= low) & (sure < high)
        if within.any():
            print(
                f"said {low:.0%} to {high:.0%}: {sure[within].mean():.0%} on average, held"
                f" {held[within].mean():.0%} ({within.sum()} searches)"
            )
    for name in ("gain", "gained"):
        print(f"{name}: {np.mean([np.mean(getattr(each, name)) for each in found.values()]):.2f}")


if __name__ == "__main__":
    main()
