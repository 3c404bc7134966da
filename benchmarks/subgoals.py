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
import json

from _arms import arms
from _common import start
from _results import write_result

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
SOLVED = 0.09
"""Fitness from which on a policy has solved the task, as the task itself has it."""


def main() -> None:
    """Train, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=8)
    arguments = parser.parse_args()
    start()
    found = arms(TASK, {"once": ONCE, "potential": POTENTIAL}, arguments.seeds)
    for each in found.values():
        each["solved"] = sum(value > SOLVED for value in each["fitness"])
    print(json.dumps(found, indent=1))
    write_result("subgoals", {"task": TASK, "arms": found})


if __name__ == "__main__":
    main()
