"""Generation of worlds: gradient noise, thresholds and start cells, alike for any number of rows.

Noise is made of numbers with few binary digits, so sums are exact: a world does not depend on the
order of additions, and so not on how many rows are made at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .rules import COAL, DIAMOND, GRASS, IRON, LAVA, PATH, SAND, STONE, TREE, WATER

_DIRECTIONS = 16
_DIGITS = 64.0
"""Gradients and weights of an interpolation are multiples of 1 / this."""
# shares of a mountain's stone, one after the other: 4 % coal, 3 % iron of the rest, 0.5 % diamond
_COAL_BELOW = 0.04
_IRON_BELOW = _COAL_BELOW + 0.96 * 0.03
_DIAMOND_BELOW = _IRON_BELOW + 0.9312 * 0.005


@dataclass(frozen=True)
class Around:
    """Condition on the cells around a start."""

    kind: int
    columns: int
    """Cells to each side that count."""
    rows: int
    """Cells above and below that count."""
    least: int = 1
    """Least number of cells of the kind; 0: there is none."""


@dataclass(frozen=True)
class Start:
    """Choice of an episode's first cell at random among those that meet the conditions."""

    ground: tuple[int, ...]
    """Kinds of cells that it may be."""
    becomes: int
    """Kind that the cell is turned into."""
    conditions: tuple[Around, ...]
    """The most important first; where no cell meets all, the last ones are dropped."""


_UNDERGROUND = (STONE, PATH)
_NO_LAVA = Around(LAVA, 2, 2, 0)
STARTS: dict[str, Start | None] = {
    "meadow": None,
    "away_from_trees": Start((GRASS,), GRASS, (Around(TREE, 4, 3, 0), Around(TREE, 10, 9))),
    "by_trees_and_rock": Start((GRASS,), GRASS, (Around(TREE, 4, 3, 3), Around(STONE, 8, 7, 3))),
    "by_iron": Start(_UNDERGROUND, PATH, (_NO_LAVA, Around(IRON, 5, 5))),
    "by_diamond": Start(_UNDERGROUND, PATH, (_NO_LAVA, Around(DIAMOND, 6, 6))),
    "by_lava": Start(_UNDERGROUND, PATH, (Around(LAVA, 1, 1, 0), Around(LAVA, 4, 3))),
}
"""Start cells by the name of the option; None is the world's middle, which is grass."""


def _fade(size: int, squares: int) -> tuple[Tensor, Tensor]:
    """Weights of the lattice's points for each cell along an axis, and weights times the distance
    from the point. Shape of both: (size, squares + 1)."""
    weights = torch.zeros(size, squares + 1)
    ramps = torch.zeros(size, squares + 1)
    for cell in range(size):
        place = (cell + 0.5) * squares / size
        point = int(place)
        part = place - point
        share = round(_DIGITS * part**3 * (part * (6.0 * part - 15.0) + 10.0)) / _DIGITS
        weights[cell, point], weights[cell, point + 1] = 1.0 - share, share
        ramps[cell, point] = round(_DIGITS * (1.0 - share) * part) / _DIGITS
        ramps[cell, point + 1] = round(_DIGITS * share * (part - 1.0)) / _DIGITS
    return weights, ramps


class Noise:
    """Perlin's gradient noise (1985) on a square, from random gradients on a lattice."""

    def __init__(self, size: int, rows: int, columns: int, device: torch.device) -> None:
        """`rows` times `columns` lattice squares on `size` times `size` cells."""
        self.draws = (rows + 1) * (columns + 1)
        """Random numbers that a map needs."""
        self._shape = (rows + 1, columns + 1)
        self._down, self._down_ramp = (each.to(device) for each in _fade(size, rows))
        across, across_ramp = _fade(size, columns)
        self._across, self._across_ramp = across.T.to(device), across_ramp.T.to(device)
        turns = [2.0 * math.pi * number / _DIRECTIONS for number in range(_DIRECTIONS)]
        self._gradients = torch.tensor(
            [[round(_DIGITS * f(turn)) / _DIGITS for f in (math.cos, math.sin)] for turn in turns],
            device=device,
        )

    def make(self, draws: Tensor) -> Tensor:
        """Noise from 0 to 1, its least and largest value on each map. Shape of `draws`:
        (maps, self.draws), in [0, 1); of the result: (maps, size, size)."""
        gradients = self._gradients[(draws * _DIRECTIONS).long()].view(-1, *self._shape, 2)
        values = self._down @ gradients[..., 0] @ self._across_ramp
        values = values + self._down_ramp @ gradients[..., 1] @ self._across
        least = values.amin(dim=(1, 2), keepdim=True)
        return (values - least) / (values.amax(dim=(1, 2), keepdim=True) - least)


