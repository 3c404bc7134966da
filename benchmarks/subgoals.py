"""Worth of subgoals as rewards, the idea of "Words as Beacons" (Ruiz-Gonzalez et al. 2025): on
DoorKey's far goal, where the sparse reward and the offline designer find nothing.

    python benchmarks/subgoals.py [--seeds N]

The subgoals are those that a language model names for the task's sentence: the key, the door, the
goal. They are paid once each, when they are reached (`once`), or as a potential that also tells the
way to the next one (`potential`). Their weights were written before any training, and are not
tuned. Beside them the sparse reward, and the human one, which is of this kind too. All are trained
from the same seeds, and scored as in `reward_kinds.py`.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from _common import start, subject
from _results import write_result
from reward_kinds import show, trained
from scipy.stats import bootstrap

TASK = "doorkey/reach_goal_far"
ONCE = """
def compute_reward(has_key, door_unlocked, previous_has_key, previous_door_unlocked, succeeded):
    # a dropped key takes back what it paid; an unlocked door stays unlocked
    before = torch.maximum(previous_has_key, previous_door_unlocked)
    key = 0.25 * (torch.maximum(has_key, door_unlocked) - before)
    door = 0.25 * (door_unlocked - previous_door_unlocked)
    return key + door + succeeded, {"key": key, "door": door, "goal": succeeded}
"""
POTENTIAL = """
def potential(has_key, door_unlocked, key_distance, door_distance, goal_distance):
    reached = torch.maximum(has_key, door_unlocked) + door_unlocked
    to_door = torch.where(has_key > 0.5, door_distance, key_distance)
    to_next = torch.where(door_unlocked > 0.5, goal_distance, to_door)
    return reached + 1.0 / (1.0 + to_next)


def compute_reward(
    has_key, door_unlocked, key_distance, door_distance, goal_distance,
    previous_has_key, previous_door_unlocked, previous_key_distance, previous_door_distance,
    previous_goal_distance, succeeded,
):
    before = potential(
        previous_has_key, previous_door_unlocked, previous_key_distance, previous_door_distance,
        previous_goal_distance,
    )
    now = potential(has_key, door_unlocked, key_distance, door_distance, goal_distance)
    way = 0.25 * (now - before)
    return way + succeeded, {"way": way, "goal": succeeded}
"""
SEEN = 0.09
"""Fitness from which on a policy has solved the task, that of the task itself."""


def difference(ours: list[float], theirs: list[float]) -> list[float]:
    """Mean difference of two arms with its 95 % interval, bootstrapped over seeds."""

    def between(one: Any, other: Any, axis: int = -1) -> Any:
        return np.mean(one, axis=axis) - np.mean(other, axis=axis)

    found = bootstrap((ours, theirs), between, n_resamples=10_000, method="basic", rng=0)
    interval = found.confidence_interval
    return [float(between(ours, theirs)), float(interval.low), float(interval.high)]


def main() -> None:
    """Train, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=8)
    arguments = parser.parse_args()
    start()
    chosen = subject(TASK)
    sparse = chosen.loaded.reward_source(chosen.task, "sparse")
    assert sparse is not None  # the task has one
    arms = {"sparse": sparse, "human": "", "once": ONCE, "potential": POTENTIAL}
    found: dict[str, dict[str, Any]] = {}
    for name, source in arms.items():
        found[name] = trained(chosen, "code", arguments.seeds, source)
        show(TASK, name, found[name])
    scores = {name: line["fitness"] for name, line in found.items()}
    told = {
        name: {
            "fitness": values,
            "solved": sum(value > SEEN for value in values),
            "beyond sparse": difference(values, scores["sparse"]),
            "beyond human": difference(values, scores["human"]),
        }
        for name, values in scores.items()
    }
    write_result("subgoals", {"task": TASK, "arms": told})


if __name__ == "__main__":
    main()
