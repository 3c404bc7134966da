"""Subgoals and the way to the next one, in the manner of "Words as Beacons" (Ruiz-Gonzalez et al.
2025), where a language model names subgoals and the agent is paid for each that it reaches.

The way is a potential (Ng, Harada, Russell 1999): walking to and fro pays nothing. So are key and
door: dropping one or closing the other takes back what it paid. Weights are our own.
"""

from __future__ import annotations

import torch
from torch import Tensor


def steps_to_go(
    agent: Tensor, key: Tensor, door: Tensor, goal: Tensor, needs_key: Tensor, in_goal_room: Tensor
) -> Tensor:
    """Cells to walk: by the key while the door is locked and the key lies, by the door while it is
    ahead, then straight to the goal."""
    to_key = (agent - key).abs().sum(dim=-1) + (key - door).abs().sum(dim=-1)
    to_door = (agent - door).abs().sum(dim=-1)
    behind_door = (door - goal).abs().sum(dim=-1)
    direct = (agent - goal).abs().sum(dim=-1)
    by_door = torch.where(needs_key > 0.5, to_key, to_door) + behind_door
    return torch.where(in_goal_room > 0.5, direct, by_door)


def compute_reward(
    agent_position: Tensor,
    key_position: Tensor,
    door_position: Tensor,
    goal_position: Tensor,
    has_key: Tensor,
    door_unlocked: Tensor,
    door_open: Tensor,
    in_goal_room: Tensor,
    previous_agent_position: Tensor,
    previous_key_position: Tensor,
    previous_has_key: Tensor,
    previous_door_unlocked: Tensor,
    previous_door_open: Tensor,
    previous_in_goal_room: Tensor,
    succeeded: Tensor,
    steps_left: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    before = steps_to_go(
        previous_agent_position,
        previous_key_position,
        door_position,
        goal_position,
        (1.0 - previous_has_key) * (1.0 - previous_door_unlocked),
        previous_in_goal_room,
    )
    now = steps_to_go(
        agent_position,
        key_position,
        door_position,
        goal_position,
        (1.0 - has_key) * (1.0 - door_unlocked),
        in_goal_room,
    )
    # the key counts until the door is unlocked
    key_before = torch.maximum(previous_has_key, previous_door_unlocked)
    key_now = torch.maximum(has_key, door_unlocked)
    components = {
        "way": 0.02 * (before - now),
        "key": 0.2 * (key_now - key_before),
        "door": 0.2 * (door_open - previous_door_open),
        "goal": succeeded * (0.1 + 0.9 * steps_left),
    }
    return sum(components.values()), components
