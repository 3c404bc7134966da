"""Check of final trainings that end when they know their winner, and of what a report says of it.

    python benchmarks/certainty.py [TABLE …]

Searches are replayed on the stored tables of trainings (`reward_table.py`, `results/seed_table`):
16 rewards, or all of the table, are trained from one seed each, and the best three are finalists.
They get seeds as `eureka_agent.search.final` says, with six bounds. Beside
it stands the rule before: the best four of the first half, then of all, get a second seed, and each
finalist five more. Printed are the trainings after the proposals; what the winner is worth by its
true mean, in deviations of the table, against the rule before; how often 95 % intervals of its lead
over a random reward of the table hold, which stands for the human one with eight seeds
(`report/comparison.py`, and Welch's); and the probability that the winner is said to be the best
finalist, with how often it was.

A table of many seeds gives scores by drawing from a reward's own. One of few gives normal ones
around the reward's mean, with a variance half its own and half that of all.

On the tables of many rewards: eight of them without final seeds, and what the model says that the
others would gain, against what they do.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from _results import RESULTS
from reward_table import TABLES
from surrogate import read

from eureka_agent.posterior import counted_on, posterior
from eureka_agent.report.comparison import Comparison, compare, lead
from eureka_agent.search import final

DRAWS = 60
REWARDS, AGAIN, FINALISTS, FINAL_SEEDS, HUMAN_SEEDS = 16, 4, 3, 5, 8
BOUNDS = (0.0, 0.15, 0.2, 0.25, 0.3, 0.35)
MANY_SEEDS = 12
FEW = 8
LEFT_OUT = "doorkey"
"""A table whose rewards are all alike."""

Draw = Callable[[int], float]
Found = tuple[list[list[float]], dict[int, list[float]]]
"""Scores of all rewards in the search, and those of finalists from final seeds."""


def drawing(fitness: np.ndarray, random: np.random.Generator) -> Draw:
    """Scores of a table's rewards, as many as one likes."""
    if fitness.shape[1] >= MANY_SEEDS:
        return lambda place: float(random.choice(fitness[place]))
    within = fitness.var(axis=1, ddof=1)
    deviations = np.sqrt((within + within.mean()) / 2.0)
    return lambda place: float(random.normal(fitness[place].mean(), deviations[place]))


def rule_before(draw: Draw, number: int) -> Found:
    """Confirmations, and as many seeds for each finalist."""
    scores = [[draw(place)] for place in range(number)]
    for known in (number // 2, number):
        for place in sorted(range(known), key=lambda each: -np.mean(scores[each]))[:AGAIN]:
            if len(scores[place]) == 1:
                scores[place].append(draw(place))
    best = np.argsort(-counted_on(scores))[:FINALISTS].tolist()
    return scores, {place: [draw(place) for _ in range(FINAL_SEEDS)] for place in best}


def rounds(draw: Draw, number: int) -> Found:
    """Finalists get seeds as long as they may win."""
    scores = [[draw(place)] for place in range(number)]
    best = sorted(range(number), key=lambda each: -scores[each][0])[:FINALISTS]
    finals = {place: list[float]() for place in best}

    def wanted() -> dict[str, int]:
        known = {str(place): each + finals.get(place, []) for place, each in enumerate(scores)}
        trained = {str(place): len(each) for place, each in finals.items()}
        return final.next_round(known, trained, FINAL_SEEDS)

    while seeds := wanted():
        for name, wants in seeds.items():
            each = finals[int(name)]
            each += [draw(int(name)) for _ in range(wants - len(each))]
    return scores, finals


def replayed(fitness: np.ndarray, seed: int, rule: Callable[[Draw, int], Found]) -> list[float]:
    """Trainings after the proposals; the winner's worth; 1.0 for intervals that hold, by the
    posterior and Welch's; their widths; the probability that it is the best finalist, and 1.0 if it
    is."""
    random = np.random.default_rng(seed)
    values = random.permutation(fitness)
    draw, means = drawing(values, random), values.mean(axis=1)
    number = min(REWARDS, len(values))
    scores, finals = rule(draw, number)
    winner = max(finals, key=lambda each: (len(finals[each]), sum(finals[each])))
    found = posterior([each + finals.get(place, []) for place, each in enumerate(scores)])
    human = int(random.integers(len(values)))
    human_scores = [draw(human) for _ in range(HUMAN_SEEDS)]
    welch = compare(finals[winner], human_scores)
    assert welch is not None  # of five seeds and eight
    intervals = lead(found, winner, human_scores), welch
    truth = means[winner] - means[human]
    chances = found.probability_best(list(finals))
    after = sum(map(len, scores)) - number + sum(map(len, finals.values()))
    return [
        after,
        means[winner] / fitness.std(),
        *(holds(each, truth) for each in intervals),
        *(each.width / fitness.std() for each in intervals),
        chances[list(finals).index(winner)],
        means[winner] >= max(means[each] for each in finals),
    ]


def holds(interval: Comparison, truth: float) -> bool:
    """True where the interval contains the true difference."""
    return interval.low - 1e-9 <= truth <= interval.high + 1e-9


def show_rounds(tables: Sequence[np.ndarray]) -> None:
    """Print what each rule costs, finds and says."""
    arms = {"before": (rule_before, 0.0)} | {f"bound {each}": (rounds, each) for each in BOUNDS}
    before = None
    for name, (rule, final.LEAST_GAIN) in arms.items():
        found = np.array(
            [[replayed(each, draw, rule) for draw in range(DRAWS)] for each in tables]
        )  # (tables, draws, figures)
        mean = found.mean(axis=(0, 1))
        before = found[..., 1] if before is None else before
        worth = (found[..., 1] - before).mean(axis=1)
        error = worth.std(ddof=1) / len(worth) ** 0.5
        print(
            f"{name}: {mean[0]:.1f} trainings after the proposals, winner worth"
            f" {worth.mean():+.3f} (standard error {error:.3f}), intervals of {mean[4]:.2f} hold in"
            f" {mean[2]:.1%} (Welch's of {mean[5]:.2f} in {mean[3]:.1%}), best finalist said"
            f" {mean[6]:.0%}, was {mean[7]:.0%}"
        )


def shuffled(fitness: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Rewards in random order, each with its seeds in random order."""
    return random.permutation(random.permuted(fitness, axis=1))


def searched(values: np.ndarray) -> tuple[list[list[float]], list[int]]:
    """Scores of a search over these rewards, and its best ones with a second seed, best first."""
    again = np.argsort(-values[:, 0])[:AGAIN].tolist()
    scores = [each[: 2 if place in again else 1].tolist() for place, each in enumerate(values)]
    return scores, sorted(again, key=lambda each: -sum(scores[each]))


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

    many = [each for each in chosen(TABLES) if LEFT_OUT not in each.stem]
    show_rounds([read(path).fitness for path in [*chosen(RESULTS / "seed_table"), *many]])
    show_gain(many)


if __name__ == "__main__":
    main()
