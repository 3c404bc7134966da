"""Rules of the world as tables: what each choice needs, spends and gives, by the cell in front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

OUTSIDE, GRASS, SAND, WATER, STONE, TREE, PATH = range(7)
COAL, IRON, DIAMOND, LAVA, TABLE, FURNACE, PLANT = range(7, 14)
"""Kinds of cells; OUTSIDE is beyond the world's border."""
KINDS = 14
WALKABLE = (GRASS, SAND, PATH)
"""Cells that agent and creatures walk on; the agent steps into lava as well, and dies."""
STATIONS = (TABLE, FURNACE)
"""Kinds of cells that tools are made beside."""
OPEN = (*WALKABLE, LAVA)
"""Cells that the agent steps onto, and that a block can be placed on."""

NOTHING, LEFT, RIGHT, UP, DOWN, DO, SLEEP = range(7)
PLACE_STONE, PLACE_TABLE, PLACE_FURNACE, PLACE_PLANT = range(7, 11)
MAKE_WOOD_PICKAXE, MAKE_STONE_PICKAXE, MAKE_IRON_PICKAXE = range(11, 14)
MAKE_WOOD_SWORD, MAKE_STONE_SWORD, MAKE_IRON_SWORD = range(14, 17)
"""Crafter's actions, in its order."""
CHOICES = 17

MATERIALS = ("sapling", "wood", "stone", "coal", "iron", "diamond")
TOOLS = (
    *("wood_pickaxe", "stone_pickaxe", "iron_pickaxe"),
    *("wood_sword", "stone_sword", "iron_sword"),
)
ITEMS = (*MATERIALS, *TOOLS)
"""Columns of an inventory."""
MOST_CARRIED = 9
SWORDS = slice(9, 12)
SWORD_DAMAGE = (2.0, 3.0, 5.0)
"""Damage of a hit with the swords of wood, stone and iron; 1 without."""

DEEDS = (
    *("saplings_collected", "wood_collected", "stones_mined", "coal_mined", "iron_mined"),
    *("diamonds_mined", "drinks", "tables_placed", "furnaces_placed"),
    *("cow_hits", "cows_eaten", "zombies_defeated", "skeletons_defeated"),
)
"""Columns of the counts over an episode; the last four come from hits on creatures."""
DEEDS_OF_RULES = 9
DRINKS = DEEDS.index("drinks")


@dataclass(frozen=True)
class Rule:
    """Needs and results of a choice."""

    tools: tuple[str, ...] = ()
    """Items that must be carried and are kept."""
    spends: Mapping[str, int] = field(default_factory=dict)
    gives: str = ""
    becomes: int | None = None
    """Kind of the cell in front afterwards; None: the choice does not act on it."""
    near: tuple[int, ...] = ()
    """Kinds that must be among the eight cells around the agent."""
    chance: float = 1.0
    deed: str = ""
    """Count that grows by one."""


def rules() -> dict[tuple[int, int], Rule]:
    """Rules by choice and kind of the cell in front, those of Craftax-Classic 1.6.1."""
    found = {
        (DO, TREE): Rule(gives="wood", becomes=GRASS, deed="wood_collected"),
        (DO, STONE): Rule(("wood_pickaxe",), gives="stone", becomes=PATH, deed="stones_mined"),
        (DO, COAL): Rule(("wood_pickaxe",), gives="coal", becomes=PATH, deed="coal_mined"),
        (DO, IRON): Rule(("stone_pickaxe",), gives="iron", becomes=PATH, deed="iron_mined"),
        (DO, DIAMOND): Rule(
            ("iron_pickaxe",), gives="diamond", becomes=PATH, deed="diamonds_mined"
        ),
        (DO, GRASS): Rule(gives="sapling", becomes=GRASS, chance=0.1, deed="saplings_collected"),
        (DO, WATER): Rule(becomes=WATER, deed="drinks"),
        (PLACE_PLANT, GRASS): Rule(spends={"sapling": 1}, becomes=PLANT),
    }
    for kind in OPEN:
        found[PLACE_STONE, kind] = Rule(spends={"stone": 1}, becomes=STONE)
        found[PLACE_TABLE, kind] = Rule(spends={"wood": 2}, becomes=TABLE, deed="tables_placed")
        found[PLACE_FURNACE, kind] = Rule(
            spends={"stone": 1}, becomes=FURNACE, deed="furnaces_placed"
        )
    found[PLACE_STONE, WATER] = Rule(spends={"stone": 1}, becomes=STONE)
    costs: tuple[tuple[dict[str, int], tuple[int, ...]], ...] = (
        ({"wood": 1}, (TABLE,)),
        ({"wood": 1, "stone": 1}, (TABLE,)),
        ({"wood": 1, "stone": 1, "coal": 1, "iron": 1}, (TABLE, FURNACE)),
    )
    for number, tool in enumerate(TOOLS):
        spends, near = costs[number % 3]
        for kind in range(KINDS):
            found[MAKE_WOOD_PICKAXE + number, kind] = Rule(spends=spends, gives=tool, near=near)
    return found


