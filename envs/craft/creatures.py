"""Movement, attacks, arrows and appearance of cows, zombies and skeletons."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .rules import GRASS, KINDS, LAVA, PATH, WALKABLE, WATER

COWS, ZOMBIES, SKELETONS = slice(0, 3), slice(3, 6), slice(6, 8)
"""Columns of the creatures of each kind: as many as there can be at a time."""
CREATURES = 8
ARROWS = 2
"""One for each skeleton."""
FULL_HEALTH = (3.0, 3.0, 3.0, 5.0, 5.0, 5.0, 3.0, 3.0)
_KIND_OF = (0, 0, 0, 1, 1, 1, 2, 2)
_GONE_FROM = 14
"""Distance from which a creature vanishes, in cells."""
_TRIES = 4
"""Cells at which a creature tries to appear."""
_APPEARS_FROM = (4, 10, 10)
"""Least distance of a cow, a zombie and a skeleton that appear, in cells."""
_NEAREST_ARROW, _FARTHEST_ARROW, _SHY = 4, 5, 3
"""Distances at which a skeleton shoots, and up to which it backs off."""
DRAWS = 2 * CREATURES + 5 + 3 + 3 * _TRIES
"""Random numbers of a step."""
DRAWS_OF_RESET = 3 * _TRIES


@dataclass
class Herd:
    """State of a row's creatures. A creature that is not there has the cell 0 and no health."""

    cells: Tensor
    """Shape: (num_envs, CREATURES), int64."""
    health: Tensor
    cooldown: Tensor
    """Steps until the next attack. Shape of both: (num_envs, CREATURES)."""
    arrows: Tensor
    arrow_steps: Tensor
    """Cells of arrows, and what each step adds to them; 0: none. Shape: (num_envs, ARROWS)."""


