"""Videos of episodes, side by side and in step, with a strip below each panel: time, fitness so far
and each reward term, with a moving cursor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from eureka_agent.simulation.pictures import Picture, Size, font
from eureka_agent.wording import number

Series = NDArray[np.floating]
"""A value for each step of an episode."""
RATE = 30
"""Pictures a second. A video runs in the environment's own time."""
HELD_SECONDS = 0.5
"""Time for which the last picture stays."""
MOST_TERMS = 6
"""Terms of a strip, those with the largest magnitude."""
TOTAL = "total reward"
"""Name of the sum among a reward's terms, which is always shown."""
ROW_PIXELS = 20
HEADER_PIXELS = 24
_TEXT_PIXELS = 12
_BACKGROUND, _TEXT, _QUIET, _ENDING = "#0f172a", "#e2e8f0", "#94a3b8", "#fbbf24"
_AHEAD, _PASSED, _ZERO = "#475569", "#38bdf8", "#334155"
_CURSOR = (248, 250, 252)
_MARGIN = 8
_DIMMED = 0.45
_GAP, _GAP_GREY = 4, 120
"""Pixels between two panels, and their brightness."""


@dataclass(frozen=True)
class Episode:
    title: str
    row: int
    """Row of the environment that plays it."""
    length: int
    """Control steps."""
    ended_by: str
    fitness: Series
    """Fitness so far, after each step."""
    terms: Mapping[str, Series] = field(default_factory=dict)
    """Terms of its policy's reward, for each step."""


@dataclass(frozen=True)
class StripCurve:
    name: str
    values: Series
    unit: str = ""
    limits: tuple[float, float] = (0.0, 1.0)
    """Least and largest value of the scale, equal for all panels of one reward."""


Panel = tuple[Episode, Sequence[StripCurve]]
"""An episode with the lines of its strip."""


