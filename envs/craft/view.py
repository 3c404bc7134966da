"""The agent's view as tables: nearest of each kind, the map around it, edges not seen yet."""

from __future__ import annotations

import torch
from torch import Tensor

from .creatures import ARROWS, COWS, CREATURES, SKELETONS, ZOMBIES
from .rules import (
    COAL,
    DIAMOND,
    FURNACE,
    IRON,
    KINDS,
    LAVA,
    OUTSIDE,
    PLANT,
    STONE,
    TABLE,
    TREE,
    WALKABLE,
    WATER,
)

HALF_WIDTH, HALF_HEIGHT = 4, 3
"""Columns to each side and rows above and below the agent that it sees."""
WIDTH, HEIGHT = 2 * HALF_WIDTH + 1, 2 * HALF_HEIGHT + 1
CELLS = WIDTH * HEIGHT
NOT_SEEN = HALF_WIDTH + HALF_HEIGHT + 1
"""Distance that stands for none in view: one more than the largest."""
BLOCKS = {
    "tree": TREE,
    "water": WATER,
    "stone": STONE,
    "coal": COAL,
    "iron": IRON,
    "diamond": DIAMOND,
    "lava": LAVA,
    "table": TABLE,
    "furnace": FURNACE,
}
CREATURE_SLOTS = {"cow": COWS, "zombie": ZOMBIES, "skeleton": SKELETONS}
SEEN_KINDS = (*BLOCKS, *CREATURE_SLOTS)
"""Kinds of which the nearest in view is told, in the order of observations."""
REACH = 3
"""Cells to each side of the local map, which is a square of 7 times 7."""
SPAN = 2 * REACH + 1
RESOURCES = (TREE, WATER, COAL, IRON, DIAMOND)