class CreatureRules:
    """Rules of creatures on maps of `width` columns, a cell being column + width * row."""

    def __init__(self, width: int, monsters: bool, device: torch.device) -> None:
        self._monsters = monsters
        left, right, up, down = -1, 1, -width, width
        roam = [left, right, up, down] * 2
        graze = [left, right, up, down, 0, 0, 0, 0]
        self._random_steps = torch.tensor(
            [graze if kind == 0 else roam for kind in _KIND_OF], device=device
        )
        self._slots = torch.arange(CREATURES, device=device)
        kinds = range(KINDS)
        self._walkable = torch.tensor([kind in WALKABLE for kind in kinds], device=device)
        over = (*WALKABLE, WATER, LAVA)
        self._flown_over = torch.tensor([kind in over for kind in kinds], device=device)
        grounds = ((GRASS,), (GRASS, PATH), (PATH,))
        self._grounds = torch.tensor(
            [[kind in ground for kind in kinds] for ground in grounds], device=device
        )
        rings = [_ring(width, least, _GONE_FROM - 1) for least in _APPEARS_FROM]
        most = max(map(len, rings))
        # the last one again, as a number just below 1 may round up
        self._rings = torch.tensor(
            [ring + [ring[-1]] * (most + 1 - len(ring)) for ring in rings], device=device
        )
        self._ring_sizes = torch.tensor([[float(len(ring))] for ring in rings], device=device)
        self._ring_rows = torch.tensor([[0], [1], [2]], device=device)
        self._ways = _ways(width).to(device)
        self._pauses = torch.tensor([0.0, 0.0, 0.0, 5.0, 5.0, 5.0, 4.0, 4.0], device=device)
        """Steps between two attacks."""
        self._full_health = torch.tensor(FULL_HEALTH, device=device)
        self._kind_of = torch.tensor(_KIND_OF, device=device)
        same = self._kind_of.unsqueeze(0) == self._kind_of.unsqueeze(1)
        earlier = self._slots.unsqueeze(1) > self._slots.unsqueeze(0)
        self._earlier = earlier
        """True where the second creature comes before the first."""
        self._clashes = torch.cat([torch.ones_like(earlier), earlier], dim=1)
        """A creature steps neither where one is, nor where an earlier one steps."""
        self._earlier_alike = (earlier & same).float().T.contiguous()
        self._chance = torch.tensor(
            [[0.1, 0.02 * monsters, 0.05 * monsters]], dtype=torch.float32, device=device
        )
        self._by_night = torch.tensor([[0.0, 0.1 * monsters, 0.0]], device=device)
        self._preference = torch.arange(_TRIES, 0, -1, device=device)

    def move(
        self, herd: Herd, cells: Tensor, agent: Tensor, asleep: Tensor, draws: Tensor
    ) -> tuple[Herd, Tensor]:
        """Let all creatures act. Returns them and the damage that the agent takes.

        `cells`, int8, shape (num_envs, cells); `agent`, its cell, shape (num_envs,);
        `draws`, in [0, 1), shape (num_envs, 2 * CREATURES + 5).
        """
        here, lives = herd.cells, herd.health > 0.0
        own = agent.unsqueeze(-1)
        distance, sideways, upright = self._ways[own - here].unbind(dim=-1)
        step = self._random_steps[self._slots, (draws[:, :CREATURES] * 8.0).long()]
        toward = sideways
        if self._monsters:
            tie = torch.nn.functional.pad(draws[:, 2 * CREATURES :], (3, 0)) < 0.5
            toward = torch.where(tie, sideways, upright)
            pull = self._pull(distance, draws[:, CREATURES : 2 * CREATURES])
            step = torch.where(pull == 0, step, pull * toward)
        target = here + step * lives
        free = self._walkable[cells.gather(1, target).long()] & (target != own)
        others = torch.cat([here, target], dim=-1).unsqueeze(1)
        free &= ~((target.unsqueeze(-1) == others) & self._clashes).any(dim=-1)
        stays = lives & (distance < _GONE_FROM)
        health = herd.health * stays
        if not self._monsters:
            here = torch.where(free, target, here) * stays
            still = Herd(here, health, herd.cooldown, herd.arrows, herd.arrow_steps)
            return still, torch.zeros_like(herd.health[:, 0])

        ready = lives & (herd.cooldown <= 0.0)
        bites = ready[:, ZOMBIES] & (distance[:, ZOMBIES] == 1)
        far = distance[:, SKELETONS]
        in_range = (far >= _NEAREST_ARROW) & (far <= _FARTHEST_ARROW)
        cornered = (far <= _SHY) & ~free[:, SKELETONS]
        shoots = ready[:, SKELETONS] & (in_range | cornered) & (herd.arrow_steps == 0)
        attacks = torch.cat([torch.zeros_like(ready[:, COWS]), bites, shoots], dim=-1)
        cooldown = torch.where(attacks, self._pauses, (herd.cooldown - 1.0).clamp(min=0.0))
        damage = bites.sum(dim=-1) * torch.where(asleep, 7.0, 2.0)

        arrow_steps = torch.where(shoots, toward[:, SKELETONS], herd.arrow_steps)
        arrows = torch.where(shoots, here[:, SKELETONS], herd.arrows) + arrow_steps
        hits = (arrow_steps != 0) & (arrows == own)
        here = torch.where(free & ~attacks, target, here) * stays
        onward = self._flown_over[cells.gather(1, arrows).long()] & ~hits
        onward &= ~(arrows.unsqueeze(-1) == here.unsqueeze(1)).any(dim=-1)
        herd = Herd(here, health, cooldown, arrows * onward, arrow_steps * onward)
        return herd, damage + 2.0 * hits.sum(dim=-1)

    def _pull(self, distance: Tensor, chance: Tensor) -> Tensor:
        """1 for creatures that step toward the agent, -1 away from it, 0 at random. Shape of both
        arguments: (num_envs, CREATURES)."""
        pull = torch.zeros_like(distance)
        pull[:, ZOMBIES] = (distance[:, ZOMBIES] < 10) & (chance[:, ZOMBIES] < 0.75)
        far = distance[:, SKELETONS]
        wants = (far >= 10).long() - (far <= _SHY).long()
        pull[:, SKELETONS] = wants * (chance[:, SKELETONS] > 0.85)
        return pull

    def appear(
        self, herd: Herd, cells: Tensor, agent: Tensor, darkness: Tensor, draws: Tensor
    ) -> Herd:
        """Let one creature appear at most. `darkness`: 0 by day to 1, shape (num_envs,); `draws`,
        shape (num_envs, 3 + 3 * _TRIES)."""
        rings = self._rings[self._ring_rows, self._places_in_rings(draws[:, 3:])]
        places = agent.view(-1, 1, 1) + rings
        ground = cells.gather(1, places.flatten(1)).long().view_as(places)
        fits = self._grounds[self._ring_rows, ground]
        fits &= ~(places.unsqueeze(-1) == herd.cells.view(-1, 1, 1, CREATURES)).any(dim=-1)
        first = (fits * self._preference).argmax(dim=-1, keepdim=True)
        place = places.gather(-1, first).squeeze(-1)
        wants = draws[:, :3] < self._chance + self._by_night * darkness.square().unsqueeze(-1)
        wants &= fits.any(dim=-1)
        # one kind at most, so that no two share a cell
        wants &= wants.cumsum(dim=-1) == 1
        absent = herd.health <= 0.0
        here = absent & (absent.float() @ self._earlier_alike == 0.0) & wants[:, self._kind_of]
        return Herd(
            torch.where(here, place[:, self._kind_of], herd.cells),
            torch.where(here, self._full_health, herd.health),
            torch.where(here, 0.0, herd.cooldown),
            herd.arrows,
            herd.arrow_steps,
        )

    def first_cows(self, cells: Tensor, agent: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
        """Cells and health of an episode's first creatures: up to three cows. Shapes as in Herd;
        `draws`, shape (len(agent), DRAWS_OF_RESET)."""
        tries = (draws * self._ring_sizes[0]).long().view(-1, 3, _TRIES)
        places = agent.view(-1, 1, 1) + self._rings[0, tries]
        ground = cells.gather(1, places.flatten(1)).view_as(places)
        fits = ground == GRASS
        first = (fits * self._preference).argmax(dim=-1, keepdim=True)
        place = torch.where(fits.any(dim=-1), places.gather(-1, first).squeeze(-1), 0)
        clash = (place.unsqueeze(-1) == place.unsqueeze(1)) & self._earlier[COWS, COWS]
        place = torch.nn.functional.pad(place * ~clash.any(dim=-1), (0, CREATURES - 3))
        return place, self._full_health * (place != 0)

    def _places_in_rings(self, draws: Tensor) -> Tensor:
        return (draws.view(-1, 3, _TRIES) * self._ring_sizes).long()


def _ring(width: int, least: int, most: int) -> list[int]:
    """Steps from a cell to all those between two distances."""
    span = range(-most, most + 1)
    return [
        right + width * down
        for down in span
        for right in span
        if least <= abs(right) + abs(down) <= most
    ]


def _ways(width: int) -> Tensor:
    """By the cell's number less the creature's, as an index that may be negative: the distance, and
    the step toward it along the longer way, sideways and not where both are as long.

    Shape: (2 * width * width, 3). Creatures are never farther than 20 cells; width is above 40.
    """
    ways = torch.full((2 * width * width, 3), 0)
    ways[:, 0] = width
    for down in range(-20, 21):
        for right in range(-20, 21):
            beside, below = (right > 0) - (right < 0), width * ((down > 0) - (down < 0))
            sideways = beside if abs(right) >= abs(down) else below
            upright = beside if abs(right) > abs(down) else below
            ways[right + width * down] = torch.tensor([abs(right) + abs(down), sideways, upright])
    return ways
