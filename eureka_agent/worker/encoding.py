"""Pictures as an H.264 video, as an animated GIF, and as a sheet of moments."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import av
import numpy as np
from av.container import OutputContainer
from av.video.stream import VideoStream
from PIL import Image

from eureka_agent.simulation.pictures import Picture
from eureka_agent.worker.film import Episode, header

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
        self._images[0].save(
            file,
            format="GIF",
            save_all=True,
            append_images=self._images[1:],
            duration=self._milliseconds,
            loop=0,
            optimize=True,
        )
        return file.getvalue()


class Sheet:
    """A picture of a scene's episodes for those who read no videos: moments from left to right."""

    def __init__(self, episodes: Sequence[Episode], columns: int, control_dt: float) -> None:
        """`columns`: moments of each episode, its start and end among them."""
        self._episodes = episodes
        self._control_dt = control_dt
        self._steps: list[list[int]] = [
            np.linspace(0, episode.length, columns).round().astype(int).tolist()
            for episode in episodes
        ]
        self._found: list[dict[int, Picture]] = [{} for _ in episodes]

    def wants(self, place: int, step: int) -> bool:
        """True where a picture of this episode at this step is missing."""
        return step in self._steps[place] and step not in self._found[place]

    def add(self, place: int, step: int, picture: Picture) -> None:
        self._found[place][step] = picture

    def content(self) -> bytes:
        rows = []
        for episode, steps, found in zip(self._episodes, self._steps, self._found, strict=True):
            tiles = []
            for step in steps:
                label = header(found[step].shape[1], f"{step * self._control_dt:.2f} s")
                tiles.append(np.concatenate([label, found[step]]))
            for tile in tiles[:-1]:
                tile[:, -1] = _EDGE
            row = np.concatenate(tiles, axis=1)
            rows += [header(row.shape[1], episode.title), row]
        file = io.BytesIO()
        Image.fromarray(np.concatenate(rows)).save(file, "JPEG", quality=_QUALITY)
        return file.getvalue()
