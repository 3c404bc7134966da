"""Captions of states: what has just happened, what the agent has and sees, how near it is."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from .caption_parts import CaptionParts, first_true

VARIABLES = (
    *("has_key", "previous_has_key", "door_unlocked", "previous_door_unlocked", "door_open"),
    *("columns_past_door", "in_goal_room", "previous_in_goal_room", "facing_wall", "facing_key"),
    *("facing_door", "facing_goal", "key_distance", "door_distance", "goal_distance"),
)
NEAR = ("1 cell", "2 or 3 cells", "4 to 6 cells", "7 or more cells")
PARTS = CaptionParts(
    (
        "",
        "the agent has just reached the goal",
        "the agent has just unlocked the door",
        "the agent has just picked up the key",
        "the agent has just dropped the key",
        "the agent has just entered the right room",
        "the agent has just left the right room",
    ),
    ("it does not carry the key", "it carries the key"),
    ("the door is locked", "the door is unlocked and closed", "the door is open"),
    ("it is in the left room", "it is in the door", "it is in the right room"),
    (
        "nothing is in front of it",
        "a wall is in front of it",
        "the key is in front of it",
        "the door is in front of it",
        "the goal is in front of it",
    ),
    [f"the {what} is {far} away" for what in ("key", "door", "goal") for far in NEAR],
)


def codes(values: Mapping[str, Tensor]) -> Tensor:
    """Code of each state's caption, int64, shape (batch,). The next thing is the key, with it the
    locked door, and then the goal."""

    def change(name: str) -> Tensor:
        return values[name] - values[f"previous_{name}"]

    key, unlocked = values["has_key"], values["door_unlocked"]
    event = first_true(
        values["goal_distance"] < 0.5,
        change("door_unlocked"),
        change("has_key"),
        -change("has_key"),
        change("in_goal_room"),
        -change("in_goal_room"),
    )
    past = values["columns_past_door"]
    room = first_true(past > -0.5) + (past > 0.5)
    front = ("facing_wall", "facing_key", "facing_door", "facing_goal")
    following = torch.where(unlocked > 0.5, 2, (key > 0.5).long())
    distances = [values[f"{what}_distance"] for what in ("key", "door", "goal")]
    far = torch.stack(distances, dim=-1).gather(-1, following.unsqueeze(-1)).squeeze(-1)
    near = (far > 1.5).long() + (far > 3.5) + (far > 6.5)
    door = unlocked.long() + values["door_open"].long()
    ahead = first_true(*(values[name] for name in front))
    return PARTS.codes(event, key, door, room, ahead, following * len(NEAR) + near)
