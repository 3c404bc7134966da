"""Names, units and meanings of variables, observations and actions."""

from __future__ import annotations

from eureka_agent.task import Channel, Variable

from .game import LEVELS
from .rules import DEEDS, MATERIALS, MOST_CARRIED, TOOLS
from .view import HALF_WIDTH, NOT_SEEN, REACH, SEEN_KINDS, WIDTH

LARGEST_SIZE = 64
FACING = (
    *("tree", "water", "stone", "coal", "iron", "diamond", "lava", "table", "furnace"),
    *("plant", "cow", "zombie", "skeleton"),
)
"""Kinds of things in front of the agent, in the order of observations."""
MEMORY = 8
"""Steps of the agent's position that rewards may read."""
POSITION_SCALE = 1.0 / 32.0
_CELLS = "cells"
_SUBSTANCES = ("water", "stone", "coal", "iron", "lava")
_CHOICES = (
    "0 nothing, 1 left, 2 right, 3 up, 4 down (turn there, and step if the cell is free), 5 do"
    " (collect, hit, drink what is in front), 6 sleep, 7 place stone, 8 place table, 9 place"
    " furnace, 10 place sapling, 11 make wood pickaxe, 12 make stone pickaxe, 13 make iron pickaxe,"
    " 14 make wood sword, 15 make stone sword, 16 make iron sword"
)


def _flag(name: str, doc: str) -> Variable:
    return Variable(name, (), "1", "-", f"1 {doc}, else 0", (0.0, 1.0))


def _count(name: str, doc: str, most: float | None = None) -> Variable:
    return Variable(name, (), "1", "-", doc, None if most is None else (0.0, most))


def _one(what: str) -> str:
    """What it is with its article, if it takes one."""
    if what in _SUBSTANCES:
        return what
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"


def _nearest(kind: str) -> tuple[Variable, ...]:
    return (
        Variable(
            f"{kind}_offset",
            (2,),
            _CELLS,
            "world",
            f"columns to the right and rows down from the agent to the nearest {kind} in view;"
            " 0, 0 if none is in view",
            (-float(HALF_WIDTH), float(HALF_WIDTH)),
        ),
        Variable(
            f"{kind}_distance",
            (),
            _CELLS,
            "world",
            f"columns plus rows to the nearest {kind} in view, 1 beside it; {NOT_SEEN} if none is"
            " in view",
            (0.0, float(NOT_SEEN)),
        ),
        _flag(f"{kind}_seen", f"while {_one(kind)} is in view"),
    )


_FACING_DOCS = {
    "lava": _flag("lava_ahead", "if the cell in front of the agent is lava: a step there kills"),
}
_DEED_DOCS = {
    "saplings_collected": "saplings taken from grass in this episode",
    "wood_collected": "trees felled in this episode, each of which gives one wood",
    "stones_mined": "stones mined in this episode",
    "coal_mined": "pieces of coal mined in this episode",
    "iron_mined": "pieces of iron mined in this episode",
    "diamonds_mined": "diamonds mined in this episode",
    "drinks": "drinks of water in this episode",
    "tables_placed": "tables placed in this episode",
    "furnaces_placed": "furnaces placed in this episode",
    "cow_hits": "hits on cows in this episode; a cow takes 3 without a sword",
    "cows_eaten": "cows eaten in this episode",
    "zombies_defeated": "zombies defeated in this episode",
    "skeletons_defeated": "skeletons defeated in this episode",
}
_LEVEL_DOCS = {
    "health": "the agent's health, 9 at the start; the agent dies at 0",
    "food": "9 at the start, one less every 26 steps; at 0 health falls; a cow gives 6",
    "drink": "9 at the start, one less every 21 steps; at 0 health falls; a drink gives 1",
    "energy": "9 at the start, one less every 31 steps awake; at 0 health falls; sleep restores it",
}