class RuleTables:
    """The rules as tensors; a row is `choice * KINDS + kind of the cell in front`."""

    def __init__(self, device: torch.device) -> None:
        rows = CHOICES * KINDS
        # without a rule a choice needs what nobody can carry
        needs = [[float(MOST_CARRIED + 1)] * (len(ITEMS) + 2) for _ in range(rows)]
        change = [[0.0] * (len(ITEMS) + DEEDS_OF_RULES) for _ in range(rows)]
        becomes = [row % KINDS for row in range(rows)]
        chance, acts = [1.0] * rows, [False] * rows
        for (choice, kind), rule in rules().items():
            row = choice * KINDS + kind
            needs[row] = [
                *(float(max(rule.spends.get(item, 0), item in rule.tools)) for item in ITEMS),
                *(float(station in rule.near) for station in STATIONS),
            ]
            change[row] = [
                *(float((item == rule.gives) - rule.spends.get(item, 0)) for item in ITEMS),
                *(float(deed == rule.deed) for deed in DEEDS[:DEEDS_OF_RULES]),
            ]
            chance[row] = rule.chance
            acts[row] = rule.becomes is not None
            becomes[row] = kind if rule.becomes is None else rule.becomes
        self.needs = torch.tensor(needs, device=device)
        """Least number of each item, and 1 where a table and a furnace must be near."""
        self.change = torch.tensor(change, device=device)
        """Change of the items and of the first counts."""
        self.becomes = torch.tensor(becomes, dtype=torch.int8, device=device)
        """Kind of the cell in front afterwards."""
        self.chance = torch.tensor(chance, device=device)
        """Probability that the choice works."""
        self.acts = torch.tensor(acts, device=device)
        """True where the choice acts on the cell in front, which a creature there prevents."""
        self.sword_damage = torch.tensor(SWORD_DAMAGE, device=device)

    def damage(self, inventory: Tensor) -> Tensor:
        """Damage of a hit by the best sword carried. Shape: (num_envs,)."""
        best = ((inventory[:, SWORDS] > 0.0) * self.sword_damage).amax(dim=-1)
        return best.clamp(min=1.0)


class Needs:
    """Hunger, thirst, fatigue and healing of Craftax-Classic.

    Gauges (columns hunger, thirst, fatigue, recovery) grow in each step, and levels (health, food,
    drink, energy) change where a gauge passes its limit. All are multiples of 0.5.
    """

    def __init__(self, device: torch.device) -> None:
        self.limits = torch.tensor([25.0, 20.0, 30.0], device=device)

    def pass_time(self, levels: Tensor, gauges: Tensor, asleep: Tensor) -> tuple[Tensor, Tensor]:
        """Levels and gauges after a step. Shape of both: (num_envs, 4); of `asleep`, a bool:
        (num_envs,)."""
        rests = asleep.unsqueeze(-1)
        slow = torch.where(rests, 0.5, 1.0)
        fatigue = gauges[:, 2:3]
        fatigue = torch.where(rests, (fatigue - 1.0).clamp(max=0.0), fatigue + 1.0)
        grown = torch.cat([gauges[:, :2] + slow, fatigue], dim=-1)
        over = grown > self.limits
        supplies = (levels[:, 1:] - over.float()).clamp(min=0.0)
        grown = torch.where(over, 0.0, grown)
        rested = grown[:, 2] < -10.0
        supplies[:, 2] = (supplies[:, 2] + rested.float()).clamp(max=float(MOST_CARRIED))
        grown[:, 2] = torch.where(rested, 0.0, grown[:, 2])
        has = supplies > 0.0
        all_met = has[:, 0] & has[:, 1] & (has[:, 2] | asleep)
        slow = slow.squeeze(-1)
        recovery = gauges[:, 3] + torch.where(all_met, torch.where(asleep, 2.0, 1.0), -slow)
        heals, hurts = recovery > 25.0, recovery < -15.0
        health = torch.where(
            heals, (levels[:, 0] + 1.0).clamp(max=float(MOST_CARRIED)), levels[:, 0] - hurts.float()
        )
        recovery = torch.where(heals | hurts, 0.0, recovery)
        return (
            torch.cat([health.unsqueeze(-1), supplies], dim=-1),
            torch.cat([grown, recovery.unsqueeze(-1)], dim=-1),
        )
