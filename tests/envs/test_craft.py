"""Crafter's world in torch: rules by hand, views by a plain search, worlds by their statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from by_hand import rewarded

from eureka_agent.simulation.loading import load_environment

OUTSIDE, GRASS, SAND, WATER, STONE, TREE, PATH, COAL, IRON, DIAMOND, LAVA, TABLE, FURNACE, PLANT = (
    range(14)
)
NOTHING, LEFT, RIGHT, UP, DOWN, DO, SLEEP, PLACE_STONE, PLACE_TABLE, PLACE_FURNACE = range(10)
PLACE_PLANT, WOOD_PICKAXE, STONE_PICKAXE, IRON_PICKAXE, WOOD_SWORD, STONE_SWORD, IRON_SWORD = range(
    10, 17
)
ITEMS = (
    *("sapling", "wood", "stone", "coal", "iron", "diamond", "wood_pickaxe", "stone_pickaxe"),
    *("iron_pickaxe", "wood_sword", "stone_sword", "iron_sword"),
)
BORDER = 13


def made(rows: int = 1, **options: Any) -> Any:
    environment: Any = load_environment("craft").environment_class(
        rows, seed=3, **{"size": 32, **options}
    )
    environment.reset()
    return environment


def meadow(carrying: dict[str, int] | None = None, **options: Any) -> Any:
    """A row of grass alone, without creatures, with the agent at column and row 16, facing up."""
    environment = made(carrying=carrying, **{"monsters": False, **options})
    inside = environment.cells.view(1, environment.width, -1)[:, BORDER:-BORDER, BORDER:-BORDER]
    inside.fill_(GRASS)
    for state in ("creature_cells", "creature_health"):
        getattr(environment, state).zero_()
    environment.agent[0] = cell(environment, 16, 16)
    environment.way[0] = 2
    environment._creatures._chance.zero_()  # and none appears
    environment._creatures._by_night.zero_()
    environment.compute_observations()
    return environment


def cell(environment: Any, column: int, row: int) -> int:
    return int(column + BORDER + environment.width * (row + BORDER))


def put(environment: Any, column: int, row: int, kind: int) -> None:
    environment.cells[0, cell(environment, column, row)] = kind


def kind_at(environment: Any, column: int, row: int) -> int:
    return int(environment.cells[0, cell(environment, column, row)])


def act(environment: Any, *choices: int) -> dict[str, Any]:
    """Variables after the choices; without resets."""
    transition = None
    for choice in choices:
        transition = environment.advance(torch.tensor([[float(choice)]]))
    assert transition is not None
    return {name: value[0].tolist() for name, value in transition.variables.items()}


def carried(environment: Any) -> dict[str, int]:
    found = dict(zip(ITEMS, map(int, environment.inventory[0].tolist()), strict=True))
    return {item: number for item, number in found.items() if number}


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────


def test_from_a_tree_to_a_stone() -> None:
    environment = meadow()
    for column in (15, 16, 17):
        put(environment, column, 15, TREE)
    put(environment, 17, 16, STONE)
    assert act(environment, DO)["wood_carried"] == 1.0
    assert kind_at(environment, 16, 15) == GRASS  # felled
    act(environment, WOOD_PICKAXE, PLACE_TABLE)  # no table is near, and a table costs 2 wood
    assert carried(environment) == {"wood": 1}
    # left and up to face the tree at 15, 15
    act(environment, LEFT, UP, DO)
    assert carried(environment) == {"wood": 2}
    variables = act(environment, PLACE_TABLE)
    assert carried(environment) == {}
    assert (variables["table_near"], variables["tables_placed"], variables["facing_table"]) == (
        *(1.0, 1.0, 1.0),
    )
    # back to 16, 16, up to 16, 15, and right: the tree at 17, 15
    act(environment, RIGHT, UP, RIGHT, DO)
    assert carried(environment) == {"wood": 1}
    assert act(environment, WOOD_PICKAXE)["has_wood_pickaxe"] == 1.0  # the table is at its left
    # down to 16, 16, and right: the stone at 17, 16
    variables = act(environment, DOWN, RIGHT, DO)
    assert (variables["stone_carried"], variables["stones_mined"]) == (1.0, 1.0)
    assert kind_at(environment, 17, 16) == PATH
    assert carried(environment) == {"wood_pickaxe": 1, "stone": 1}


@pytest.mark.parametrize(
    ("choice", "tool", "costs", "stations"),
    [
        (WOOD_PICKAXE, "wood_pickaxe", ("wood",), (TABLE,)),
        (WOOD_SWORD, "wood_sword", ("wood",), (TABLE,)),
        (STONE_PICKAXE, "stone_pickaxe", ("wood", "stone"), (TABLE,)),
        (STONE_SWORD, "stone_sword", ("wood", "stone"), (TABLE,)),
        (IRON_PICKAXE, "iron_pickaxe", ("wood", "stone", "coal", "iron"), (TABLE, FURNACE)),
        (IRON_SWORD, "iron_sword", ("wood", "stone", "coal", "iron"), (TABLE, FURNACE)),
    ],
)
def test_recipes(choice: int, tool: str, costs: tuple[str, ...], stations: tuple[int, ...]) -> None:
    all_of_it = dict.fromkeys(costs, 2)
    # one of each is spent, with the stations at two corners
    environment = meadow(all_of_it)
    for place, station in zip((15, 17), stations, strict=False):
        put(environment, place, 17, station)
    act(environment, choice)
    assert carried(environment) == {**dict.fromkeys(costs, 1), tool: 1}
    # without one of the materials
    for missing in costs:
        environment = meadow({item: 2 for item in costs if item != missing})
        for place, station in zip((15, 17), stations, strict=False):
            put(environment, place, 17, station)
        act(environment, choice)
        assert tool not in carried(environment)
    # with a station too far away
    for far in range(len(stations)):
        environment = meadow(all_of_it)
        for number, station in enumerate(stations):
            put(environment, 15 + 2 * number, 18 if number == far else 17, station)
        act(environment, choice)
        assert carried(environment) == all_of_it


def test_blocks_are_placed_where_they_may_be() -> None:
    allowed = {
        PLACE_STONE: {GRASS, SAND, PATH, WATER, LAVA},
        PLACE_TABLE: {GRASS, SAND, PATH, LAVA},
        PLACE_FURNACE: {GRASS, SAND, PATH, LAVA},
        PLACE_PLANT: {GRASS},
    }
    spent = {
        PLACE_STONE: ("stone", 1, STONE),
        PLACE_TABLE: ("wood", 2, TABLE),
        PLACE_FURNACE: ("stone", 1, FURNACE),
        PLACE_PLANT: ("sapling", 1, PLANT),
    }
    environment = meadow()
    for choice, kinds in allowed.items():
        item, number, becomes = spent[choice]
        for kind in range(1, 14):
            environment.inventory.zero_()
            environment.inventory[0, ITEMS.index(item)] = number
            put(environment, 16, 15, kind)
            act(environment, choice)
            assert carried(environment) == ({} if kind in kinds else {item: number}), (choice, kind)
            assert kind_at(environment, 16, 15) == (becomes if kind in kinds else kind)
    # one less than it costs is not enough
    environment.inventory.zero_()
    environment.inventory[0, ITEMS.index("wood")] = 1
    put(environment, 16, 15, GRASS)
    act(environment, PLACE_TABLE)
    assert kind_at(environment, 16, 15) == GRASS


def test_needs_fall_and_are_met() -> None:
    environment = meadow()
    levels = ("health", "food", "drink", "energy")
    steps = [act(environment, NOTHING) for _ in range(31)]
    seen = [[variables[each] for each in levels] for variables in steps]
    # gauges pass 25, 20 and 30 in steps 26, 21 and 31
    assert seen[19] == [9.0, 9.0, 9.0, 9.0]
    assert seen[20] == [9.0, 9.0, 8.0, 9.0]
    assert seen[25] == [9.0, 8.0, 8.0, 9.0]
    assert seen[30] == [9.0, 8.0, 8.0, 8.0]
    put(environment, 16, 15, WATER)
    assert act(environment, DO)["drink"] == 9.0
    # the first step takes fatigue from 1 to 0, the twelfth to -11: energy comes back, it wakes
    slept = [act(environment, SLEEP)["asleep"] for _ in range(13)]
    assert slept[:11] == [1.0] * 11
    assert slept[12] == 0.0
    # without drink health falls after 16 steps
    environment = meadow()
    environment.levels[0, 2] = 0.0
    seen_health = [act(environment, NOTHING)["health"] for _ in range(16)]
    assert seen_health == [9.0] * 15 + [8.0]


# ── view ──────────────────────────────────────────────────────────────────────────────────────────


def nearest_by_search(cells: np.ndarray, column: int, row: int, kind: int) -> list[int] | None:
    """Column and row to the nearest cell of a kind in view; of equally near ones the upper, then
    the left one."""
    found = [
        (abs(right) + abs(down), down, right)
        for down in range(-3, 4)
        for right in range(-4, 5)
        if cells[row + down, column + right] == kind
    ]
    if not found:
        return None
    _, down, right = min(found)
    return [right, down]


def test_the_nearest_of_each_kind_is_found_as_by_a_search() -> None:
    kinds = {"tree": TREE, "water": WATER, "stone": STONE, "coal": COAL, "iron": IRON}
    kinds |= {"diamond": DIAMOND, "lava": LAVA, "table": TABLE, "furnace": FURNACE}
    kinds |= {"cow": 20, "zombie": 21, "skeleton": 22}
    rows = 40
    environment = made(rows)
    generator = torch.Generator().manual_seed(5)
    width = environment.width
    for density in (0.9, 0.97):
        drawn = torch.randint(1, 14, (rows, 32, 32), generator=generator)
        drawn[torch.rand(drawn.shape, generator=generator) < density] = GRASS
        whole = torch.nn.functional.pad(drawn, (BORDER,) * 4)
        environment.cells.copy_(whole.flatten(1).to(torch.int8))
        places = torch.randint(0, 32, (rows, 9, 2), generator=generator) + BORDER
        environment.agent = places[:, 0, 0] + width * places[:, 0, 1]
        near = places[:, :1] + torch.randint(-5, 6, (rows, 8, 2), generator=generator)
        absent = torch.rand(rows, 8, generator=generator) < 0.5
        environment.creature_cells = (near[..., 0] + width * near[..., 1]) * ~absent
        environment.compute_observations()
        variables = {name: value.numpy() for name, value in environment.read_variables().items()}
        for number in range(rows):
            column, row = places[number, 0].tolist()
            cells = whole[number].numpy()
            creatures = cows = np.zeros_like(cells)
            for kind, slots in (("cow", (0, 1, 2)), ("zombie", (3, 4, 5)), ("skeleton", (6, 7))):
                of_kind = np.zeros_like(cells)
                for slot in slots:
                    if not absent[number, slot]:
                        of_kind[near[number, slot, 1], near[number, slot, 0]] = kinds[kind]
                found = nearest_by_search(of_kind, column, row, kinds[kind])
                check_nearest(variables, kind, number, found)
                creatures = np.maximum(creatures, of_kind)
                cows = of_kind if kind == "cow" else cows
            for kind in list(kinds)[:9]:
                found = nearest_by_search(cells, column, row, kinds[kind])
                check_nearest(variables, kind, number, found)
            walkable = np.isin(cells, (GRASS, SAND, PATH)) & (creatures == 0)
            danger = (cells == LAVA) | (creatures >= 21)
            useful = np.isin(cells, (TREE, WATER, COAL, IRON, DIAMOND)) | (cows > 0)
            local_map = environment.obs_buf[number, -3 * 49 :].view(7, 7, 3).numpy()
            for layer, told in ((walkable, 0), (danger, 1), (useful, 2)):
                expected = layer[row - 3 : row + 4, column - 3 : column + 4]
                assert (local_map[..., told] == expected).all()


def check_nearest(
    variables: dict[str, np.ndarray], kind: str, number: int, found: list[int] | None
) -> None:
    assert variables[f"{kind}_seen"][number] == (found is not None)
    assert variables[f"{kind}_offset"][number].tolist() == (found or [0, 0]), kind
    distance = 8 if found is None else sum(map(abs, found))
    assert variables[f"{kind}_distance"][number] == distance


# ── rows and worlds ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "options", [{}, {"start": "by_lava"}, {"start": "away_from_trees", "goal": "tree"}]
)
def test_a_row_is_the_same_among_others_and_alone(options: dict[str, Any]) -> None:
    actions = torch.randint(0, 17, (60, 5, 1), generator=torch.Generator().manual_seed(1)).float()
    many, alone = made(5, **options), made(1, **options)
    for environment, rows in ((many, torch.arange(5)), (alone, torch.tensor([0]))):
        # the row's place in the call is part of its seed
        environment.seed_rows(rows[:1], torch.tensor([77]))
        environment.reset_rows(rows[:1])
    for step, action in enumerate(actions):
        many.advance(action)
        alone.advance(action[:1])
        own = alone.row_tensors()
        for name, value in many.row_tensors().items():
            assert torch.equal(value[0], own[name][0]), (step, name)
        many.reset_done()
        alone.reset_done()


def test_creatures_never_share_a_cell_and_stand_on_ground() -> None:
    environment = made(16, monsters=True)
    environment._creatures._chance.fill_(0.5)
    generator = torch.Generator().manual_seed(2)
    met = torch.zeros(8, dtype=torch.bool)
    for _ in range(200):
        environment.advance(torch.randint(0, 17, (16, 1), generator=generator).float())
        cells, lives = environment.creature_cells, environment.creature_health > 0.0
        assert torch.equal(cells > 0, lives)
        ground = environment.cells.gather(1, cells)[lives]
        assert torch.isin(ground, torch.tensor([GRASS, SAND, PATH], dtype=torch.int8)).all()
        for row in range(16):
            own = [*cells[row][lives[row]].tolist(), int(environment.agent[row])]
            assert len(set(own)) == len(own)
        met |= lives.any(dim=0)
        environment.reset_done()
    assert met.tolist() == [True] * 8


def test_worlds_have_all_that_crafter_has() -> None:
    environment = made(48, size=64)
    width = environment.width
    cells = environment.cells.view(48, width, width)[:, BORDER:-BORDER, BORDER:-BORDER]
    share = {kind: float((cells == kind).float().mean()) for kind in range(14)}
    assert share[OUTSIDE] == share[TABLE] == share[FURNACE] == share[PLANT] == 0.0
    assert 0.3 < share[GRASS] < 0.7
    assert 0.03 < share[WATER] < 0.25
    assert 0.05 < share[STONE] + share[PATH] < 0.5
    for kind in (SAND, TREE, PATH):
        assert share[kind] > 0.01
    rock = share[STONE] + share[COAL] + share[IRON] + share[DIAMOND]
    assert share[COAL] / rock == pytest.approx(0.04, abs=0.01)
    assert share[IRON] / rock == pytest.approx(0.0288, abs=0.01)
    assert ((cells == DIAMOND).flatten(1).sum(dim=1) >= 1).all()
    # the middle is grass, and nothing but grass, sand and trees is beside it
    assert (cells[:, 32, 32] == GRASS).all()
    assert torch.isin(cells[:, 31:34, 31:34], torch.tensor([GRASS, SAND, TREE])).all()


# ── rewards ───────────────────────────────────────────────────────────────────────────────────────


def test_the_way_to_a_tree_is_paid_and_taken_back() -> None:
    environment = meadow(goal="tree")
    put(environment, 16, 14, TREE)
    environment.compute_observations()
    environment.seen.fill_(True)
    # from 2 cells to 3, back, and on to 1, where it is faced
    parts = rewarded(environment, "craft", "find_tree", [DOWN, UP, UP])
    assert [each["way"] for each in parts] == pytest.approx([-0.04, 0.04, 0.04])
    assert [each["exploration"] for each in parts] == [0.0] * 3
    # three steps of 300
    assert [each["tree"] for each in parts] == pytest.approx([0.0, 0.0, 1.0 - 0.9 * 3 / 300])


def test_subgoals_of_a_stone_are_paid_once() -> None:
    environment = meadow({"wood": 4}, goal="stone")
    put(environment, 16, 17, STONE)
    environment.compute_observations()
    parts = rewarded(
        environment, "craft", "collect_stone", [PLACE_TABLE, WOOD_PICKAXE, WOOD_SWORD, DOWN, DO]
    )
    assert [each["table"] for each in parts] == pytest.approx([0.2, 0.0, 0.0, 0.0, 0.0])
    assert [each["pickaxe"] for each in parts] == pytest.approx([0.0, 0.4, 0.0, 0.0, 0.0])
    assert [each["way"] for each in parts] == pytest.approx([0.0] * 5)
    assert parts[-1]["stone"] == pytest.approx(1.0 - 0.9 * 5 / 300)
