"""Drawing of the two rooms from above."""

from __future__ import annotations

from collections.abc import Sequence

from eureka_agent.simulation.drawing import Circle, Drawing, Line, Polygon, Shape, rectangle

_WALL, _DOOR, _KEY, _GOAL, _AGENT = "#64748b", "#b45309", "#eab308", "#22c55e", "#ef4444"


def draw(
    size: int,
    agent: Sequence[int],
    way: Sequence[int],
    key: Sequence[int],
    door: Sequence[int],
    is_open: bool,
    is_locked: bool,
) -> Drawing:
    """Cells are (column, row); `way` is the agent's direction. A carried key has the
    agent's cell."""
    last = size - 1
    shapes: list[Shape] = [
        _square((column, row), _WALL)
        for column in range(size)
        for row in range(size)
        if column in (0, last, door[0]) or row in (0, last)
    ]
    shapes.append(_square((last - 1, last - 1), _GOAL))
    x, y = door[0], -door[1]
    shapes.append(_square(door, "#f8fafc"))
    if is_open:
        shapes.append(rectangle((x - 0.42, y), 0.12, 0.95, _DOOR))
    else:
        shapes += [
            rectangle((x, y), 0.95, 0.95, _DOOR),
            Circle((x + 0.25, y), 0.1, _KEY if is_locked else "#f8fafc"),
        ]
    ahead, right = (way[0], -way[1]), (-way[1], -way[0])
    x, y = agent[0], -agent[1]
    corners = ((0.4, 0.0), (-0.35, 0.32), (-0.35, -0.32))
    shapes.append(
        Polygon(
            [
                (x + u * ahead[0] + v * right[0], y + u * ahead[1] + v * right[1])
                for u, v in corners
            ],
            _AGENT,
        )
    )
    x, y = key[0], -key[1]
    shapes += [
        Circle((x, y + 0.12), 0.16, _KEY),
        Line(((x, y), (x, y - 0.35)), 0.09, _KEY),
        Line(((x, y - 0.3), (x + 0.15, y - 0.3)), 0.09, _KEY),
    ]
    middle = (size - 1) / 2.0
    return Drawing(shapes, centre=(middle, -middle), width=1.6 * size)


def _square(cell: Sequence[int], colour: str) -> Polygon:
    return rectangle((cell[0], -cell[1]), 1.0, 1.0, colour)
