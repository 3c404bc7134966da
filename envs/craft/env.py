"""Crafter's world by the rules of Craftax-Classic, in plain torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import torch
from torch import Tensor

from eureka_agent.simulation.drawing import Drawing

from . import captions, drawing, names
from .creatures import COWS, SKELETONS, ZOMBIES
from .game import BORDER, GOALS, LEVELS, WAYS, Game
from .names import FACING
from .rules import (
    CHOICES,
    DEEDS,
    ITEMS,
    LAVA,
    MATERIALS,
    OUTSIDE,
    STATIONS,
    TOOLS,
    TREE,
)
from .view import NOT_SEEN, SEEN_KINDS

DEFAULT_TASK = "find_tree"

_KINDS_SEEN = len(SEEN_KINDS)
_OFFSETS = slice(0, 2 * _KINDS_SEEN)
_SEEN = slice(_OFFSETS.stop, _OFFSETS.stop + _KINDS_SEEN)
_ITEMS = slice(_SEEN.stop, _SEEN.stop + len(ITEMS))
_FLAGS_FROM = _ITEMS.stop + len(LEVELS)
"""Column of `asleep`, behind which come daylight, direction, facing and so on."""
_FLAGS = (
    *("asleep", "daylight", "right", "down"),
    *("lava_ahead" if kind == "lava" else f"facing_{kind}" for kind in FACING),
    *("facing_blocked", "table_near", "furnace_near"),
)
_EDGES = slice(_FLAGS_FROM + len(_FLAGS), _FLAGS_FROM + len(_FLAGS) + 4)
_STEPS_LEFT = _EDGES.stop + 2


class Craft(Game):
    """A square world of cells, seen from above: grass with trees and cows, pools of water in sand,
    mountains of stone with tunnels, ores, diamonds and lava. The agent walks in four directions,
    collects what is in front of it, places blocks and makes tools.

    The world is Crafter's (Hafner 2022); amounts, damage and needs are those of Craftax-Classic
    (Matthews et al. 2024, version 1.6.1). A table costs 2 wood, a furnace 1 stone. Wood pickaxe and
    wood sword cost 1 wood each, those of stone 1 wood and 1 stone, those of iron 1 wood, 1 stone, 1
    coal and 1 iron. A table must be around the agent to make a tool, for iron a furnace as well.
    Stone and coal need a wood pickaxe, iron a stone pickaxe, diamonds an iron pickaxe; a felled
    tree leaves grass. A cow has 3 health and a hit takes 1 (2, 3, 5 with a sword of wood, stone,
    iron). Zombies come on grass and bite (2 health, 7 asleep), skeletons come on paths and shoot
    arrows (2 health). Stepping into lava kills. The agent sees 9 columns and 7 rows around it.

    Other than there: an episode begins with up to three cows and lasts 300 steps, saplings do not
    ripen, each skeleton has one arrow in the air at most, and arrows do not break tables and
    furnaces. All creatures move at once, each to a cell that none holds or an earlier one steps on,
    and one appears in a step at most, at one of four random cells. A second sword does no more
    damage. Darkness hides nothing. Noise and random numbers are the project's own, so single worlds
    differ. A task may start elsewhere, with tools, or end with its goal.
    """

    variables = names.variables()
    observation_channels = names.observation_channels()
    action_channels = names.action_channels()
    device_types = ("cpu", "cuda")
    num_observations = sum(channel.size for channel in observation_channels)
    num_actions = 1
    action_choices = (CHOICES,)
    max_episode_length = 300
    control_dt = 1.0
    termination_causes = ("fell_into_lava", "died", "reached_goal")
    success_causes = ("reached_goal",)
    termination_conditions: Mapping[str, str] = MappingProxyType(
        {
            "fell_into_lava": "the agent stepped into lava",
            "died": "health below 1, not in lava",
            "reached_goal": "never in this task",
        }
    )
    caption_variables = captions.VARIABLES
    caption_codes = staticmethod(captions.codes)
    caption = staticmethod(captions.PARTS.text)

    def compute_observations(self) -> None:
        kinds = self.cells.gather(1, self.view.cells(self.agent))
        offsets, seen, places = self.view.nearest(kinds, self.creature_cells, self.agent)
        local_map = self.view.local_map(kinds, places, self.arrow_cells, self.agent)
        front = self.agent + self.way_steps[self.way]
        faced = self.kind_at(front)
        met = self.creature_cells == front.unsqueeze(-1)
        met = torch.stack([met[:, each].any(dim=-1) for each in (COWS, ZOMBIES, SKELETONS)], dim=-1)
        blocked = met.any(dim=-1) | ~self.enterable[faced]
        around = self.cells.gather(1, self.agent.unsqueeze(-1) + self.around)
        materials = len(MATERIALS)
        stations = ((around == each).any(dim=-1) for each in STATIONS)
        entries = (
            0.25 * offsets.flatten(1),
            seen,
            0.125 * self.inventory[:, :materials],
            self.inventory[:, materials:] > 0.0,
            0.125 * self.levels,
            self.sleeps.unsqueeze(-1),
            self.light().unsqueeze(-1),
            self.directions[self.way],
            self.view.facing[faced],
            met,
            torch.stack([blocked, *stations], dim=-1),
            0.125 * self.view.unseen_edges(self.cells, self.seen, self.agent),
            names.POSITION_SCALE * self._position(),
            (1.0 - self.progress_buf / self.max_episode_length).unsqueeze(-1),
            local_map,
        )
        torch.cat(entries, dim=-1, out=self.obs_buf)

    def _position(self) -> Tensor:
        """Column and row of the agent in the world. Shape: (num_envs, 2)."""
        row = self.agent // self.width
        return torch.stack([self.agent - self.width * row, row], dim=-1).float() - BORDER

    def compute_variables(self) -> dict[str, Tensor | Callable[[], Tensor]]:
        found: dict[str, Tensor | Callable[[], Tensor]] = {
            "agent_position": self._position,
            "agent_direction": partial(self._columns, _FLAGS_FROM + 2, _FLAGS_FROM + 4, 1.0),
            "lava_beside": self._lava_beside,
            "cells_seen": self._count_seen,
            "new_cells_seen": lambda: self.new_cells,
            "unseen_edges": partial(self._columns, _EDGES.start, _EDGES.stop, 8.0),
            "steps_left": partial(self._column, _STEPS_LEFT),
        }
        for number, kind in enumerate(SEEN_KINDS):
            found[f"{kind}_offset"] = partial(self._columns, 2 * number, 2 * number + 2, 4.0)
            found[f"{kind}_distance"] = partial(self._distance, number)
            found[f"{kind}_seen"] = partial(self._column, _SEEN.start + number)
        for number, name in enumerate(_FLAGS):
            if name not in ("right", "down"):
                found[name] = partial(self._column, _FLAGS_FROM + number)
        for number, tool in enumerate(TOOLS):
            found[f"has_{tool}"] = partial(self._column, _ITEMS.start + len(MATERIALS) + number)
        for kinds, state in (
            (tuple(f"{item}_carried" for item in MATERIALS), self.inventory),
            (LEVELS, self.levels),
            (DEEDS, self.deeds),
        ):
            for number, name in enumerate(kinds):
                found[name] = partial(state.select, 1, number)
        return found

    def _columns(self, start: int, stop: int, scale: float) -> Tensor:
        return self.obs_buf[:, start:stop] * scale

    def _column(self, number: int) -> Tensor:
        return self.obs_buf[:, number]

    def _distance(self, number: int) -> Tensor:
        cells = self._columns(2 * number, 2 * number + 2, 4.0).abs().sum(dim=-1)
        return torch.where(self._column(_SEEN.start + number) > 0.5, cells, float(NOT_SEEN))

    def _lava_beside(self) -> Tensor:
        beside = self.cells.gather(1, self.agent.unsqueeze(-1) + self.way_steps)
        return (beside == LAVA).sum(dim=-1).float()

    def _count_seen(self) -> Tensor:
        return (self.seen & (self.cells != OUTSIDE)).sum(dim=-1).float()

    def compute_termination(self) -> dict[str, Tensor]:
        in_lava = self.kind_at(self.agent) == LAVA
        return {
            "fell_into_lava": in_lava,
            "died": (self.levels[:, 0] < 1.0) & ~in_lava,
            "reached_goal": self._reached_goal(),
        }

    def _reached_goal(self) -> Tensor:
        told = GOALS.get(self.goal or "")
        if told is not None and told in DEEDS:
            return self.deeds[:, DEEDS.index(told)] > 0.0
        front = self.kind_at(self.agent + self.way_steps[self.way])
        return (front == TREE) & (told is not None)

    def draw(self, row: int) -> Drawing:
        """See drawing.py."""
        width = self.width
        return drawing.draw(
            self.cells[row].view(width, width).tolist(),
            divmod(int(self.agent[row]), width),
            WAYS[int(self.way[row])],
            [divmod(cell, width) for cell in self.creature_cells[row].tolist()],
            [divmod(cell, width) for cell in self.arrow_cells[row].tolist()],
            dict(zip(LEVELS, map(int, self.levels[row].tolist()), strict=True)),
            dict(zip(ITEMS, map(int, self.inventory[row].tolist()), strict=True)),
        )