class Worlds:
    """Maker of worlds of `size` times `size` cells, by the thresholds of Craftax-Classic 1.6.1."""

    def __init__(self, size: int, start: Start | None, device: torch.device) -> None:
        self._size, self._start = size, start
        # pools and mountains, then tunnels, then trees and lava
        lattices = ((size // 16,) * 2, (size // 16,) * 2, (size // 8, size // 2), (size // 4,) * 2)
        self._noises = [Noise(size, *lattice, device) for lattice in lattices]
        self._cells = size * size
        self.draws = sum(noise.draws for noise in self._noises)
        self.draws += self._cells * (1 if start is None else 2)
        """Random numbers that a world needs."""
        middle = size // 2
        away = [abs(place - middle) for place in range(size)]
        self._distance = torch.tensor(
            [[min(1.0, (x + y) / 5.0) - 1.0 for x in away] for y in away], device=device
        )
        """0 from five cells from the middle on, less within. Shape: (size, size)."""
        self._middle = middle * size + middle
        if start is not None:
            self._ground = torch.tensor(start.ground, dtype=torch.int8, device=device)
            self._bands = [
                (_band(size, each.rows, device), _band(size, each.columns, device))
                for each in start.conditions
            ]

    def make(self, draws: Tensor) -> tuple[Tensor, Tensor]:
        """Worlds and start cells from uniform numbers of shape (worlds, self.draws). Shapes:
        (worlds, size, size), int8, and (worlds,), int64: column + size * row."""
        count = len(draws)
        parts = draws.split(
            [*(noise.draws for noise in self._noises), draws.shape[1] - self._drawn_for_noise], 1
        )
        water, mountain, tunnel, growth = (
            noise.make(part) for noise, part in zip(self._noises, parts[:-1], strict=True)
        )
        chance = parts[-1][:, : self._cells].view(count, self._size, self._size)
        water = water + self._distance
        mountain = mountain + 0.05 + self._distance
        cells = torch.full_like(water, GRASS, dtype=torch.int8)
        cells = cells.masked_fill_((water > 0.6) & (water < 0.75), SAND)
        cells = cells.masked_fill_(water > 0.7, WATER)
        is_rock = mountain > 0.7
        hollow = (tunnel > 0.8) | (tunnel.transpose(1, 2) > 0.8)
        hollow = hollow | ((mountain > 0.85) & (water > 0.4))
        is_tree = (cells == GRASS) & ~is_rock & (growth > 0.5) & (chance > 0.8)
        ore = torch.full_like(cells, STONE)
        ore = ore.masked_fill_((chance < _DIAMOND_BELOW) & (mountain > 0.8), DIAMOND)
        ore = ore.masked_fill_(chance < _IRON_BELOW, IRON).masked_fill_(chance < _COAL_BELOW, COAL)
        cells = torch.where(is_rock, ore.masked_fill_(hollow, PATH), cells)
        cells = cells.masked_fill_(is_tree, TREE)
        cells = cells.masked_fill_((mountain > 0.85) & (growth > 0.7), LAVA).view(count, -1)
        # one diamond at least
        place = torch.where(cells == STONE, chance.reshape(count, -1), -1.0).argmax(1, keepdim=True)
        found = cells.gather(1, place)
        cells = cells.scatter_(1, place, torch.where(found == STONE, DIAMOND, found).to(torch.int8))
        if self._start is None:
            start = torch.full_like(place, self._middle)
            becomes = GRASS
        else:
            start = self._start_cells(cells, parts[-1][:, self._cells :])
            becomes = self._start.becomes
        cells = cells.scatter_(1, start, becomes)
        return cells.view(count, self._size, self._size), start.squeeze(1)

    @property
    def _drawn_for_noise(self) -> int:
        return sum(noise.draws for noise in self._noises)

    def _start_cells(self, cells: Tensor, chance: Tensor) -> Tensor:
        """A random cell among those that meet most conditions. Shape: (worlds, 1)."""
        assert self._start is not None
        weight = 2.0 ** len(self._start.conditions)
        score = chance + weight * torch.isin(cells, self._ground)
        for condition, (down, across) in zip(self._start.conditions, self._bands, strict=True):
            weight /= 2.0
            found = (cells == condition.kind).float().view(-1, self._size, self._size)
            number = (down @ found @ across).flatten(1)
            score += weight * (number >= condition.least if condition.least else number == 0.0)
        return score.argmax(dim=1, keepdim=True)


def _band(size: int, reach: int, device: torch.device) -> Tensor:
    """1 where two places are at most `reach` apart. Shape: (size, size)."""
    places = torch.arange(size, device=device)
    return ((places.unsqueeze(0) - places.unsqueeze(1)).abs() <= reach).float()
