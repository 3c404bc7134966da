"""Pictures of an environment's own 2-D drawings."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageColor, ImageDraw

from eureka_agent.rendering.pictures import Picture, RenderingError, Size, font
from eureka_agent.simulation.drawing import Circle, Drawing, Label, Line, Point, Polygon, Shape

_OVERSAMPLING = 2
"""Pixels a side for each pixel of the result: Pillow draws without smooth edges."""
_LABEL_PIXELS = 13


def rasterise(drawing: Drawing, size: Size) -> Picture:
    """The drawing as a picture. Raises RenderingError for a size, number or colour that is none."""
    if not isinstance(drawing, Drawing):
        raise RenderingError(
            f"`draw` gave {type(drawing).__name__}, expected a Drawing",
            "return Drawing(shapes, centre, width) of eureka_agent.simulation.drawing",
        )
    if not math.isfinite(drawing.width) or drawing.width <= 0.0:
        raise _wrong(f"the width {drawing.width!r}", "a number above 0")
    canvas = _Canvas(drawing, size)
    for shape in drawing.shapes:
        canvas.add(shape)
    return canvas.picture()


class _Canvas:
    """A picture that grows by shapes."""

    def __init__(self, drawing: Drawing, size: Size) -> None:
        width, height = (_OVERSAMPLING * side for side in size)
        self._image = Image.new("RGB", (width, height), _colour(drawing.background))
        self._draw = ImageDraw.Draw(self._image)
        self._scale = width / drawing.width
        self._middle = (width / 2.0, height / 2.0)
        self._centre = drawing.centre

    def add(self, shape: Shape) -> None:
        """Draw a shape over the others. Raises RenderingError."""
        if not isinstance(shape, Shape):
            raise _wrong(f"the shape {shape!r}", "a Line, Circle, Polygon or Label")
        colour = _colour(shape.colour)
        match shape:
            case Line():
                width = max(1, round(shape.width * self._scale))
                points = [self._pixel(point) for point in shape.points]
                self._draw.line(points, fill=colour, width=width, joint="curve")
            case Circle():
                x, y = self._pixel(shape.centre)
                radius = max(0.5, shape.radius * self._scale)
                box = (x - radius, y - radius, x + radius, y + radius)
                self._draw.ellipse(box, fill=colour)
            case Polygon():
                self._draw.polygon([self._pixel(point) for point in shape.points], fill=colour)
            case Label():
                text = font(_OVERSAMPLING * _LABEL_PIXELS)
                self._draw.text(self._pixel(shape.at), shape.text, fill=colour, font=text)

    def picture(self) -> Picture:
        return np.asarray(self._image.reduce(_OVERSAMPLING))

    def _pixel(self, point: Point) -> tuple[float, float]:
        """The point in pixels; far away ones come to lie well outside."""
        right, up = (float(value) for value in point)
        if not (math.isfinite(right) and math.isfinite(up)):
            raise _wrong(f"the point {point!r}", "two finite numbers")
        x = self._middle[0] + (right - self._centre[0]) * self._scale
        y = self._middle[1] - (up - self._centre[1]) * self._scale
        most = 1e5  # Pillow counts pixels in 32 bits
        return min(max(x, -most), most), min(max(y, -most), most)


def _colour(name: str) -> tuple[int, ...]:
    try:
        return ImageColor.getrgb(name)
    except (ValueError, AttributeError):
        raise _wrong(f"the colour {name!r}", "a name of CSS or '#rrggbb'") from None


def _wrong(what: str, expected: str) -> RenderingError:
    return RenderingError(
        f"the environment's drawing has {what}, expected {expected}",
        "correct its `draw`",
    )
