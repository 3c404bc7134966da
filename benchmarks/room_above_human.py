"""Room above the human reward: another reward for the same task, written by hand with a look at the
fitness, against the human reward of the task's card. Eight fresh seeds each.

    python benchmarks/room_above_human.py [TASK …]

The rewards are `room/<environment>-<task>.py`. A task leaves room where its reward is better beyond
the noise of the seeds (Welch's 95 % interval).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from _results import write_result
from _searches import search

from eureka_agent.cards import CARD_SEEDS, read_card
from eureka_agent.designer.interface import GivenDesigner, given_reward
from eureka_agent.report.comparison import compare
from eureka_agent.simulation.loading import load_environment

ROOM = Path(__file__).resolve().parent / "room"


def scores(path: Path, environment: str, task: str, seeds: int) -> list[float]:
    """Fitness of a reward from fresh seeds."""
    values = {"env": environment, "task": task, "final_seeds": seeds, "baselines": False}
    values |= {"iterations": 1, "samples": 1, "confirm": 0, "finalists": 1, "video": False}
    given = GivenDesigner(given_reward(path.read_text()), str(path))
    trainings = search(values, lambda run, _: run.archive.trainings(), given=given)
    outcomes = [each.outcome for each in trainings if each.outcome is not None]
    return [each.fitness for each in outcomes if each.fitness is not None]


def main() -> dict[str, Any]:
    """Train, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    written = {path.stem.replace("-", "/"): path for path in sorted(ROOM.glob("*.py"))}
    parser.add_argument("tasks", nargs="*", default=list(written), metavar="TASK")
    parser.add_argument("--seeds", type=int, default=CARD_SEEDS)
    arguments = parser.parse_args()
    figures = {}
    for reference in arguments.tasks:
        environment, _, task = reference.partition("/")
        loaded = load_environment(environment)
        assert loaded.folder is not None
        card = read_card(loaded.folder, task)
        assert card is not None, f"{reference} has no card"
        human = [value for value in card.human.fitness if value is not None]
        found = scores(written[reference], environment, task, arguments.seeds)
        difference = compare(found, human)
        assert difference is not None
        mean = sum(found) / len(found)
        figures[reference] = {
            "fitness": found,
            "mean": mean,
            "human": card.human.mean,
            "sparse": card.sparse.mean,
            "unit": card.unit,
            "difference": difference.difference,
            "low": difference.low,
            "high": difference.high,
            "room": difference.better,
        }
        print(
            f"{reference:24} {mean:8.3f}, human {card.human.mean:8.3f} {card.unit}: by"
            f" {difference.difference:+.3f} ({difference.low:+.3f} to {difference.high:+.3f}),"
            f" {difference.relation} it",
            flush=True,
        )
    if arguments.seeds == CARD_SEEDS and set(arguments.tasks) == set(written):
        write_result("room_above_human", {"tasks": figures})
    return figures


if __name__ == "__main__":
    main()
