"""Captions of states: what the agent has just done, what it has, what is near it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from .caption_parts import CaptionParts, first_true

EVENTS = {
    "diamonds_mined": "mined a diamond",
    "iron_mined": "mined iron",
    "coal_mined": "mined coal",
    "stones_mined": "mined a stone",
    "wood_collected": "collected wood",
    "has_iron_pickaxe": "made an iron pickaxe",
    "has_stone_pickaxe": "made a stone pickaxe",
    "has_wood_pickaxe": "made a wood pickaxe",
    "furnaces_placed": "placed a furnace",
    "tables_placed": "placed a table",
    "cows_eaten": "eaten a cow",
    "cow_hits": "hit a cow",
    "drinks": "drunk water",
}
"""Words of a step's deed, by the variable that it raises."""
PICKAXES = ("wood_pickaxe", "stone_pickaxe", "iron_pickaxe")
NEXT = ("tree", "stone", "iron", "diamond")
"""What the best pickaxe is for: without one, of wood, stone and iron."""
VARIABLES = (
    *EVENTS,
    *(f"previous_{name}" for name in EVENTS),
    *("wood_carried", "stone_carried", "coal_carried", "iron_carried", "table_near"),
    "furnace_near",
    *(f"{kind}_distance" for kind in (*NEXT, "cow")),
)
_BESIDE, _FAR = 1.5, 7.5
"""Bounds of distances in cells; larger ones are of what is not in view."""
PARTS = CaptionParts(
    ("", *(f"the agent has just {deed}" for deed in EVENTS.values())),
    ("no pickaxe", "wood pickaxe", "stone pickaxe", "iron pickaxe"),
    ("no wood", "1 wood", "2 or more wood"),
    ("no stone", "has stone"),
    ("", "has coal"),
    ("", "has iron"),
    ("", "table beside", "furnace beside", "table and furnace beside"),
    [
        f"{kind} {far}" if far else f"no {kind} in view"
        for kind in NEXT
        for far in ("beside it", "in view", "")
    ],
    ("", "cow beside it", "cow in view"),
)


def codes(values: Mapping[str, Tensor]) -> Tensor:
    """Code of each state's caption, int64, shape (batch,). Tools are told from the best one on."""
    deeds = (values[name] - values[f"previous_{name}"] for name in EVENTS)
    pickaxes = [values[f"has_{name}"] for name in PICKAXES]
    best = len(PICKAXES) + 1 - first_true(*reversed(pickaxes))
    best = torch.where(best > len(PICKAXES), 0, best)
    far = torch.stack([values[f"{kind}_distance"] for kind in NEXT], dim=-1)
    far = far.gather(-1, best.unsqueeze(-1)).squeeze(-1)
    near = (far > _BESIDE).long() + (far > _FAR)
    cow = values["cow_distance"]
    return PARTS.codes(
        first_true(*deeds),
        best,
        values["wood_carried"].clamp(max=2.0),
        *(values[f"{item}_carried"] > 0.5 for item in ("stone", "coal", "iron")),
        values["table_near"].long() + 2 * values["furnace_near"].long(),
        3 * best + near,
        first_true(cow < _BESIDE, cow < _FAR),
    )
