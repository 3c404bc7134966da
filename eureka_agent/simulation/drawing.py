"""Plain 2-D drawings of a row, which `VecTask.draw` returns for videos."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]
"""Coordinates to the right and upwards, in the drawing's units, such as metres."""


@dataclass(frozen=True)
class Line:
    points: Sequence[Point]
    width: float
    """In the drawing's units."""
    colour: str = "#334155"
    """Name of CSS, or `#rrggbb`."""


@dataclass(frozen=True)
class Circle:
    centre: Point
    radius: float
    colour: str = "#334155"


@dataclass(frozen=True)
class Polygon:
    points: Sequence[Point]
    colour: str = "#334155"


@dataclass(frozen=True)
class Label:
    """A text whose left end stands at a point."""

    at: Point
    text: str
    colour: str = "#334155"


Shape: TypeAlias = Line | Circle | Polygon | Label


@dataclass(frozen=True)
class Drawing:
    """Shapes in their order from back to front."""

    shapes: Sequence[Shape]
    centre: Point
    """Point in the middle of the picture."""
    width: float
    """Width of the picture in the drawing's units; the height follows from the video's."""
    background: str = "#f8fafc"


def rectangle(
    centre: Point, width: float, height: float, colour: str = "#334155", angle: float = 0.0
) -> Polygon:
    """A rectangle, turned by `angle` (rad, counterclockwise) about its centre."""
    sine, cosine = math.sin(angle), math.cos(angle)
    x, y = centre
    corners = [(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)]
    ends = [(width * right, height * up) for right, up in corners]
    turned = [(cosine * one - sine * two, sine * one + cosine * two) for one, two in ends]
    return Polygon([(x + right, y + up) for right, up in turned], colour)