def variables() -> tuple[Variable, ...]:
    """All variables of the world."""
    most = float(MOST_CARRIED)
    return (
        Variable(
            "agent_position",
            (2,),
            _CELLS,
            "world",
            "cell of the agent: column from the left, row from the top; the corner is 0, 0",
            (0.0, LARGEST_SIZE - 1.0),
            window=MEMORY,
        ),
        Variable(
            "agent_direction",
            (2,),
            "1",
            "world",
            "direction that the agent faces: (1, 0) right, (0, 1) down, (-1, 0) left, (0, -1) up",
            (-1.0, 1.0),
        ),
        *(variable for kind in SEEN_KINDS for variable in _nearest(kind)),
        *(
            _FACING_DOCS.get(kind)
            or _flag(f"facing_{kind}", f"if {_one(kind)} is on the cell in front of the agent")
            for kind in FACING
        ),
        _flag("facing_blocked", "if the agent cannot step onto the cell in front of it"),
        _count("lava_beside", "count of lava cells left, right, above and below the agent", 4.0),
        *(_count(level, _LEVEL_DOCS[level], most) for level in LEVELS),
        _flag("asleep", "while the agent sleeps; its choices have no effect then"),
        Variable(
            "daylight", (), "1", "-", "1 at noon, 0 at midnight; a day has 300 steps", (0.0, 1.0)
        ),
        *(
            _count(f"{item}_carried", f"pieces of {item} in the inventory, 9 at most", most)
            for item in MATERIALS
        ),
        *(
            _flag(f"has_{tool}", f"while the agent has {_one(tool.replace('_', ' '))}")
            for tool in TOOLS
        ),
        _flag("table_near", "if a table is among the eight cells around the agent"),
        _flag("furnace_near", "if a furnace is among the eight cells around the agent"),
        *(_count(deed, _DEED_DOCS[deed]) for deed in DEEDS),
        _count("cells_seen", "number of the world's cells that were in view in this episode"),
        _count(
            "new_cells_seen",
            "number of cells that came into view in this step for the first time; 0 after a reset",
            float(WIDTH),
        ),
        Variable(
            "unseen_edges",
            (4,),
            _CELLS,
            "world",
            "cells that a step left, right, up and down would bring into view for the first time",
            (0.0, float(WIDTH)),
        ),
        Variable(
            "steps_left",
            (),
            "1",
            "-",
            "share of the episode's steps that is left: 1 at its start, 0 at its time limit",
            (0.0, 1.0),
        ),
    )


def observation_channels() -> tuple[Channel, ...]:
    """Entries of an observation, in order."""
    here = range(-REACH, REACH + 1)
    local = tuple(
        f"{what} right {right} down {down}"
        for down in here
        for right in here
        for what in ("walkable", "danger", "useful")
    )
    return (
        *(
            Channel(f"{kind}_offset", ("right", "down"), _CELLS, "world", "nearest in view", 0.25)
            for kind in SEEN_KINDS
        ),
        *(Channel(f"{kind}_seen", doc=f"1 while {_one(kind)} is in view") for kind in SEEN_KINDS),
        *(Channel(f"{item}_carried", doc="number, 9 at most", scale=0.125) for item in MATERIALS),
        *(Channel(f"has_{tool}", doc="1 while the agent has one") for tool in TOOLS),
        *(Channel(level, doc="9 at the start", scale=0.125) for level in LEVELS),
        Channel("asleep", doc="1 while the agent sleeps"),
        Channel("daylight", doc="1 at noon, 0 at midnight"),
        Channel("agent_direction", ("right", "down"), "1", "world", "where the agent faces"),
        *(
            Channel(
                "lava_ahead" if kind == "lava" else f"facing_{kind}", doc=f"1 if {kind} is in front"
            )
            for kind in FACING
        ),
        Channel("facing_blocked", doc="1 if the cell in front cannot be entered"),
        Channel("table_near", doc="1 if a table is around the agent"),
        Channel("furnace_near", doc="1 if a furnace is around the agent"),
        Channel(
            "unseen_edges",
            ("left", "right", "up", "down"),
            _CELLS,
            "world",
            "new cells in view after a step there",
            0.125,
        ),
        Channel("agent_position", ("column", "row"), _CELLS, "world", "cell", POSITION_SCALE),
        Channel("steps_left", doc="share of the episode that is left"),
        Channel(
            "local_map",
            local,
            "1",
            "world",
            "1 where the agent can walk; where lava, a monster or an arrow is; where there is a"
            " tree, water, coal, iron, a diamond or a cow",
        ),
    )


def action_channels() -> tuple[Channel, ...]:
    """The single choice of an action."""
    return (Channel("choice", doc=_CHOICES),)