class FilmScene:
    def __init__(
        self, panels: Sequence[Panel], size: Size, control_dt: float, seconds: float
    ) -> None:
        """`size`: of a panel's picture; `control_dt`: seconds of a step; `seconds`: bound on an
        episode's shown part."""
        self.episodes = [episode for episode, _ in panels]
        most = math.floor(seconds / control_dt + 1e-9)
        self._shown = [min(episode.length, most) for episode in self.episodes]
        self._control_dt = control_dt
        rows = max(len(curves) for _, curves in panels)
        self._headers = [header(size[0], episode.title) for episode in self.episodes]
        self._strips = [Strip(size[0], curves, rows, control_dt) for _, curves in panels]

    @property
    def steps(self) -> int:
        return max(self._shown)

    def times(self) -> Iterator[int]:
        return shown_steps(self.steps, self._control_dt)

    def is_under_way(self, place: int, step: int) -> bool:
        """True where the panel at `place` shows a new picture at this step."""
        return step <= self._shown[place]

    def drawn(self, step: int, pictures: Sequence[Picture]) -> Picture:
        """The scene after so many steps. `pictures`: each panel's, of that step or its last."""
        columns: list[Picture] = []
        for place, picture in enumerate(pictures):
            episode, shown = self.episodes[place], min(step, self._shown[place])
            ending = episode.ended_by.replace("_", " ") if step >= episode.length else ""
            if step > episode.length:
                picture = (picture * (1.0 - _DIMMED)).astype(np.uint8)
            strip = self._strips[place].picture(shown, ending)
            column = np.concatenate([self._headers[place], picture, strip])
            if columns:
                columns.append(np.full((len(column), _GAP, 3), _GAP_GREY, dtype=np.uint8))
            columns.append(column)
        whole = np.concatenate(columns, axis=1)
        # the codec takes even numbers
        return whole[: len(whole) // 2 * 2, : whole.shape[1] // 2 * 2]


def scenes(
    groups: Sequence[Sequence[Episode]],
    size: Size,
    control_dt: float,
    *,
    unit: str,
    seconds: float,
    strips: bool,
) -> list[FilmScene]:
    """The scenes of a video. `groups`: the episodes of each policy, by the same start states. The
    episodes of a single policy stand side by side; several policies stand side by side, and one
    start state follows the other."""
    limits = shared_limits([episode.fitness for group in groups for episode in group])
    unit = "" if unit == "1" else unit
    panels: list[list[Panel]] = []
    for group in groups:
        # terms of one policy's episodes have the same scales
        scales = {
            name: shared_limits([each.terms[name] for each in group if name in each.terms])
            for name in largest_terms([each.terms for each in group])
        }
        panels.append([])
        for episode in group:
            terms = [
                StripCurve(name, episode.terms[name], "", scale)
                for name, scale in scales.items()
                if name in episode.terms
            ]
            curves = [StripCurve("fitness so far", episode.fitness, unit, limits), *terms]
            panels[-1].append((episode, curves if strips else ()))
    together = panels if len(panels) == 1 else list(zip(*panels, strict=True))
    return [FilmScene(each, size, control_dt, seconds) for each in together]


def shown_steps(steps: int, control_dt: float) -> Iterator[int]:
    """Steps of a video's pictures, `RATE` a second, from 0 to `steps` and on for
    `HELD_SECONDS`."""
    pictures = math.ceil(steps * control_dt * RATE - 1e-9)
    for picture in range(pictures):
        yield min(steps, round(picture / (RATE * control_dt)))
    for _ in range(max(1, round(HELD_SECONDS * RATE))):
        yield steps


def shared_limits(values: Sequence[Series]) -> tuple[float, float]:
    """A scale for all of these, with zero in it."""
    finite = [series[np.isfinite(series)] for series in values]
    edges = [float(edge) for each in finite if len(each) for edge in (each.min(), each.max())]
    low, high = min([0.0, *edges]), max([0.0, *edges])
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

    def __init__(
        self, width: int, curves: Sequence[StripCurve], rows: int, control_dt: float
    ) -> None:
        """`rows`: lines of the highest strip beside this one; `control_dt`: seconds of a step."""
        self._curves = curves
        self._control_dt = control_dt
        self._size = width, HEADER_PIXELS + ROW_PIXELS * rows
        self._begin = _MARGIN + int(0.36 * width)
        """Left and right end of the curves: names stand before them, values after."""
        self._end = width - 2 * _MARGIN - int(0.2 * width)
        self._ahead = self._drawn(_AHEAD)
        self._passed = self._drawn(_PASSED)

    def picture(self, step: int, ending: str) -> Picture:
        """The strip after so many steps. `ending`: how the episode ended; empty while it goes
        on."""
        pixels = self._ahead.copy()
        length = max((len(curve.values) for curve in self._curves), default=0)
        cursor = self._begin + round((self._end - self._begin) * step / max(1, length))
        top = HEADER_PIXELS
        pixels[top:, self._begin : cursor] = self._passed[top:, self._begin : cursor]
        if self._curves:
            pixels[top : top + ROW_PIXELS * len(self._curves), cursor : cursor + 1] = _CURSOR
        image = Image.fromarray(pixels)
        draw = ImageDraw.Draw(image)
        middle, right = HEADER_PIXELS / 2.0, self._size[0] - _MARGIN
        _write(draw, (_MARGIN, middle), f"{step * self._control_dt:.2f} s", _TEXT)
        _write(draw, (right, middle), ending, _ENDING, "rm")
        for line, curve in enumerate(self._curves if step >= 1 else ()):
            value = float(curve.values[min(step, len(curve.values)) - 1])
            shown = f"{number(value)} {curve.unit}".rstrip()
            _write(draw, (right, top + ROW_PIXELS * (line + 0.5)), shown, _TEXT, "rm")
        return np.asarray(image)

    def _drawn(self, colour: str) -> Picture:
        image = Image.new("RGB", self._size, _BACKGROUND)
        draw = ImageDraw.Draw(image)
        for line, curve in enumerate(self._curves):
            top = HEADER_PIXELS + ROW_PIXELS * line
            name = shortened(draw, curve.name, self._begin - 2 * _MARGIN)
            _write(draw, (_MARGIN, top + ROW_PIXELS / 2.0), name, _QUIET)
            zero = self._y(0.0, curve, top)
            draw.line((self._begin, zero, self._end, zero), fill=_ZERO)
            draw.line(self._points(curve, top), fill=colour, width=2)
        return np.asarray(image)

    def _points(self, curve: StripCurve, top: int) -> list[tuple[float, float]]:
        """At most two points a pixel."""
        values, width = np.nan_to_num(curve.values), self._end - self._begin
        count = min(len(values), 2 * width)
        places = np.unique(np.linspace(0, len(values) - 1, count).round())
        return [
            (self._begin + width * (at + 1) / len(values), self._y(values[int(at)], curve, top))
            for at in places
        ]

    def _y(self, value: float, curve: StripCurve, top: int) -> float:
        low, high = curve.limits
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        return top + ROW_PIXELS - 4 - share * (ROW_PIXELS - 7)


def _write(
    draw: ImageDraw.ImageDraw,
    place: tuple[float, float],
    text: str,
    colour: str,
    anchor: str = "lm",
    size: int = _TEXT_PIXELS,
) -> None:
    if text:
        draw.text(place, text, fill=colour, font=font(size), anchor=anchor)


def header(width: int, title: str) -> Picture:
    image = Image.new("RGB", (width, HEADER_PIXELS), _BACKGROUND)
    draw = ImageDraw.Draw(image)
    shown = shortened(draw, title, width - 2 * _MARGIN, _TEXT_PIXELS + 1)
    _write(draw, (_MARGIN, HEADER_PIXELS / 2.0), shown, _TEXT, size=_TEXT_PIXELS + 1)
    return np.asarray(image)


def shortened(draw: ImageDraw.ImageDraw, text: str, pixels: int, size: int = _TEXT_PIXELS) -> str:
    """The text, cut where it would be wider."""
    if draw.textlength(text, font=font(size)) <= pixels:
        return text
    while text and draw.textlength(f"{text}…", font=font(size)) > pixels:
        text = text[:-1]
    return f"{text}…"
