"""Videos of episodes, side by side and in step, with time and fitness so far below each panel; as
H.264, as an animated GIF, and as a sheet of moments."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from av.container import OutputContainer
from av.video.stream import VideoStream
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from eureka_agent.simulation.pictures import Picture, Size, fitted, font
from eureka_agent.wording import number

RATE = 30
"""Pictures a second. A video runs in the environment's own time."""
HELD_SECONDS = 0.5
"""Time for which the last picture stays."""
HEADER_PIXELS = 24
_TEXT_PIXELS = 12
_BACKGROUND, _TEXT, _ENDING = "#0f172a", "#e2e8f0", "#fbbf24"
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
    fitness: NDArray[np.floating]
    """Fitness so far, after each step."""
    moments: Sequence[int] | None = None
    """Steps that a sheet shows of it; None: those of all."""


class FilmScene:
    """Episodes shown together."""

    def __init__(
        self,
        episodes: Sequence[Episode],
        size: Size,
        control_dt: float,
        seconds: float,
        unit: str | None,
    ) -> None:
        """`size`: of a panel's picture; `control_dt`: seconds of a step; `seconds`: bound on an
        episode's shown part; `unit`: of the fitness, None to leave that out."""
        self.episodes = episodes
        most = math.floor(seconds / control_dt + 1e-9)
        self._shown = [min(episode.length, most) for episode in self.episodes]
        self._control_dt, self._unit = control_dt, unit
        self._headers = [header(size[0], episode.title) for episode in self.episodes]

    @property
    def steps(self) -> int:
        """Steps that have to be played."""
        return max(self._shown)

    def times(self) -> Iterator[int]:
        """The step that each picture of the video shows."""
        return shown_steps(self.steps, self._control_dt)

    def is_under_way(self, place: int, step: int) -> bool:
        """True where the panel at `place` shows a new picture at this step."""
        return step <= self._shown[place]

    def drawn(self, step: int, pictures: Sequence[Picture]) -> Picture:
        """The scene after so many steps. `pictures`: each panel's, of that step or its last."""
        columns: list[Picture] = []
        for place, picture in enumerate(pictures):
            episode = self.episodes[place]
            if step > episode.length:
                picture = (picture * (1.0 - _DIMMED)).astype(np.uint8)
            footer = self._footer(place, min(step, self._shown[place]), step >= episode.length)
            column = np.concatenate([self._headers[place], picture, footer])
            if columns:
                columns.append(np.full((len(column), _GAP, 3), _GAP_GREY, dtype=np.uint8))
            columns.append(column)
        whole = np.concatenate(columns, axis=1)
        # the codec takes even numbers
        return whole[: len(whole) // 2 * 2, : whole.shape[1] // 2 * 2]

    def _footer(self, place: int, step: int, has_ended: bool) -> Picture:
        """The line below a panel."""
        episode = self.episodes[place]
        told = f"{step * self._control_dt:.2f} s"
        if self._unit is not None and step >= 1:
            told += f"   fitness {number(float(episode.fitness[step - 1]))} {self._unit}".rstrip()
        ending = episode.ended_by.replace("_", " ") if has_ended else ""
        return line(self._headers[place].shape[1], told, ending)


def scenes(
    groups: Sequence[Sequence[Episode]],
    size: Size,
    control_dt: float,
    *,
    unit: str | None,
    seconds: float,
) -> list[FilmScene]:
    """The scenes of a video. `groups`: the episodes of each policy, by the same start states. The
    episodes of a single policy stand side by side; several policies stand side by side, and one
    start state follows the other. The others: see `FilmScene`."""
    together = groups if len(groups) == 1 else list(zip(*groups, strict=True))
    return [FilmScene(each, size, control_dt, seconds, unit) for each in together]


def shown_steps(steps: int, control_dt: float) -> Iterator[int]:
    """Steps of a video's pictures, `RATE` a second; the last one for `HELD_SECONDS`."""
    pictures = math.ceil(steps * control_dt * RATE - 1e-9)
    for picture in range(pictures):
        yield min(steps, round(picture / (RATE * control_dt)))
    for _ in range(max(1, round(HELD_SECONDS * RATE))):
        yield steps


def line(width: int, left: str, right: str = "", size: int = _TEXT_PIXELS) -> Picture:
    """A line of text in a bar."""
    image = Image.new("RGB", (width, HEADER_PIXELS), _BACKGROUND)
    draw = ImageDraw.Draw(image)
    middle, told = HEADER_PIXELS / 2.0, shortened(draw, left, width - 2 * _MARGIN, size)
    draw.text((_MARGIN, middle), told, fill=_TEXT, font=font(size), anchor="lm")
    draw.text((width - _MARGIN, middle), right, fill=_ENDING, font=font(size), anchor="rm")
    return np.asarray(image)


def header(width: int, title: str) -> Picture:
    return line(width, title, size=_TEXT_PIXELS + 1)


def shortened(draw: ImageDraw.ImageDraw, text: str, pixels: int, size: int = _TEXT_PIXELS) -> str:
    """The text, cut where it would be wider."""
    if draw.textlength(text, font=font(size)) <= pixels:
        return text
    while text and draw.textlength(f"{text}…", font=font(size)) > pixels:
        text = text[:-1]
    return f"{text}…"


# ── files ─────────────────────────────────────────────────────────────────────────────────────────

_CODEC = "libx264"
_OPTIONS = {"preset": "veryfast", "crf": "23", "threads": "1"}
"""On one core, as its worker has one."""
_GIF_RATE = 10
"""Pictures a second."""
_GIF_WIDTH = 640
_GIF_COLOURS = 128
_QUALITY = 85
_EDGE = 120
"""Brightness of the line between two moments of a sheet."""
_SECOND_SIDE = 0.75
"""Scale of a sheet's pictures from two sides, which so have about as many pixels as from one."""


class Mp4:
    """An H.264 video in an mp4 file, which browsers play while it loads."""

    def __init__(self, path: Path, rate: int) -> None:
        """`rate`: pictures a second. The file begins with the first picture."""
        self._path = path
        self._rate = rate
        self._open: tuple[OutputContainer, VideoStream] | None = None
        self._pictures = 0

    @property
    def seconds(self) -> float:
        return self._pictures / self._rate

    def add(self, picture: Picture) -> None:
        if self._open is None:
            options = {"movflags": "+faststart"}
            container = av.open(str(self._path), "w", format="mp4", options=options)
            stream = container.add_stream(_CODEC, rate=self._rate, options=_OPTIONS)
            assert isinstance(stream, VideoStream)  # as the codec is one of videos
            stream.height, stream.width = picture.shape[:2]
            stream.pix_fmt = "yuv420p"
            self._open = container, stream
        container, stream = self._open
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
        container.mux(stream.encode(frame))
        self._pictures += 1

    def close(self) -> None:
        """Complete the file; a second call does nothing."""
        opened, self._open = self._open, None
        if opened is not None:
            container, stream = opened
            container.mux(stream.encode(None))
            container.close()


class Gif:
    """The first seconds of a video as an animation that runs everywhere, in fewer colours."""

    def __init__(self, rate: int, seconds: float) -> None:
        """`rate`: of the video's pictures."""
        self._every = max(1, round(rate / _GIF_RATE))
        self._milliseconds = round(1000 * self._every / rate)
        self._most = round(seconds * rate)
        self._seen = 0
        self._images: list[Image.Image] = []

    def add(self, picture: Picture) -> None:
        if self._seen < self._most and self._seen % self._every == 0:
            height, width = picture.shape[:2]
            scale = min(1.0, _GIF_WIDTH / width)
            size = round(width * scale), round(height * scale)
            image = Image.fromarray(picture).resize(size, Image.Resampling.BILINEAR)
            self._images.append(image.quantize(_GIF_COLOURS, dither=Image.Dither.NONE))
        self._seen += 1

    def content(self) -> bytes:
        file = io.BytesIO()
        rest = {"append_images": self._images[1:], "duration": self._milliseconds, "loop": 0}
        self._images[0].save(file, format="GIF", save_all=True, optimize=True, **rest)
        return file.getvalue()


class Sheet:
    """A picture of a scene's episodes for those who read no videos: moments from left to right."""

    def __init__(
        self, episodes: Sequence[Episode], moments: int | Sequence[float], control_dt: float
    ) -> None:
        """`moments`: of each episode without moments of its own, in seconds, or their number, its
        start and end among them."""
        self._episodes = episodes
        self._control_dt = control_dt
        steps = (
            np.linspace(0, each.length, moments)
            if isinstance(moments, int)
            else np.clip(np.sort(moments) / control_dt, 0, each.length)
            for each in episodes
        )
        self._steps: list[list[int]] = [
            each.round().astype(int).tolist() if episode.moments is None else list(episode.moments)
            for each, episode in zip(steps, episodes, strict=True)
        ]
        self._found: list[dict[int, list[Picture]]] = [{} for _ in episodes]

    def wants(self, place: int, step: int) -> bool:
        """True where a picture of this episode at this step is missing."""
        return step in self._steps[place] and step not in self._found[place]

    def add(self, place: int, step: int, *sides: Picture) -> None:
        """Add a moment, seen from one side or from two, one below the other."""
        height, width = sides[0].shape[:2]
        smaller = (round(width * _SECOND_SIDE), round(height * _SECOND_SIDE))
        size = smaller if len(sides) > 1 else (width, height)
        self._found[place][step] = [fitted(each, size) for each in sides]

    def content(self) -> bytes:
        rows = []
        for episode, steps, found in zip(self._episodes, self._steps, self._found, strict=True):
            tiles = []
            for step in steps:
                label = header(found[step][0].shape[1], f"{step * self._control_dt:.2f} s")
                tiles.append(np.concatenate([label, *found[step]]))
            for tile in tiles[:-1]:
                tile[:, -1] = _EDGE
            row = np.concatenate(tiles, axis=1)
            rows += [header(row.shape[1], episode.title), row]
        file = io.BytesIO()
        Image.fromarray(np.concatenate(rows)).save(file, "JPEG", quality=_QUALITY)
        return file.getvalue()
