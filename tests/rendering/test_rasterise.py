"""Drawings come out as pictures at the right place, in the right size and colour."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from eureka_agent.rendering.pictures import RenderingError, rasterise
from eureka_agent.simulation.drawing import Circle, Drawing, Label, Line, Polygon, Shape, rectangle

RED = "#ff0000"
SIZE = (80, 60)
"""With a width of 8 units: 10 pixels each, the middle at (40, 30)."""


def reddish(*shapes: Shape, centre: tuple[float, float] = (0.0, 0.0)) -> NDArray[np.bool_]:
    """Pixels that are red rather than white. Shape: (60, 80)."""
    drawing = Drawing(shapes, centre=centre, width=8.0, background="#ffffff")
    picture = rasterise(drawing, SIZE)
    assert picture.shape == (60, 80, 3)
    assert picture.dtype == np.uint8
    return picture[..., 1] < 128


def box_of(pixels: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Left, top, right and bottom, the last two exclusive."""
    rows, columns = np.nonzero(pixels)
    return columns.min(), rows.min(), columns.max() + 1, rows.max() + 1


def near(box: Sequence[int], expected: Sequence[float]) -> bool:
    """True where each edge is at most a pixel off."""
    return all(abs(side - right) <= 1.0 for side, right in zip(box, expected, strict=True))


def test_a_rectangle_stands_where_its_coordinates_say() -> None:
    # 1 to the right and 0.5 upwards of the middle: x = 40 + 10, y = 30 − 5; 2 × 1 units
    box = box_of(reddish(rectangle((1.0, 0.5), 2.0, 1.0, RED)))
    assert near(box, (40, 20, 60, 30))


def test_the_centre_of_the_picture_may_be_elsewhere() -> None:
    box = box_of(reddish(rectangle((1.0, 0.5), 2.0, 1.0, RED), centre=(3.0, 0.0)))
    assert near(box, (10, 20, 30, 30))


def test_a_turned_rectangle_turns_counterclockwise() -> None:
    # a quarter turn: 1 wide and 2 high
    box = box_of(reddish(rectangle((0.0, 0.0), 2.0, 1.0, RED, angle=math.pi / 2.0)))
    assert near(box, (35, 20, 45, 40))
    # 45 degrees: its right end is above the middle, its left end below
    pixels = reddish(rectangle((0.0, 0.0), 4.0, 0.2, RED, angle=math.pi / 4.0))
    assert pixels[30 - 10, 40 + 10]
    assert not pixels[30 + 10, 40 + 10]


def test_a_circle_has_its_area() -> None:
    pixels = reddish(Circle((-2.0, 0.0), 1.0, RED))
    assert pixels.sum() == pytest.approx(math.pi * 10.0**2, rel=0.05)
    assert near(box_of(pixels), (10, 20, 30, 40))


def test_a_line_has_its_width_and_length() -> None:
    pixels = reddish(Line(((-3.0, -1.0), (3.0, -1.0)), 0.4, RED))
    assert near(box_of(pixels), (10, 38, 70, 42))


def test_later_shapes_cover_earlier_ones() -> None:
    square = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
    assert reddish(Polygon(square, "white"), Polygon(square, RED))[30, 40]
    assert not reddish(Polygon(square, RED), Polygon(square, "white"))[30, 40]


def test_a_label_begins_at_its_point() -> None:
    left, top, *_ = box_of(reddish(Label((-3.0, 1.0), "height", RED)))
    assert 10 <= left <= 13
    assert 20 <= top <= 26


def test_shapes_far_outside_do_no_harm() -> None:
    far = Line(((-1e30, 0.0), (1e30, 0.0)), 0.4, RED)
    assert near(box_of(reddish(far)), (0, 28, 80, 32))


@pytest.mark.parametrize(
    ("drawing", "named"),
    [
        (Drawing((Circle((math.nan, 0.0), 1.0),), (0.0, 0.0), 8.0), r"\(nan, 0.0\)"),
        (Drawing((Circle((0.0, 0.0), 1.0, "reddish"),), (0.0, 0.0), 8.0), "'reddish'"),
        (Drawing((), (0.0, 0.0), 0.0), "width 0.0"),
        (Drawing((), (0.0, 0.0), 8.0, background="no colour"), "'no colour'"),
        (Drawing(("a circle",), (0.0, 0.0), 8.0), "'a circle'"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_drawn_is_named(drawing: Drawing, named: str) -> None:
    with pytest.raises(RenderingError, match=named) as caught:
        rasterise(drawing, SIZE)
    assert "`draw`" in caught.value.hint
