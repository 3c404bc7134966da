"""State of worlds and agents, an episode's start and a step, in the order of Craftax-Classic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from eureka_agent.simulation.vec_task import VecTask

from . import creatures, rules, view, world
from .creatures import COWS, SKELETONS, ZOMBIES, Herd
from .rules import DEEDS, DEEDS_OF_RULES, ITEMS, KINDS, LAVA, MOST_CARRIED, OUTSIDE

LEVELS = ("health", "food", "drink", "energy")
SIZES = (32, 48, 64)
BORDER = 13
"""Cells beyond the world's edge on each side of a map: as far as creatures appear."""
WAYS = ((-1, 0), (1, 0), (0, -1), (0, 1))
"""Column and row of a step left, right, up and down."""
UP_AT_START = 2
DAY_LENGTH = 300
GOALS = {
    "tree": "facing_tree",
    "cow": "cows_eaten",
    "stone": "stones_mined",
    "iron": "iron_mined",
    "diamond": "diamonds_mined",
}
"""Variable that is above 0 where an episode ends by success, by the option's value."""


class Game(VecTask):
    """Worlds in tensors. A cell is its number on a map with a border around the world:
    column + BORDER + width * (row + BORDER)."""

    def __init__(
        self,
        num_envs: int,
        device: torch.device | str = "cpu",
        seed: int = 0,
        *,
        size: int = 64,
        start: str = "meadow",
        goal: str | None = None,
        carrying: Mapping[str, int] | None = None,
        monsters: bool = True,
    ) -> None:
        """`size` cells along each side; `start`, one of world.STARTS; `goal`, one of GOALS, whose
        success ends an episode; `carrying`, items at the start; `monsters`: zombies and skeletons.
        Raises ValueError for other values."""
        super().__init__(num_envs, device, seed)
        carrying = carrying or {}
        _check("size", size, SIZES)
        _check("start", start, world.STARTS)
        if goal is not None:
            _check("goal", goal, GOALS)
            told = {**self.termination_conditions, "reached_goal": f"{GOALS[goal]} above 0"}
            self.termination_conditions = told
        for item, number in carrying.items():
            _check("carrying", item, ITEMS)
            _check(f"carrying[{item!r}]", number, range(MOST_CARRIED + 1))
        self.size, self.goal = size, goal
        self.masses_and_sizes = (f"{size} × {size} cells",)
        width = self.width = size + 2 * BORDER
        on = self.device
        self._worlds = world.Worlds(size, world.STARTS[start], on)
        self._rules, self._needs = rules.RuleTables(on), rules.Needs(on)
        self._creatures = creatures.CreatureRules(width, monsters, on)
        self.view = view.View(width, on)
        steps = [column + width * row for column, row in WAYS]
        self.way_steps = torch.tensor(steps, device=on)
        self._choice_steps = torch.tensor([0, *steps, *[0] * (rules.CHOICES - 5)], device=on)
        self.directions = torch.tensor(WAYS, dtype=torch.float32, device=on)
        around = [x + width * y for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y]
        self.around = torch.tensor(around, device=on)
        self.enterable = torch.tensor([kind in rules.OPEN for kind in range(KINDS)], device=on)
        self._start_items = torch.tensor([float(carrying.get(i, 0)) for i in ITEMS], device=on)
        turns = torch.arange(DAY_LENGTH + 1) / DAY_LENGTH + 0.3
        self._daylight = (1.0 - (torch.pi * turns).cos().abs() ** 3).to(on)
        """By step of the day; a table, as cosines of few and of many rows are rounded apart."""

        def whole(*shape: int, kind: torch.dtype = torch.int64) -> Tensor:
            return torch.zeros(num_envs, *shape, dtype=kind, device=on)

        self.cells = whole(width * width, kind=torch.int8)
        """Kinds of all cells, row by row, OUTSIDE in the border."""
        self.seen = whole(width * width, kind=torch.bool)
        self.agent = whole() + (BORDER + width * BORDER)
        self.way = whole()
        self.inventory = whole(len(ITEMS), kind=torch.float32)
        self.deeds = whole(len(DEEDS), kind=torch.float32)
        self.levels = whole(len(LEVELS), kind=torch.float32)
        """Health, food, drink and energy."""
        self.gauges = whole(4, kind=torch.float32)
        """Hunger, thirst, fatigue and recovery: see `rules.Needs`."""
        self.sleeps = whole(kind=torch.bool)
        self.creature_cells = whole(creatures.CREATURES)
        self.creature_health = whole(creatures.CREATURES, kind=torch.float32)
        self.creature_cooldown = whole(creatures.CREATURES, kind=torch.float32)
        self.arrow_cells = whole(creatures.ARROWS)
        self.arrow_steps = whole(creatures.ARROWS)
        self.new_cells = whole(kind=torch.float32)

    # ── a step ────────────────────────────────────────────────────────────────────────────────────

    def pre_physics_step(self, actions: Tensor) -> None:
        rows = torch.arange(self.num_envs, device=self.device)
        draws = self.random.uniform(rows, 1 + creatures.DRAWS)
        choice = torch.where(self.sleeps, 0, actions[:, 0].long())
        front = self.agent + self.way_steps[self.way]
        struck = self.creature_cells == front.unsqueeze(-1)
        self._work(choice, front, struck.any(dim=-1), draws[:, 0])
        self._strike(struck & (choice == rules.DO).unsqueeze(-1))
        self._walk(choice)
        self._let_creatures_act(draws[:, 1:])
        self.sleeps = (self.sleeps | (choice == rules.SLEEP)) & (self.levels[:, 3] < MOST_CARRIED)
        self.levels, self.gauges = self._needs.pass_time(self.levels, self.gauges, self.sleeps)
        in_lava = self.kind_at(self.agent) == LAVA
        self.levels[:, 0] = torch.where(in_lava, 0.0, self.levels[:, 0].clamp(min=0.0))
        self.new_cells = self._look()

    def kind_at(self, cell: Tensor) -> Tensor:
        """Kind of one cell in each row. Shape: (num_envs,), int64."""
        return self.cells.gather(1, cell.unsqueeze(-1)).squeeze(-1).long()

    def _work(self, choice: Tensor, front: Tensor, occupied: Tensor, chance: Tensor) -> None:
        """Collect, drink, place and make."""
        kind = self.kind_at(front)
        rule = choice * KINDS + kind
        around = self.cells.gather(1, self.agent.unsqueeze(-1) + self.around)
        stations = [(around == station).any(dim=-1).float() for station in rules.STATIONS]
        has = torch.cat([self.inventory, torch.stack(stations, dim=-1)], dim=-1)
        tables = self._rules
        works = (has >= tables.needs[rule]).all(dim=-1) & (chance < tables.chance[rule])
        works &= ~(occupied & tables.acts[rule])
        change = tables.change[rule] * works.unsqueeze(-1)
        items = len(ITEMS)
        self.inventory = (self.inventory + change[:, :items]).clamp(max=float(MOST_CARRIED))
        self.deeds[:, :DEEDS_OF_RULES] += change[:, items:]
        after = torch.where(works, tables.becomes[rule], kind.to(torch.int8))
        self.cells.scatter_(1, front.unsqueeze(-1), after.unsqueeze(-1))
        drunk = change[:, items + rules.DRINKS]
        self.levels[:, 2] = (self.levels[:, 2] + drunk).clamp(max=float(MOST_CARRIED))
        self.gauges[:, 1] *= 1.0 - drunk

    def _strike(self, struck: Tensor) -> None:
        """Hit creatures; a cow that dies is eaten."""
        damage = self._rules.damage(self.inventory).unsqueeze(-1) * struck
        health = (self.creature_health - damage).clamp(min=0.0)
        dies = struck & (health == 0.0)
        self.creature_health = health
        self.creature_cells = self.creature_cells * ~dies
        eaten = dies[:, COWS].any(dim=-1).float()
        found = (struck[:, COWS], dies[:, COWS], dies[:, ZOMBIES], dies[:, SKELETONS])
        self.deeds[:, DEEDS_OF_RULES:] += torch.stack([each.any(dim=-1) for each in found], dim=-1)
        self.levels[:, 1] = (self.levels[:, 1] + 6.0 * eaten).clamp(max=float(MOST_CARRIED))
        self.gauges[:, 0] *= 1.0 - eaten

    def _walk(self, choice: Tensor) -> None:
        """Turn, and step onto a free cell."""
        turns = (choice >= rules.LEFT) & (choice <= rules.DOWN)
        self.way = torch.where(turns, choice - rules.LEFT, self.way)
        target = self.agent + self._choice_steps[choice]
        free = self.enterable[self.kind_at(target)]
        free &= ~(self.creature_cells == target.unsqueeze(-1)).any(dim=-1)
        self.agent = torch.where(free, target, self.agent)

    def _let_creatures_act(self, draws: Tensor) -> None:
        """Move cows and monsters, take damage, and let new ones appear."""
        herd = Herd(
            self.creature_cells,
            self.creature_health,
            self.creature_cooldown,
            self.arrow_cells,
            self.arrow_steps,
        )
        moves = 2 * creatures.CREATURES + 5
        herd, damage = self._creatures.move(
            herd, self.cells, self.agent, self.sleeps, draws[:, :moves]
        )
        darkness = 1.0 - self.light()
        herd = self._creatures.appear(herd, self.cells, self.agent, darkness, draws[:, moves:])
        self.creature_cells, self.creature_health = herd.cells, herd.health
        self.creature_cooldown = herd.cooldown
        self.arrow_cells, self.arrow_steps = herd.arrows, herd.arrow_steps
        self.levels[:, 0] -= damage
        self.sleeps = self.sleeps & (damage == 0.0)

    def light(self) -> Tensor:
        return self._daylight[self.progress_buf % DAY_LENGTH]

    def _look(self) -> Tensor:
        """Note the cells in view as seen; return the number of new ones. Shape: (num_envs,)."""
        cells = self.view.cells(self.agent)
        fresh = (self.cells.gather(1, cells) != OUTSIDE) & ~self.seen.gather(1, cells)
        self.seen.scatter_(1, cells, True)
        return fresh.sum(dim=-1).float()

    # ── a start ───────────────────────────────────────────────────────────────────────────────────

    def reset_idx(self, env_ids: Tensor) -> None:
        """New worlds; the agent faces up, with 9 of all it needs."""
        worlds = self._worlds.draws
        draws = self.random.uniform(env_ids, worlds + creatures.DRAWS_OF_RESET)
        made, start = self._worlds.make(draws[:, :worlds])
        whole = torch.nn.functional.pad(made, (BORDER,) * 4, value=OUTSIDE).flatten(1)
        agent = start % self.size + BORDER + self.width * (start // self.size + BORDER)
        cows, health = self._creatures.first_cows(whole, agent, draws[:, worlds:])
        seen = torch.zeros_like(whole, dtype=torch.bool)
        self.cells[env_ids] = whole
        self.seen[env_ids] = seen.scatter_(1, self.view.cells(agent), True)
        self.agent[env_ids] = agent
        self.creature_cells[env_ids] = cows
        self.creature_health[env_ids] = health
        self.inventory[env_ids] = self._start_items
        self.way.index_fill_(0, env_ids, UP_AT_START)
        self.levels.index_fill_(0, env_ids, float(MOST_CARRIED))
        for state in (
            *(self.deeds, self.gauges, self.sleeps, self.creature_cooldown),
            *(self.arrow_cells, self.arrow_steps, self.new_cells),
        ):
            state.index_fill_(0, env_ids, 0)


def _check(name: str, value: object, known: Iterable[object]) -> None:
    """Raises ValueError where `known` has no such value."""
    options = list(known)
    if value not in options:
        raise ValueError(f"{name} is {value!r}, expected one of {options!r}")