class View:
    """Tables for maps of `width` columns, a cell being column + width * row."""

    def __init__(self, width: int, device: torch.device) -> None:
        places = [
            (right, down)
            for down in range(-HALF_HEIGHT, HALF_HEIGHT + 1)
            for right in range(-HALF_WIDTH, HALF_WIDTH + 1)
        ]
        self._place_of = torch.full((2 * width * width,), CELLS)
        """Place by the cell's number less the agent's, an index that may be negative. The border is
        wider than the view, so no two places in reach of each other are mixed up."""
        for number, (right, down) in enumerate(places):
            self._place_of[right + width * down] = number
        self._place_of = self._place_of.to(device)
        # the nearest first; of equally near ones the upper, then the left one
        ranked = sorted(places, key=lambda place: (sum(map(abs, place)), place[1], place[0]))
        self._steps = torch.tensor([right + width * down for right, down in ranked], device=device)
        self._kinds = torch.tensor([[kind] for kind in BLOCKS.values()], device=device).char()
        self._weights = torch.arange(CELLS, 0, -1, dtype=torch.uint8, device=device)
        """Weight of each cell in view: the nearest has the largest."""
        self._offsets = torch.zeros(CELLS + 1, 2, device=device)
        """Offset by weight; 0, 0 for the weight 0."""
        self._offsets[1:] = torch.tensor(list(reversed(ranked)), device=device).float()
        weight_of = [CELLS - ranked.index(place) for place in places]
        self._weight_at = torch.tensor([*weight_of, 0], device=device)
        """Weight by cell of the view row by row, and 0 for outside of it."""
        inside = [max(map(abs, place)) <= REACH for place in places]
        numbers = torch.tensor(inside).cumsum(0) - 1
        numbers = torch.where(torch.tensor(inside), numbers, SPAN * SPAN)
        self._local_at = torch.nn.functional.pad(numbers, (0, 1), value=SPAN * SPAN).to(device)
        """Cell of the local map by cell of the view; SPAN * SPAN for outside of it."""
        self._local = torch.tensor(
            [ranked.index(place) for place in places if max(map(abs, place)) <= REACH],
            device=device,
        )
        layers = [
            [float(kind in WALKABLE), float(kind == LAVA), float(kind in RESOURCES)]
            for kind in range(KINDS)
        ]
        self._layers = torch.tensor(layers, device=device)
        # a creature takes the first of a cell's three entries; cows the third, others the second
        entries = [0] * CREATURES + [2] * 3 + [1] * (CREATURES - 3 + ARROWS)
        self._written = torch.tensor(entries, device=device)
        values = [0.0] * CREATURES + [1.0] * (CREATURES + ARROWS)
        self._values = torch.tensor([values], device=device)
        faced = (*BLOCKS.values(), PLANT)
        self.facing = torch.tensor(
            [[float(kind == each) for each in faced] for kind in range(KINDS)], device=device
        )
        """By kind of the cell in front: which of names.FACING it is, creatures aside."""
        columns = range(-HALF_WIDTH, HALF_WIDTH + 1)
        rows = range(-HALF_HEIGHT, HALF_HEIGHT + 1)
        edges = (
            [width * row - HALF_WIDTH - 1 for row in rows],
            [width * row + HALF_WIDTH + 1 for row in rows],
            [column - width * (HALF_HEIGHT + 1) for column in columns],
            [column + width * (HALF_HEIGHT + 1) for column in columns],
        )
        """Steps from the agent to the cells beyond the view: left, right, up, down."""
        self._edge_steps = torch.tensor([step for edge in edges for step in edge], device=device)
        self._edge_of = torch.tensor(
            [
                [float(number == each) for each in range(4)]
                for number, edge in enumerate(edges)
                for _ in edge
            ],
            device=device,
        )

    def cells(self, agent: Tensor) -> Tensor:
        """Cells in view from the nearest on. Shape: (num_envs, CELLS)."""
        return agent.unsqueeze(-1) + self._steps

    def nearest(
        self, kinds: Tensor, creatures: Tensor, agent: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Offsets to the nearest of SEEN_KINDS, shape (num_envs, 12, 2), which of them are seen,
        shape (num_envs, 12), and the place of creatures in the view, for `local_map`.

        `kinds`, int8, are those of `cells`; `creatures` their cells, 0 for absent ones.
        """
        blocks = ((kinds.unsqueeze(1) == self._kinds) * self._weights).amax(dim=-1)
        places = self._places(creatures, agent)
        weights = self._weight_at[places]
        best = [weights[:, slots].amax(dim=-1) for slots in CREATURE_SLOTS.values()]
        nearest = torch.cat([blocks.long(), torch.stack(best, dim=-1)], dim=-1)
        return self._offsets[nearest], (nearest > 0).float(), places

    def _places(self, cells: Tensor, agent: Tensor) -> Tensor:
        """Place in the view, row by row; CELLS for outside of it. Shape of `cells`."""
        return self._place_of[cells - agent.unsqueeze(-1)]

    def local_map(self, kinds: Tensor, places: Tensor, arrows: Tensor, agent: Tensor) -> Tensor:
        """Three numbers for each cell around the agent, row by row: 1 where it can walk, where
        danger is (lava, a monster, an arrow), where there is something to collect, drink or eat.
        Shape: (num_envs, 3 * SPAN * SPAN)."""
        around = self._layers[kinds[:, self._local].long()].flatten(1)
        around = torch.nn.functional.pad(around, (0, 3))
        places = self._local_at[torch.cat([places, places, self._places(arrows, agent)], dim=-1)]
        written = 3 * places + self._written
        around.scatter_(1, written, self._values.expand_as(written))
        return around[:, : 3 * SPAN * SPAN]

    def unseen_edges(self, cells: Tensor, seen: Tensor, agent: Tensor) -> Tensor:
        """Count of cells that a step left, right, up and down would show for the first time, those
        of the world alone. Shape: (num_envs, 4)."""
        edge = agent.unsqueeze(-1) + self._edge_steps
        fresh = (cells.gather(1, edge) != OUTSIDE) & ~seen.gather(1, edge)
        return fresh.float() @ self._edge_of
