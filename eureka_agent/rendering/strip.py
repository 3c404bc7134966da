"""The strip below a panel: time, fitness so far and each reward term, with a moving cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from eureka_agent.rendering.pictures import Picture, font
from eureka_agent.wording import number

Series = NDArray[np.floating]
"""A value for each step of an episode."""
MOST_TERMS = 6
"""Terms of a strip, those with the largest magnitude."""
TOTAL = "total reward"
"""Name of the sum among a reward's terms, which is always shown."""
ROW_PIXELS = 20
HEADER_PIXELS = 24
_TEXT_PIXELS = 12
_BACKGROUND, _TEXT, _QUIET = "#0f172a", "#e2e8f0", "#94a3b8"
_AHEAD, _PASSED, _ZERO = "#475569", "#38bdf8", "#334155"
_CURSOR = (248, 250, 252)
_MARGIN = 8


@dataclass(frozen=True)
class Curve:
    """A line of the strip."""

    name: str
    values: Series
    unit: str = ""
    limits: tuple[float, float] = (0.0, 1.0)
    """Least and largest value of the scale, equal for all panels of one reward."""


def shared_limits(values: Sequence[Series]) -> tuple[float, float]:
    """A scale for all of these, with zero in it."""
    finite = [series[np.isfinite(series)] for series in values]
    parts = [
        float(edge) for series in finite if len(series) for edge in (series.min(), series.max())
    ]
    low, high = min([0.0, *parts]), max([0.0, *parts])
    return (low, high) if high > low else (low, low + 1.0)


def largest_terms(episodes: Sequence[Mapping[str, Series]]) -> list[str]:
    """At most `MOST_TERMS` names, in the reward's own order, by mean magnitude."""
    sizes: dict[str, float] = {}
    for terms in episodes:
        for name, values in terms.items():
            size = float(np.nan_to_num(np.abs(values)).mean()) if len(values) else 0.0
            sizes[name] = max(sizes.get(name, 0.0), size)
    kept = sorted(sizes, key=lambda name: (name != TOTAL, -sizes[name]))[:MOST_TERMS]
    return [name for name in sizes if name in kept]


class Strip:
    """The strip of one panel. What does not move is drawn once."""

    def __init__(self, width: int, curves: Sequence[Curve], rows: int, control_dt: float) -> None:
        """`rows`: lines of the highest strip beside this one; `control_dt`: seconds of a step."""
        self._curves = curves
        self._control_dt = control_dt
        self._height = HEADER_PIXELS + ROW_PIXELS * rows
        self._width = width
        self._names_end = _MARGIN + int(0.36 * width)
        self._values_begin = width - _MARGIN - int(0.2 * width)
        self._ahead = self._drawn(_AHEAD)
        self._passed = self._drawn(_PASSED)

    @property
    def height(self) -> int:
        """Pixels."""
        return self._height

    def picture(self, step: int, ending: str) -> Picture:
        """The strip after so many steps. `ending`: how the episode ended; empty while it goes
        on."""
        pixels = self._ahead.copy()
        begin, end = self._names_end, self._values_begin - _MARGIN
        length = max((len(curve.values) for curve in self._curves), default=0)
        cursor = begin + round((end - begin) * step / max(1, length))
        top = HEADER_PIXELS
        pixels[top:, begin:cursor] = self._passed[top:, begin:cursor]
        if self._curves:
            pixels[top : top + ROW_PIXELS * len(self._curves), cursor : cursor + 1] = _CURSOR
        image = Image.fromarray(pixels)
        draw = ImageDraw.Draw(image)
        text = font(_TEXT_PIXELS)
        time = f"{step * self._control_dt:.2f} s"
        middle = HEADER_PIXELS / 2.0
        draw.text((_MARGIN, middle), time, fill=_TEXT, font=text, anchor="lm")
        if ending:
            place = (self._width - _MARGIN, middle)
            draw.text(place, ending, fill="#fbbf24", font=text, anchor="rm")
        for line, curve in enumerate(self._curves):
            if step < 1:
                break
            value = float(curve.values[min(step, len(curve.values)) - 1])
            shown = f"{number(value)} {curve.unit}".rstrip()
            place = (self._width - _MARGIN, top + ROW_PIXELS * (line + 0.5))
            draw.text(place, shown, fill=_TEXT, font=text, anchor="rm")
        return np.asarray(image)

    def _drawn(self, colour: str) -> Picture:
        """Names and whole curves."""
        image = Image.new("RGB", (self._width, self._height), _BACKGROUND)
        draw = ImageDraw.Draw(image)
        for line, curve in enumerate(self._curves):
            top = HEADER_PIXELS + ROW_PIXELS * line
            name = shortened(draw, curve.name, self._names_end - 2 * _MARGIN)
            place = (_MARGIN, top + ROW_PIXELS / 2.0)
            draw.text(place, name, fill=_QUIET, font=font(_TEXT_PIXELS), anchor="lm")
            begin, end = self._names_end, self._values_begin - _MARGIN
            zero = self._y(0.0, curve, top)
            draw.line((begin, zero, end, zero), fill=_ZERO)
            draw.line(self._points(curve, top, begin, end), fill=colour, width=2)
        return np.asarray(image)

    def _points(self, curve: Curve, top: int, begin: int, end: int) -> list[tuple[float, float]]:
        """At most two points a pixel."""
        values = np.nan_to_num(curve.values)
        places = np.unique(
            np.linspace(0, len(values) - 1, min(len(values), 2 * (end - begin))).round()
        )
        return [
            (
                begin + (end - begin) * (place + 1) / len(values),
                self._y(values[int(place)], curve, top),
            )
            for place in places
        ]

    def _y(self, value: float, curve: Curve, top: int) -> float:
        low, high = curve.limits
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        return top + ROW_PIXELS - 4 - share * (ROW_PIXELS - 7)


def header(width: int, title: str) -> Picture:
    """The line above a panel."""
    image = Image.new("RGB", (width, HEADER_PIXELS), _BACKGROUND)
    draw = ImageDraw.Draw(image)
    shown = shortened(draw, title, width - 2 * _MARGIN, _TEXT_PIXELS + 1)
    place = (_MARGIN, HEADER_PIXELS / 2.0)
    draw.text(place, shown, fill=_TEXT, font=font(_TEXT_PIXELS + 1), anchor="lm")
    return np.asarray(image)


def shortened(draw: ImageDraw.ImageDraw, text: str, pixels: int, size: int = _TEXT_PIXELS) -> str:
    """The text, cut where it would be wider."""
    if draw.textlength(text, font=font(size)) <= pixels:
        return text
    while text and draw.textlength(f"{text}…", font=font(size)) > pixels:
        text = text[:-1]
    return f"{text}…"
