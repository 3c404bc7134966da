"""Drawing of the cells around the agent from above, with its levels and inventory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eureka_agent.simulation.drawing import (
    Circle,
    Drawing,
    Label,
    Line,
    Polygon,
    Shape,
    rectangle,
)

from .creatures import COWS, ZOMBIES
from .rules import (
    COAL,
    DIAMOND,
    FURNACE,
    GRASS,
    IRON,
    LAVA,
    OUTSIDE,
    PATH,
    PLANT,
    SAND,
    STONE,
    TABLE,
    TREE,
    WATER,
)
from .view import HALF_HEIGHT, HALF_WIDTH

_COLOURS = {
    OUTSIDE: "#0f172a",
    GRASS: "#86efac",
    SAND: "#fde68a",
    WATER: "#60a5fa",
    STONE: "#94a3b8",
    TREE: "#15803d",
    PATH: "#d6d3d1",
    COAL: "#1e293b",
    IRON: "#fb923c",
    DIAMOND: "#e0f2fe",
    LAVA: "#dc2626",
    TABLE: "#92400e",
    FURNACE: "#475569",
    PLANT: "#4d7c0f",
}
_COW, _ZOMBIE, _SKELETON, _AGENT = "#78350f", "#166534", "#f8fafc", "#7c3aed"
_COLUMNS, _ROWS = 9, 6
"""Cells to each side of the agent, above and below it, that are drawn."""

Cell = tuple[int, int]
"""Row and column on the map."""


def draw(
    cells: Sequence[Sequence[int]],
    agent: Cell,
    way: Sequence[int],
    creatures: Sequence[Cell],
    arrows: Sequence[Cell],
    levels: Mapping[str, int],
    carried: Mapping[str, int],
) -> Drawing:
    """`way` is the column and row of a step ahead; creatures at 0, 0 are absent."""
    row, column = agent
    shapes: list[Shape] = [
        rectangle((right, -down), 1.0, 1.0, _COLOURS[cells[row + down][column + right]])
        for down in range(-_ROWS, _ROWS + 1)
        for right in range(-_COLUMNS, _COLUMNS + 1)
    ]
    half = (HALF_WIDTH + 0.5, HALF_HEIGHT + 0.5)
    corners = [(x * half[0], y * half[1]) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    shapes.append(Line([*corners, corners[0]], 0.06, "#334155"))
    for number, (down, right) in enumerate(creatures):
        x, y = right - column, row - down
        if abs(x) <= _COLUMNS and abs(y) <= _ROWS:
            is_cow, is_zombie = number < COWS.stop, number < ZOMBIES.stop
            shapes.append(
                Circle((x, y), 0.38, _COW if is_cow else _ZOMBIE if is_zombie else _SKELETON)
            )
    shapes += [
        Circle((right - column, row - down), 0.15, "#111827")
        for down, right in arrows
        if abs(right - column) <= _COLUMNS and abs(down - row) <= _ROWS
    ]
    ahead, side = (way[0], -way[1]), (-way[1], -way[0])
    arrowhead = ((0.42, 0.0), (-0.35, 0.34), (-0.35, -0.34))
    shapes.append(
        Polygon(
            [(u * ahead[0] + v * side[0], u * ahead[1] + v * side[1]) for u, v in arrowhead], _AGENT
        )
    )
    told = [f"{name} {level}" for name, level in levels.items()]
    held = [f"{name.replace('_', ' ')} {number}" for name, number in carried.items() if number]
    bottom = -_ROWS - 1.2
    shapes.append(Label((-_COLUMNS, bottom), ", ".join(told)))
    shapes.append(Label((-_COLUMNS, bottom - 1.0), ", ".join(held) or "nothing carried"))
    return Drawing(shapes, centre=(0.0, -1.0), width=2.0 * _COLUMNS + 2.0)
